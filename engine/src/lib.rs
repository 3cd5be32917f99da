//! The engine of Foldwork: logs of events, the states they fold to, and pipelines over both.
//!
//! The engine does not depend on HTTP, environment variables, configuration files or a folder layout.
//! Dependencies point left: `model <- pipeline <- {store, resident} <- core <- mailbox <- consumer <- workspace <-
//! engine`. The module `access` is on the level of `core`.

mod access;
pub mod clock;
mod consumer;
mod core;
mod engine;
pub mod error;
pub mod hook;
mod mailbox;
pub mod model;
mod named_locks;
pub mod offload;
mod opening;
#[cfg(test)]
mod opening_tests;
pub mod pipeline;
mod registry;
#[cfg(test)]
mod registry_tests;
mod resident;
pub(crate) mod store;
pub mod workspace;

pub use crate::access::grant::Grant;
pub use crate::access::invitations::{Proposal, SignedIn};
pub use crate::access::members::Member;
pub use crate::access::provision::FirstStart;
pub use crate::access::settings::{AccessSettings, IssuerSettings, Trust};
pub use crate::access::tokens::key_set::{FetchKeys, Fetched};
pub use crate::core::Settings;
pub use crate::core::admission::QueryLimits;
pub use crate::core::append::Appended;
pub use crate::core::plugins::Plugins;
pub use engine::Engine;
pub use error::{Error, Result};
pub use store::append::Batch;
pub use store::{Sizes, Store};
pub use workspace::rights::{
    AgentWriter, ContentReader, Listener, McpReader, McpWriter, Operator, Owner, ProfileReader, Reader, Right,
    Unlocker, Writer,
};
