//! What a plugin is, and the hosts that run plugins: functions from data to data, loaded strictly before anything else
//! starts, and bounded and measured when they are called.
//!
//! Arrows: this room knows the engine, and the server knows this room; never the other way round.

mod folder;
pub mod manifest;
pub mod memory;
mod registry;
pub mod script;
mod suggestion;

use std::sync::Arc;

use foldwork_engine::hook::Plugin;

pub use folder::{Folder, SHIPPED};
pub use registry::{LoadError, load};

/// The plugins that are written in Rust: one line each.
pub fn native() -> Vec<Arc<dyn Plugin>> {
    Vec::new()
}
