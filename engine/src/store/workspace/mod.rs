//! The database of a workspace: the log, the records derived from the log, and the records outside the log, such as
//! presence and uploads.

pub mod append;
pub(super) mod append_right;
pub mod body;
pub mod definitions;
pub mod embeddings;
pub mod feed;
pub mod graph;
pub mod graph_changes;
mod graph_reads;
pub mod leader;
pub mod leases;
pub mod log;
pub mod nodes;
pub mod parked;
pub mod plugin_calls;
pub mod presence;
mod published;
pub mod responses;
mod stored_facts;
pub mod uploads;
