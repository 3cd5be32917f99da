//! Licenses: activation of devices, and the workspace's usage of the resources that its plan limits.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::call_context::{CallContext, Operation};
use super::rights::{Reader, Unlocker, Writer};
pub use crate::access::licenses::{Device, Validation};
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, PROJECT};
use crate::model::license::Activation;

/// The maximum length of a text sent by a device, in characters.
const MAX_CHARACTERS: usize = 200;

/// The workspace's usage of the resources that its plan limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanUsage {
    pub storage_bytes: u64,
    pub projects: u64,
    pub agents: u64,
}

impl Unlocker {
    /// Activates a device, or confirms that the device is active. A revoked device, or a new device over the limit of
    /// the caller's plan, stays inactive, and the verdict has the reason. Also returns the workspace's usage.
    pub async fn validate_device(&self, device: Device) -> Result<(Validation, PlanUsage)> {
        check(&device)?;
        self.context.state().refresh().await?;
        let usage = self.context.usage().await;
        let validation = Operation::perform(self, |operation| async move {
            operation.access().validate_device(operation.caller(), &device).await
        })
        .await?;
        Ok((validation, usage))
    }

    /// Removes one of the caller's active devices. The device may be activated again.
    pub async fn deactivate_device(&self, device: Device) -> Result<Activation> {
        check(&device)?;
        Operation::perform(self, |operation| async move {
            operation.access().deactivate_device(&operation.caller().user_id, &device.instance_id).await
        })
        .await
    }

    /// Returns the Ed25519 signature of a license response.
    pub async fn sign(&self, message: Vec<u8>) -> Result<Vec<u8>> {
        Operation::perform(self, |operation| async move { operation.access().sign_license(&message).await }).await
    }
}

impl Reader {
    /// Returns the caller's devices, including revoked devices.
    pub async fn list_activations(&self) -> Result<Vec<Activation>> {
        Ok(self.context.access().control().read_activations(&self.context.caller().user_id).await?.activations)
    }
}

impl Writer {
    /// Revokes one of the caller's active devices. The device cannot activate itself again until its record is deleted,
    /// which happens after many further revocations.
    pub async fn revoke_activation(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        Operation::perform(self, |operation| async move {
            operation.access().revoke_device(&operation.caller().user_id, &id).await
        })
        .await
    }
}

impl CallContext {
    /// Returns the workspace's usage of the resources that its plan limits.
    async fn usage(&self) -> PlanUsage {
        let count = async |aggregate_type| {
            let mut count = 0;
            let visit = |found: &Arc<Aggregate>| {
                count += u64::from(!found.deleted);
                ControlFlow::Continue(())
            };
            self.visit_newest(Some(aggregate_type), None, visit).await;
            count
        };
        let (projects, agents) = (count(PROJECT).await, count(AGENT).await);
        let (_, storage_bytes) = self.file_usage().await;
        PlanUsage { projects, agents, storage_bytes }
    }
}

fn check(device: &Device) -> Result<()> {
    if device.instance_id.trim().is_empty() || device.instance_id.chars().count() > MAX_CHARACTERS {
        let message = format!("expected 1 to {MAX_CHARACTERS} characters, not only white space");
        return Err(Error::invalid_at("/instanceId", message));
    }
    let fields = [("/name", &device.name), ("/platform", &device.platform), ("/app_version", &device.app_version)];
    for (pointer, text) in fields {
        if text.as_ref().is_some_and(|text| text.chars().count() > MAX_CHARACTERS) {
            return Err(Error::invalid_at(pointer, format!("expected at most {MAX_CHARACTERS} characters")));
        }
    }
    Ok(())
}
