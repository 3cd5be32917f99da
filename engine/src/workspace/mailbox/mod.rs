//! The operations on tasks: a file for making and reading them, what people do, what agents do, and many at once.

pub mod actions;
mod assignee;
pub mod batch;
pub mod leases;
pub mod tasks;
pub mod work;

use super::answers::RequestId;
use super::entered::Operation;
use crate::core::append::{Appended, Decide};
use crate::error::Result;

pub use crate::mailbox::agent::{Work, Worker};
pub use crate::mailbox::leases::Renewed;
pub use crate::mailbox::person::TaskCommand;

impl Operation {
    /// Appends what is decided about a task. A refusal may not come from not knowing yet what another server appended, so that
    /// is taken in first.
    async fn append_decided(&self, decide: Decide, request: Option<RequestId>, given_bytes: usize) -> Result<Appended> {
        self.state().refresh().await?;
        self.append(decide, request, given_bytes).await
    }
}
