//! `/mailbox`: a file for tasks themselves, what people do, what agents do, and many at once; and what is read and written.

mod actions;
mod batch;
mod command;
mod tasks;
mod work;

/// Every operation on tasks.
pub type Operations = (tasks::Api, actions::Api, work::Api, batch::Api);
pub const OPERATIONS: Operations = (tasks::Api, actions::Api, work::Api, batch::Api);
