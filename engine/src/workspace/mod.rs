//! The operations on one workspace, one file per resource.
//!
//! An operation is a method of the handle whose right it needs, such as [`rights::Reader`] or [`rights::Writer`]. This
//! module contains no query text and no wire types.

pub mod agents;
pub mod aggregates;
pub mod answers;
pub mod articles;
mod call_context;
pub mod events;
pub mod feed;
pub mod files;
pub mod following;
pub mod graph;
pub mod keys;
pub mod licenses;
pub mod listener;
pub mod mailbox;
pub mod members;
pub mod offline;
mod offload;
pub mod parked;
pub mod plugins;
pub mod projects;
pub mod query;
pub mod rights;
pub mod runtime;
pub mod scripted;
pub mod search;
pub mod system;
pub mod told_again;
pub mod tools;
pub mod types;

pub(crate) use call_context::CallContext;
pub use call_context::Changing;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The cursor of the next page, if there is a next page.
    pub next: Option<u64>,
}
