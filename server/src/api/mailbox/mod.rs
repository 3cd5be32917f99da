//! `/mailbox`: the operations on tasks, the actions of people, the work of agents, and batches of actions.

mod actions;
mod batch;
mod command;
mod tasks;
mod work;

/// Every operation on tasks.
pub const OPERATIONS: (tasks::Api, actions::Api, work::Api, batch::Api) =
    (tasks::Api, actions::Api, work::Api, batch::Api);
