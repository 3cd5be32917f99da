//! Tasks: what a person or an agent is to do, as the mailbox keeps it.
//!
//! A task is an aggregate of the managed type `task`, and its timeline is its stream. What may happen to it stands in one
//! table ([`transition`]); everybody who wants to change a task asks that table, and nothing else decides.

mod act;
pub mod content;
pub mod edit;
pub mod escalation;
mod event_kind;
pub mod record;
pub mod review;
pub mod shown;
mod status;
pub mod transition;

pub use act::{Act, Action, Deadline, Verb};
pub use event_kind::TaskEvent;
pub use record::Task;
pub use status::Status;

/// How often the work on a task is begun before it has failed.
pub const MAX_ATTEMPTS: i64 = 5;
/// How long an agent holds a task where it does not say, and the longest that it may ask for; seconds. An agent is heard
/// from every 30 seconds: three heartbeats may be missed.
pub const LEASE_S: i64 = 90;
pub const MAX_LEASE_S: i64 = 600;
