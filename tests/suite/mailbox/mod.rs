//! Tests the mailbox: transitions of tasks, concurrent actions, and deadlines.

mod batched;
pub mod board;
mod bound_keys;
mod bounds;
mod chain;
mod deadlines;
mod deciders;
mod listed;
mod offboarding;
mod overdue;
mod own_delivery;
mod people;
mod races;
mod rotated;
mod stale;
mod transitions;
