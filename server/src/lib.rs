//! The HTTP server around the Foldwork engine, and the commands of the program.
//!
//! This crate is the composition root. The crate sets up the configuration, the store, the engine and the routes, in
//! this order.

pub mod api;
mod application;
pub mod auth;
pub mod cli;
pub mod config;
mod dashboard;
mod download;
pub mod edge;
pub mod embedding;
pub mod http;
mod mcp;
pub mod metric;
mod plugin_routes;
mod realtime;
pub mod serve;
pub mod telemetry;
mod wire;

pub use application::{application, application_with_backups, openapi};
pub use config::Config;
pub use http::routes::{API, FUNCTIONS};
