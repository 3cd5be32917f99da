//! Licenses: the devices on which a user has activated the apps, and the signatures of license responses.

use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use uuid::Uuid;

use super::Access;
use crate::error::{Error, Result};
use crate::model::access::Caller;
use crate::model::license::{Activation, LicenseVerdict};
use crate::store::control::activations::DeviceChange;
use crate::store::retry;

/// The maximum number of active devices per user, regardless of the plan, because each request reads all devices of a
/// user.
const MAX_ACTIVE: u64 = 1_000;
/// The maximum number of revoked devices that are stored per user. A revoked device cannot activate itself again while
/// it is stored. Above the maximum, the devices that were revoked first are deleted.
const MAX_REVOKED: usize = 100;

/// The data that a device sends about itself.
#[derive(Debug, Clone, Default)]
pub struct Device {
    pub instance_id: String,
    pub name: Option<String>,
    pub platform: Option<String>,
    pub app_version: Option<String>,
}

/// The result of a validation, and the user's devices after the validation.
#[derive(Debug, Clone)]
pub struct Validation {
    pub verdict: LicenseVerdict,
    /// The device. `None` if the verdict is [`LicenseVerdict::LimitReached`].
    pub activation: Option<Activation>,
    /// The active devices, oldest first.
    pub active: Vec<Activation>,
    /// The time of the validation, in milliseconds since the epoch.
    pub now: i64,
}

impl Access {
    /// Activates a device of the caller, or updates the record of an active device. A revoked device, or a new device
    /// over the limit of the caller's plan, stays inactive, and the verdict has the reason. The limit also applies to
    /// concurrent requests and across servers.
    pub async fn validate_device(&self, caller: &Caller, device: &Device) -> Result<Validation> {
        let (user_id, limit, now) = (&caller.user_id, caller.plan.limits.activations, self.clock.now_ms());
        self.with_devices(user_id, |devices| Ok(validated(user_id, device, devices, limit, now))).await
    }

    /// Removes an active device of a user. The device may be activated again. Revoked devices stay revoked.
    pub async fn deactivate_device(&self, user_id: &Arc<str>, instance_id: &str) -> Result<Activation> {
        self.with_devices(user_id, |devices| {
            let found = active(devices).into_iter().find(|one| one.instance_id == instance_id);
            let found = found.ok_or_else(|| Error::not_found("activation", instance_id))?;
            Ok((Some(DeviceChange { written: None, deleted: vec![found.id.clone()] }), found))
        })
        .await
    }

    /// Revokes a device of a user. The device cannot activate itself again until its record is deleted. The record is
    /// deleted when [`MAX_REVOKED`] further devices of the user have been revoked.
    pub async fn revoke_device(&self, user_id: &Arc<str>, id: &str) -> Result<()> {
        let now = self.clock.now_ms();
        self.with_devices(user_id, |devices| {
            let found = active(devices).into_iter().find(|one| *one.id == *id);
            let found = found.ok_or_else(|| Error::not_found("activation", id))?;
            let written = Some(Activation { revoked_at: Some(now), ..found });
            Ok((Some(DeviceChange { written, deleted: forgotten(devices) }), ()))
        })
        .await
    }

    /// Calls `decide` with the devices of a user and stores the resulting change. If another server has changed the
    /// devices since they were read, calls `decide` again.
    async fn with_devices<T>(
        &self,
        user_id: &str,
        decide: impl Fn(&[Activation]) -> Result<(Option<DeviceChange>, T)>,
    ) -> Result<T> {
        let _turn = self.change_locks.lock(user_id).await;
        let attempt = || async {
            let read = self.control.read_activations(user_id).await?;
            let (change, decided) = decide(&read.activations)?;
            if let Some(change) = &change {
                self.control.change_devices(user_id, change, &read).await?;
            }
            Ok::<_, Error>(decided)
        };
        retry::after_conflicts(attempt).await
    }

