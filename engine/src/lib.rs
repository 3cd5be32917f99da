//! The engine of Foldwork: logs of events, the states they fold to, and pipelines over both.
//!
//! The engine does not depend on HTTP, environment variables, configuration files or a folder layout.
//! Dependencies point left: `model <- pipeline <- {store, resident} <- state <- mailbox <- consumer <- workspace <-
//! engine`. The module `access` is on the level of `state`.

mod access;
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
pub use crate::state::append::AppendOutcome;
pub use crate::state::plugins::Plugins;
pub use engine::{Engine, EngineStatus};
pub use error::{Error, Result};
pub use removal::tend_deletions;
pub use store::append::AppendBatch;
pub use store::contents::Contents;
pub use store::error::Error as StoreError;
pub use store::{Sizes, Store};
pub use workspace::rights::{
    Administrator, AgentWriter, ContentReader, Listener, McpReader, McpWriter, Owner, ProfileReader, Reader, Right,
    Unlocker, Writer,
};
