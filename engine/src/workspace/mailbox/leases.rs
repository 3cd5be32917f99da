//! Renewal of all leases of an agent, as the program that runs all workers of the agent may ask for.

use std::sync::Arc;

use crate::error::Result;
use crate::mailbox::leases::{HeldClaims, LeaseRenewal};
use crate::workspace::call_context::Operation;
use crate::workspace::rights::Writer;

impl Writer {
    /// Renews all leases that the agents hold.
    pub async fn renew_leases(&self, agent_ids: Vec<Arc<str>>) -> Result<Vec<LeaseRenewal>> {
        Operation::perform(self, |operation| async move { operation.renew_leases(&agent_ids).await }).await
    }
}

impl Operation {
    /// Renews all leases that the agents hold, whichever worker holds them.
    pub async fn renew_leases(&self, agent_ids: &[Arc<str>]) -> Result<Vec<LeaseRenewal>> {
        let state = self.state();
        state.refresh().await?;
        self.context().renewals().renew(state, agent_ids, &HeldClaims::All, state.clock.now_ms()).await
    }
}
