//! The operations on one workspace, one file per resource.
//!
//! An operation is a method of the handle whose right it needs, such as [`rights::Reader`] or [`rights::Writer`]. This
//! module contains no query text and no wire types.
//!
//! # Rights
//!
//! A right is a type. `Engine::enter` checks a caller and returns a handle, and a handle has exactly the operations of
//! its right. A right names scopes and the lowest role that the caller may have. Some rights need one of their scopes,
//! and other rights need all of their scopes. A missing right (403) is reported before an unpaid plan (402). The rights
//! of owners and operators need every scope, because a user who manages others could obtain any scope. Handlers of
//! requests, endpoints of plugins, and tests receive only handles. A handler receives its handle through the guard in
//! its signature. A stream holds its right for a long time, as a grant. The stream ends when its token or key expires,
//! when its key is revoked, or when its user is removed or loses the role. It does not matter on which server the key
//! is revoked or the user is changed.
//!
//! A key that is bound to agents gets only the handles whose right sets `IS_FOR_AGENTS`: the handles that read, and the
//! handles that work on tasks. Such a key works on tasks for its agents, replaces only artifacts of its agents, and
//! cannot approve or reject output.
//!
//! # Operations
//!
//! An operation does not end with its request. Code that changes the contents of a workspace is reached through an
//! `Operation`, which exists only inside a task that `Operation::perform` starts. If the client disconnects, the
//! operation continues. A workspace that closes waits a short time for its operations. Readers hold a `DatabaseReader`,
//! which has no functions that write, so the compiler rejects a reader that changes the contents. The presence of
//! agents, acknowledged positions and renewed leases are written outside of operations.
//!
//! Events of tasks, agents, projects and files are appended only by dedicated operations, by the program itself (for
//! example by its timers), and by an import or a restore into a workspace that no server has open (`Engine::offline`).
//! Staging rejects such events from all other callers. Only imports and restores append events that keep their earlier
//! times and actors.

pub mod agents;
pub mod aggregate_follower;
pub mod aggregates;
pub mod article_list;
pub mod articles;
mod call_context;
pub mod causes;
pub mod deletion;
pub mod events;
pub mod feed;
pub mod files;
pub mod followers;
pub mod graph;
pub mod keys;
pub mod licenses;
pub mod listener;
pub mod mailbox;
pub mod members;
pub mod notices;
pub mod offline;
pub mod parked;
pub mod plugins;
pub mod projects;
pub mod query;
pub mod recent_deliveries;
pub mod responses;
mod reverse_log;
pub mod rights;
pub mod runtime;
pub mod search;
pub mod tools;
pub mod types;

pub(crate) use call_context::{CallContext, Handle};
pub use call_context::{Changing, Consistency};

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C = u64> {
    pub items: Vec<T>,
    /// The cursor of the next page, if there is a next page.
    pub next: Option<C>,
}

/// The limits of a page. The page ends at the limit that is reached first, but has at least one item.
#[derive(Debug, Clone, Copy)]
pub struct PageLimit {
    pub rows: usize,
    pub bytes: usize,
}

impl PageLimit {
    /// No limit. Only for pages whose items are in memory anyway, and are few or are not copied.
    pub const NONE: PageLimit = PageLimit { rows: usize::MAX, bytes: usize::MAX };
}
