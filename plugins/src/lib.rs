//! The plugin API and the hosts that run plugins. A plugin is a function from data to data. Plugins are loaded and
//! checked before the server starts. Their calls are limited and measured.
//!
//! This crate depends on the engine, and the server depends on this crate. There are no dependencies in the other
//! direction.

mod error;
mod feed;
mod folder;
pub mod limits;
pub mod manifest;
pub mod mcp;
pub mod memory;
pub mod mount;
mod native;
mod natives;
mod registry;
pub mod script;
mod suggestion;

pub use error::LoadError;
pub use folder::{PluginFolder, SHIPPED};
pub use native::{Native, Protocol};
pub use natives::{endpoints, natives, speaks};
pub use registry::{Scripts, Stamps, load, stamps};
