//! The mailbox: decisions about tasks, and the deadlines of tasks.
//!
//! A decision is a function that takes the view of the log's end and returns events. The appender runs decisions. The
//! table in `model::task::transition` defines the possible actions, and every decision here checks this table first.

pub mod agent;
pub mod artifacts;
pub mod backlog;
mod command;
mod deadline;
mod decision;
pub mod deliver;
pub mod effect;
pub mod leases;
pub mod limits;
pub mod members;
pub mod notice;
pub mod offboarding;
pub mod person;
mod schedule;
pub mod selection;
pub mod superseded;
pub mod timers;

pub use decision::{NOT_LEASE_HOLDER, TASK_STATE_CONFLICT, add_deliverers, find, signed};
