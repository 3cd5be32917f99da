//! Tasks: work for a person or an agent, listed in the mailbox.
//!
//! A task is an aggregate of the managed type `task`. The timeline of a task is its stream. A single table
//! ([`transition`]) defines which acts are possible in which status, and every change of a task is checked against this
//! table.

mod act;
pub mod content;
pub mod edit;
pub mod escalation;
mod event_kind;
pub mod question;
pub mod record;
pub mod review;
mod source;
mod status;
pub mod title;
pub mod transition;
pub mod view;

pub use act::{Act, Action, Deadline, Verb};
pub use event_kind::TaskEvent;
pub use record::Task;
pub use source::SourceType;
pub use status::Status;

/// The number of attempts after which a task fails.
pub const MAX_ATTEMPTS: i64 = 5;
/// The default duration of an agent's lease on a task, in seconds. Agents send a heartbeat every 30 seconds, so a lease
/// ends after three missed heartbeats.
pub const LEASE_S: i64 = 90;
/// The maximum duration of an agent's lease on a task, in seconds.
pub const MAX_LEASE_S: i64 = 600;
