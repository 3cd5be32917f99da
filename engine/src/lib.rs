//! The engine of Foldwork: logs of events, the states they fold to, and pipelines over both.
//!
//! It knows no HTTP, no environment, no configuration file and no folder layout.
//! Arrows: `model <- pipeline <- {store, resident} <- {workspace, consumer} <- engine`.

pub mod clock;
mod consumer;
mod engine;
pub mod error;
pub mod hook;
pub mod model;
mod opened;
#[cfg(test)]
mod opened_tests;
pub mod pipeline;
mod resident;
pub(crate) mod store;
pub mod workspace;

pub use consumer::plugins::Plugins;
pub use engine::{Engine, FirstStart, Settings};
pub use error::{Error, Result};
pub use store::answers::StoredAnswer;
pub use store::{Sizes, Store};
pub use workspace::Workspace;