    /// Returns the Ed25519 signature of a message.
    pub async fn sign_license(&self, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.license_pair().await?.sign(message).as_ref().to_vec())
    }

    /// Returns the public key that verifies the signatures of license responses.
    pub async fn license_key(&self) -> Result<Vec<u8>> {
        Ok(self.license_pair().await?.public_key().as_ref().to_vec())
    }

    async fn license_pair(&self) -> Result<Arc<Ed25519KeyPair>> {
        if let Some(pair) = self.license_pair.get() {
            return Ok(pair.clone());
        }
        let new = hex::encode(self.clock.random());
        let seed = self.control.license_seed(&new, self.clock.now_ms()).await?;
        let seed = hex::decode(seed).map_err(Error::internal)?;
        let pair = Arc::new(Ed25519KeyPair::from_seed_unchecked(&seed).map_err(Error::internal)?);
        Ok(self.license_pair.get_or_init(|| pair).clone())
    }
}

/// Returns the ids of the revoked devices to delete when one more device is revoked, so that at most [`MAX_REVOKED`]
/// revoked devices are stored. Selects the devices that were revoked first.
fn forgotten(devices: &[Activation]) -> Vec<Arc<str>> {
    let mut revoked: Vec<&Activation> = devices.iter().filter(|one| one.revoked_at.is_some()).collect();
    revoked.sort_by_key(|one| one.revoked_at);
    let over = (revoked.len() + 1).saturating_sub(MAX_REVOKED);
    revoked.into_iter().take(over).map(|one| one.id.clone()).collect()
}

/// Validates a device. Returns the change to the user's devices, or `None` if the device is rejected. Also returns the
/// result of the validation.
fn validated(
    user_id: &Arc<str>,
    device: &Device,
    devices: &[Activation],
    limit: Option<u64>,
    now: i64,
) -> (Option<DeviceChange>, Validation) {
    let active = active(devices);
    let known = devices.iter().find(|known| known.instance_id == device.instance_id);
    if let Some(revoked) = known.filter(|known| known.revoked_at.is_some()) {
        let activation = Some(revoked.clone());
        return (None, Validation { verdict: LicenseVerdict::Revoked, activation, active, now });
    }
    let is_below_limit = (active.len() as u64) < limit.unwrap_or(MAX_ACTIVE).min(MAX_ACTIVE);
    if known.is_none() && !is_below_limit {
        return (None, Validation { verdict: LicenseVerdict::LimitReached, activation: None, active, now });
    }
    let validated = presented(user_id, device, known, now);
    let mut active: Vec<Activation> = active.into_iter().filter(|one| one.id != validated.id).collect();
    active.push(validated.clone());
    active.sort_by(|a, b| (a.activated_at, &a.id).cmp(&(b.activated_at, &b.id)));
    let activation = Some(validated.clone());
    let change = DeviceChange { written: Some(validated), deleted: Vec::new() };
    (Some(change), Validation { verdict: LicenseVerdict::Valid, activation, active, now })
}

fn active(devices: &[Activation]) -> Vec<Activation> {
    devices.iter().filter(|one| one.revoked_at.is_none()).cloned().collect()
}

/// Returns the record of a device after a validation. Fields that the device does not send stay unchanged.
fn presented(user_id: &Arc<str>, device: &Device, known: Option<&Activation>, now: i64) -> Activation {
    let name = format!("activation/{user_id}/{}", device.instance_id);
    let merged = |sent: &Option<String>, previous: fn(&Activation) -> &Option<String>| {
        sent.clone().or_else(|| known.and_then(|known| previous(known).clone()))
    };
    Activation {
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string().into(),
        user_id: user_id.clone(),
        instance_id: device.instance_id.clone(),
        name: merged(&device.name, |known| &known.name),
        platform: merged(&device.platform, |known| &known.platform),
        app_version: merged(&device.app_version, |known| &known.app_version),
        activated_at: known.map_or(now, |known| known.activated_at),
        last_validated_at: now,
        revoked_at: None,
    }
}
