//! The mailbox: what is decided about tasks against the log's end, whoever wants it, and what happens when its time comes.
//!
//! A decision is a function from the view of the log's end to events; the appender runs it. What may happen at all stands in
//! the table of `model::task::transition`, which every decision here asks first.

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
