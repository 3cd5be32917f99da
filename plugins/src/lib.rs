//! What a plugin is, and the hosts that run plugins: functions from data to data, loaded strictly before anything else
//! starts, and bounded and measured when they are called.
//!
//! Arrows: this room knows the engine, and the server knows this room; never the other way round.

mod feed;
mod folder;
pub mod manifest;
pub mod mcp;
pub mod memory;
pub mod mount;
mod native;
mod registry;
pub mod script;
mod suggestion;

pub use folder::{Folder, SHIPPED};
pub use native::{Native, Protocol, endpoints, native, speaks};
pub use registry::{LoadError, load};
