//! The mailbox: decisions about tasks against the log's end, and the deadlines of tasks.
//!
//! A decision is a function from the view of the log's end to events; the appender runs it. Which acts are possible is
//! defined by the table in `model::task::transition`, which every decision here consults first.

pub mod agent;
mod deadline;
mod decision;
pub mod deliver;
pub mod effect;
pub mod leases;
pub mod person;
pub mod selection;
pub mod timers;

pub use decision::{NOT_LEASE_HOLDER, TASK_STATE_CONFLICT, find};
