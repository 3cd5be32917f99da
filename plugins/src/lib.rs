//! Plugins in Rust, and the host of scripted plugins. Plugins are loaded and checked before the server starts. A script
//! is a function from data to data, and each call of a script is limited and measured.
//!
//! This crate depends on the engine, and the server depends on this crate. There are no dependencies in the other
//! direction.
//!
//! A plugin is a named set of hooks. `[plugins] enabled` lists the plugins in the order of their calls. A scripted
//! plugin is a folder in `[plugins] folder`, or is built into the program. A plugin in Rust is an entry of the list in
//! `natives.rs`.
//!
//! * **Strict at load.** Before the store is opened, each manifest is read, each script is compiled, each call in a
//!   script is compared with the existing functions, and the plugin's own cases are run. Any mistake prevents the
//!   start, and is reported with the file or setting and, if known, with the line and column.
//! * **Tolerant at run time.** A call runs on a thread that the caller provides. The call is stopped at its limits on
//!   steps, time, memory and sizes. A panic in the call is caught. A mistake in the result is reported with the path of
//!   the wrong value (`hook::Failure`).
//! * **Mounted** endpoints are served only while their plugin is enabled. The checked-in OpenAPI document does not
//!   contain these endpoints. The checked-in document describes only the server's own handlers, whichever plugins are
//!   enabled.

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
pub use natives::{endpoints, natives, serves_protocol};
pub use registry::{Scripts, Stamps, load, stamps};
