//! The engine of Foldwork: logs of events, the states that events fold to, and pipelines over both.
//!
//! The engine does not depend on HTTP, environment variables, configuration files or a folder layout. `ARCHITECTURE.md`
//! describes its modules.
//!
//! ```
//! use std::sync::Arc;
//!
//! use foldwork_engine::clock::SystemClock;
//! use foldwork_engine::model::event::NewEvent;
//! use foldwork_engine::model::value::{Object, Value};
//! use foldwork_engine::workspace::query::Query;
//! use foldwork_engine::{Engine, EngineSettings, Plugins, Reader, Store, Writer};
//! use serde_json::json;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::connect("mem://").await?;
//! let engine = Engine::open(store, Arc::new(SystemClock), EngineSettings::default(), Plugins::none()?).await?;
//! let key = engine.first_start(None).await?.ok_or("the store is not empty")?.key;
//! let writer: Writer = engine.enter(engine.authenticate(&key).await?).await?;
//! let reader: Reader = engine.enter(engine.authenticate(&key).await?).await?;
//!
//! let event = |verb: &str, title: &str| NewEvent {
//!     aggregate_id: "note-1".to_owned(),
//!     aggregate_type: "article".to_owned(),
//!     event_type: format!("article.{verb}"),
//!     payload: Object::from_iter([("title", title)]),
//!     ..NewEvent::default()
//! };
//! let appended = writer.append_events(vec![event("created", "First"), event("changed", "Second")]).await?;
//! assert_eq!(appended.states[1].version, 2);
//!
//! let pipeline = json!([{"$match": {"aggregate_type": "article"}}, {"$fold": {}},
//!                       {"$group": {"_id": "$title", "count": {"$sum": 1}}}]);
//! let response = reader.query(Query::new(Value::from(pipeline))).await?;
//! assert_eq!(response.rows, [Value::from(json!({"_id": "Second", "count": 1}))]);
//! # Ok(())
//! # }
//! ```

mod access;
mod append;
pub mod archive;
pub mod clock;
mod consumer;
mod engine;
pub mod error;
pub mod hook;
mod mailbox;
mod measure;
pub mod metric;
pub mod model;
mod named_locks;
pub mod offload;
mod opening;
#[cfg(test)]
mod opening_tests;
pub mod pipeline;
mod pulse;
mod registry;
#[cfg(test)]
mod registry_tests;
mod removal;
mod resident;
mod shared_check;
mod state;
mod store;
pub mod workspace;

pub use crate::access::grant::Grant;
pub use crate::access::invitations::{Proposal, SignedIn};
pub use crate::access::members::Member;
pub use crate::access::provision::FirstStart;
pub use crate::access::recovery::OwnerKey;
pub use crate::access::restore::ImportOutcome;
pub use crate::access::settings::{AccessSettings, IssuerSettings, Trust};
pub use crate::access::tokens::key_set::{FetchKeys, Fetched};
pub use crate::state::EngineSettings;
pub use crate::state::admission::QueryLimits;
pub use crate::state::plugins::Plugins;
pub use append::request::AppendOutcome;
pub use engine::{Engine, EngineStatus};
pub use error::{Error, Result};
pub use removal::tend_deletions;
pub use store::contents::Contents;
pub use store::error::Error as StoreError;
pub use store::workspace::append::{AppendBatch, EventWrite};
pub use store::{Sizes, Store};
pub use workspace::rights::{
    Administrator, AgentWriter, ContentReader, Listener, McpReader, McpWriter, Owner, ProfileReader, Reader, Right,
    Unlocker, Writer,
};
