//! The mailbox: transitions of tasks, concurrent actions, and deadlines.

pub mod board;
mod deadlines;
mod overdue;
mod own_delivery;
mod races;
mod transitions;
