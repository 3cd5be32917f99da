//! The mailbox: what may happen to tasks, what happens at once, and what happens by itself.

pub mod board;
mod deadlines;
mod overdue;
mod races;
mod transitions;
