//! The plugin API and the hosts that run plugins. A plugin is a function from data to data. Plugins are loaded and
//! checked before the server starts. Their calls are limited and measured.
//!
//! This crate depends on the engine, and the server depends on this crate. There are no dependencies in the other
//! direction.
//!
//! A plugin is a named set of hooks, loaded from a list that a reader can see: `[plugins] enabled` names them in the
//! order of their calls. A scripted plugin is a folder in `[plugins] folder`, or one that the program contains. A
//! plugin in Rust is an entry of the list in `native.rs`.
//!
//! * **Strict at load.** Before the store is opened, each manifest is read, each script compiled, each of its calls
//!   compared with the existing functions, and its own cases are run. Any mistake prevents the start, and is reported
//!   with file, line and column.
//! * **Tolerant at run time.** A call runs on a thread that the caller provides. It is stopped at its limits on steps,
//!   time, memory and sizes. A panic in the call is caught. A mistake in its result is reported with its path
//!   (`hook::Failure`).
//! * **Mounted** endpoints are served only while their plugin is enabled. They are not in the checked-in OpenAPI
//!   document, which describes the server's own handlers whatever is enabled.

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
