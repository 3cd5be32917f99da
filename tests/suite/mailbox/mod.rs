//! Tests the mailbox: transitions of tasks, concurrent actions, and deadlines.

mod batched;
pub mod board;
mod chain;
mod deadlines;
mod listed;
mod offboarding;
mod overdue;
mod own_delivery;
mod races;
mod stale;
mod transitions;
