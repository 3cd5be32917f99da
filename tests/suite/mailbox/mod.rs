//! Tests the mailbox: transitions of tasks, concurrent actions, and deadlines.

mod batches;
pub mod board;
mod bound_keys;
mod bounds;
mod chain;
mod deadlines;
mod deciders;
mod key_rotation;
mod lists;
mod offboarding;
mod overdue;
mod own_delivery;
mod people;
mod races;
mod stale;
mod transitions;
