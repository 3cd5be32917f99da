//! The operations on tasks: creating and reading them, actions of people, actions of agents, and batches.

pub mod actions;
mod assignee;
pub mod batch;
pub mod leases;
pub mod tasks;
pub mod work;

use super::answers::RequestId;
use super::call_context::Operation;
use crate::core::append::{Appended, Decide};
use crate::error::Result;

pub use crate::mailbox::agent::{Work, Worker};
pub use crate::mailbox::leases::Renewed;
pub use crate::mailbox::person::TaskCommand;

impl Operation {
    /// Appends the events decided about a task. First applies what other servers have appended, since a rejection must
    /// not be based on an outdated state.
    async fn append_decided(&self, decide: Decide, request: Option<RequestId>, given_bytes: usize) -> Result<Appended> {
        self.state().refresh().await?;
        self.append(decide, request, given_bytes).await
    }
}
