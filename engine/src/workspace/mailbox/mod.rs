//! The operations on tasks: a file for making and reading them, what people do, what agents do, and many at once.

pub mod actions;
mod assignee;
pub mod batch;
pub mod leases;
pub mod tasks;
pub mod work;

pub use crate::mailbox::agent::{Work, Worker};
pub use crate::mailbox::leases::Renewed;
pub use crate::mailbox::person::Deed;
