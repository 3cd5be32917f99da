//! `/mailbox`: one file each for tasks, for the actions of people, for the work of agents and for batches, plus the
//! wire types.

mod actions;
mod batch;
mod command;
mod tasks;
mod work;

/// Every operation on tasks.
pub type Operations = (tasks::Api, actions::Api, work::Api, batch::Api);
pub const OPERATIONS: Operations = (tasks::Api, actions::Api, work::Api, batch::Api);
