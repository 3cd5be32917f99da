//! The operations on one workspace, one file per resource.
//!
//! An operation is a method of the handle whose right it needs, such as [`rights::Reader`] or [`rights::Writer`]. This
//! module contains no query text and no wire types.

pub mod agents;
pub mod aggregate_follower;
pub mod aggregates;
pub mod articles;
mod call_context;
pub mod causes;
pub mod deletion;
pub mod events;
pub mod feed;
pub mod files;
pub mod graph;
pub mod keys;
pub mod licenses;
pub mod listener;
mod log_back;
pub mod mailbox;
pub mod members;
pub mod notices;
pub mod offline;
mod offload;
pub mod parked;
pub mod plugins;
pub mod projects;
pub mod query;
pub mod responses;
pub mod rights;
pub mod runtime;
pub mod search;
pub mod system;
pub mod told_again;
pub mod tools;
pub mod types;

pub(crate) use call_context::CallContext;
pub use call_context::{Changing, Consistency};

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The cursor of the next page, if there is a next page.
    pub next: Option<u64>,
}

/// The limits of a page. The page ends at the limit that is reached first, but has at least one item.
#[derive(Debug, Clone, Copy)]
pub struct PageLimit {
    pub rows: usize,
    pub bytes: usize,
}

impl PageLimit {
    /// No limit. Only for items that stay in memory and are few, or that are not copied.
    pub const NONE: PageLimit = PageLimit { rows: usize::MAX, bytes: usize::MAX };
}
