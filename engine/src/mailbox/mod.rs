//! The mailbox: decisions about tasks against the log's end, and the deadlines of tasks.
//!
//! A decision is a function that takes the view of the log's end and returns events. The appender runs decisions. The
//! table in `model::task::transition` defines the possible actions, and every decision here checks this table first.

pub mod agent;
pub mod artifacts;
mod deadline;
mod decision;
pub mod deliver;
pub mod effect;
pub mod leases;
pub mod person;
pub mod selection;
pub mod timers;

pub use decision::{NOT_LEASE_HOLDER, TASK_STATE_CONFLICT, deliverers, find, signed};
