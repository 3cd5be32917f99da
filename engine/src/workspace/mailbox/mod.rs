//! The operations on tasks: creation, reads, actions of people, actions of agents, and batches.

pub mod actions;
pub mod approval;
mod assignee;
pub mod batch;
pub mod decider;
mod next;
mod offboarding;
pub mod tasks;
pub mod work;

use super::call_context::Operation;
use super::responses::IdempotentRequest;
use crate::append::request::{AppendOutcome, Decide};
use crate::error::Result;

pub use crate::mailbox::agent::{AgentAction, Claimant};
pub use crate::mailbox::leases::LeaseRenewal;
pub use crate::mailbox::person::{ApprovalOverrides, TaskCommand};

impl Operation {
    /// Appends the events that `decide` returns for a task. First reads the events that other servers have appended, so
    /// that an outdated state of the task does not cause a rejection.
    async fn append_decided(
        &self,
        decide: Decide,
        request: Option<IdempotentRequest>,
        given_bytes: usize,
    ) -> Result<AppendOutcome> {
        self.state().refresh().await?;
        self.append(decide, request, given_bytes, None).await
    }
}
