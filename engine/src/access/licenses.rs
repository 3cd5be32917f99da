//! Licenses: the devices on which a user has activated the apps, and signatures on what these are told.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use uuid::Uuid;

use super::Access;
use crate::error::{Error, Result};
use crate::model::access::Caller;
use crate::model::license::{Activation, Verdict};
use crate::store;
use crate::store::retry;

/// Devices that are active for one user, at most, whatever the plan allows: all of them are read where one asks.
const MOST_ACTIVE: u64 = 1_000;
/// Revoked devices that are remembered for one user, so that they do not come back. When more are revoked, those that
/// were revoked first are forgotten.
const MOST_REVOKED: usize = 100;

/// A device as it presents itself.
#[derive(Debug, Clone, Default)]
pub struct Device {
    pub instance_id: String,
    pub name: Option<String>,
    pub platform: Option<String>,
    pub app_version: Option<String>,
}

/// What came of a device's question, and the user's devices after it.
#[derive(Debug, Clone)]
pub struct Validation {
    pub verdict: Verdict,
    /// The device, where it is known.
    pub activation: Option<Activation>,
    /// Those that are active, the oldest first.
    pub active: Vec<Activation>,
    /// Milliseconds since the epoch.
    pub now: i64,
}

impl Access {
    /// Activates a device of the caller's, or finds it active already. As many are active as the caller's plan allows,
    /// however many ask at once, and wherever.
    pub async fn validate_device(&self, caller: &Caller, device: &Device) -> Result<Validation> {
        let (user_id, limit, now) = (&caller.user_id, caller.plan.limits.activations, self.clock.now_ms());
        self.with_devices(user_id, |devices| Ok(validated(user_id, device, devices, limit, now))).await
    }

    /// Forgets a device of a user, which may be activated again; one that was revoked stays so.
    pub async fn deactivate_device(&self, user_id: &Arc<str>, instance_id: &str) -> Result<Activation> {
        self.with_devices(user_id, |devices| {
            let found = active(devices).into_iter().find(|one| one.instance_id == instance_id);
            let found = found.ok_or_else(|| Error::not_found("activation", instance_id))?;
            Ok((Change::Forget(found.id.clone()), found))
        })
        .await
    }

    /// Revokes a device of a user: it does not come back by itself.
    pub async fn revoke_device(&self, user_id: &Arc<str>, id: &str) -> Result<()> {
        let now = self.clock.now_ms();
        self.with_devices(user_id, |devices| {
            let found = active(devices).into_iter().find(|one| *one.id == *id);
            let found = found.ok_or_else(|| Error::not_found("activation", id))?;
            Ok((Change::Revoke(Activation { revoked_at: Some(now), ..found }, forgotten(devices)), ()))
        })
        .await
    }

    /// All devices of a user, those that were revoked too; the oldest first.
    pub async fn devices_of(&self, user_id: &str) -> Result<Vec<Activation>> {
        Ok(self.control.read_activations(user_id).await?.activations)
    }

    /// Decides on the devices of a user, again where others decided meanwhile.
    async fn with_devices<T>(&self, user_id: &str, decide: impl Fn(&[Activation]) -> Result<(Change, T)>) -> Result<T> {
        let _turn = self.turns.take(user_id).await;
        for wait in retry::waits() {
            let read = self.control.read_activations(user_id).await?;
            let (change, decided) = decide(&read.activations)?;
            let written = match &change {
                Change::None => Ok(()),
                Change::Write(activation) => self.control.write_activation(activation, &[], &read).await,
                Change::Revoke(activation, leaving) => self.control.write_activation(activation, leaving, &read).await,
                Change::Forget(id) => self.control.delete_activation(user_id, id, &read).await,
            };
            match written {
                Err(store::Error::Conflict) => tokio::time::sleep(Duration::from_millis(wait)).await,
                other => return Ok(other.map(|()| decided)?),
            }
        }
        Err(store::Error::Conflict.into())
    }

    /// The Ed25519 signature on a message.
    pub async fn sign_license(&self, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.license_pair().await?.sign(message).as_ref().to_vec())
    }

    /// The key by which whoever asks checks these signatures.
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

/// What becomes of the devices of a user.
enum Change {
    None,
    Write(Activation),
    /// The device that is revoked, and those that leave for it.
    Revoke(Activation, Vec<Arc<str>>),
    Forget(Arc<str>),
}

/// The revoked devices that leave when one more is revoked.
fn forgotten(devices: &[Activation]) -> Vec<Arc<str>> {
    let mut revoked: Vec<&Activation> = devices.iter().filter(|one| one.revoked_at.is_some()).collect();
    revoked.sort_by_key(|one| one.revoked_at);
    let over = (revoked.len() + 1).saturating_sub(MOST_REVOKED);
    revoked.into_iter().take(over).map(|one| one.id.clone()).collect()
}

/// What is decided on a device that asks.
fn validated(
    user_id: &Arc<str>,
    device: &Device,
    devices: &[Activation],
    limit: Option<u64>,
    now: i64,
) -> (Change, Validation) {
    let active = active(devices);
    let known = devices.iter().find(|known| known.instance_id == device.instance_id);
    if let Some(revoked) = known.filter(|known| known.revoked_at.is_some()) {
        let activation = Some(revoked.clone());
        return (Change::None, Validation { verdict: Verdict::Revoked, activation, active, now });
    }
    let has_room = (active.len() as u64) < limit.unwrap_or(MOST_ACTIVE).min(MOST_ACTIVE);
    if known.is_none() && !has_room {
        return (Change::None, Validation { verdict: Verdict::LimitReached, activation: None, active, now });
    }
    let validated = presented(user_id, device, known, now);
    let mut active: Vec<Activation> = active.into_iter().filter(|one| one.id != validated.id).collect();
    active.push(validated.clone());
    active.sort_by(|a, b| (a.activated_at, &a.id).cmp(&(b.activated_at, &b.id)));
    let activation = Some(validated.clone());
    (Change::Write(validated), Validation { verdict: Verdict::Valid, activation, active, now })
}

fn active(devices: &[Activation]) -> Vec<Activation> {
    devices.iter().filter(|one| one.revoked_at.is_none()).cloned().collect()
}

/// A device as it is kept once it has presented itself. What it does not say stays as it was.
fn presented(user_id: &Arc<str>, device: &Device, known: Option<&Activation>, now: i64) -> Activation {
    let name = format!("activation/{user_id}/{}", device.instance_id);
    let said = |said: &Option<String>, before: fn(&Activation) -> &Option<String>| {
        said.clone().or_else(|| known.and_then(|known| before(known).clone()))
    };
    Activation {
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string().into(),
        user_id: user_id.clone(),
        instance_id: device.instance_id.clone(),
        name: said(&device.name, |known| &known.name),
        platform: said(&device.platform, |known| &known.platform),
        app_version: said(&device.app_version, |known| &known.app_version),
        activated_at: known.map_or(now, |known| known.activated_at),
        last_validated_at: now,
        revoked_at: None,
    }
}
