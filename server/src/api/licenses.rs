//! `/functions/v1`: what apps on devices ask.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::license::{Activation, Verdict};
use foldwork_engine::workspace::licenses::{Device, Usage, Validation};
use foldwork_engine::{Engine, Error, Unlocker};
use poem::web::Data;
use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::Section;
use crate::auth::Unlock;
use crate::http::error::{ApiResult, answer};
use crate::wire::activation::ActivationBody;
use crate::wire::body::{Body, Written};
use crate::wire::closed_sets::{LicenseCodes, LicenseStates, PlanStates, Scopes, Word};
use crate::wire::plan::LimitsBody;

pub struct Api;

/// How long an answer is good for, and how long beyond that a device works that cannot ask; seconds.
const TTL_S: i64 = 86_400;
const GRACE_S: i64 = 604_800;
/// The longest nonce, in characters.
const LONGEST_NONCE: usize = 200;

/// A device that asks whether it may work.
#[derive(Object, Deserialize)]
struct ValidateLicense {
    /// What the device calls itself, the same each time.
    #[oai(rename = "instanceId")]
    #[serde(rename = "instanceId")]
    instance_id: String,
    #[oai(nullable)]
    name: Option<String>,
    #[oai(nullable)]
    platform: Option<String>,
    #[oai(nullable)]
    app_version: Option<String>,
    /// Told again in the answer, so that an old one cannot be shown for a new one.
    #[oai(nullable)]
    nonce: Option<String>,
}

/// A device that stops working.
#[derive(Object, Deserialize)]
struct DeactivateLicense {
    #[oai(rename = "instanceId")]
    #[serde(rename = "instanceId")]
    instance_id: String,
}

/// Whether a device may work, and until when it need not ask again.
#[derive(Object, Serialize)]
struct License {
    valid: bool,
    code: Word<LicenseCodes>,
    status: Word<LicenseStates>,
    /// The same for a person.
    detail: String,
    /// The device, where it is known.
    #[oai(nullable)]
    activation: Option<ActivationBody>,
    /// Where there is no room for the device: those that are active.
    activations: Vec<ActivationBody>,
    usage: LicenseUsage,
    limits: LimitsBody,
    plan: LicensePlan,
    scopes: Vec<Word<Scopes>>,
    cache: Cache,
    server_time: String,
    #[oai(nullable)]
    nonce: Option<String>,
    /// Ed25519, in base64, over the rest of this body in its canonical form (RFC 8785).
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// What of the room is used.
#[derive(Object, Serialize)]
struct LicenseUsage {
    activations: u64,
    storage_bytes: u64,
    projects: u64,
    agents: u64,
}

/// The plan by which it is used.
#[derive(Object, Serialize)]
struct LicensePlan {
    id: String,
    name: String,
    status: Word<PlanStates>,
    #[oai(nullable)]
    trial_ends_at: Option<String>,
}

/// How long the answer may be kept.
#[derive(Object, Serialize)]
struct Cache {
    ttl_seconds: i64,
    grace_seconds: i64,
    /// From then on the device asks again.
    revalidate_after: String,
    /// Until then it works without an answer.
    offline_until: String,
}

/// A device that may be activated again.
#[derive(Object, Serialize)]
struct Deactivated {
    deactivated: bool,
    activation: ActivationBody,
}

/// The public key by which answers are checked.
#[derive(Object, Serialize)]
struct LicenseKey {
    /// `Ed25519`.
    algorithm: String,
    /// The 32 bytes of the key, in base64.
    public_key: String,
    /// The same as a JSON Web Key.
    jwk: LicenseJwk,
}

/// A public key as RFC 8037 writes it.
#[derive(Object, Serialize)]
struct LicenseJwk {
    kty: String,
    crv: String,
    x: String,
    r#use: String,
    alg: String,
}

#[OpenApi(tag = "Section::License")]
impl Api {
    /// Whether a device may work. The first time it asks it is activated, as far as the plan has room.
    ///
    /// A device without room, and one that was revoked, are answered 200 with `valid: false`.
    #[oai(path = "/validate-license", method = "post", operation_id = "validate_license")]
    async fn validate_license(&self, access: Unlock, body: Body<ValidateLicense>) -> ApiResult<Written<License>> {
        let ValidateLicense { instance_id, name, platform, app_version, nonce } = body.value;
        if nonce.as_ref().is_some_and(|nonce| nonce.chars().count() > LONGEST_NONCE) {
            let message = format!("expected at most {LONGEST_NONCE} characters");
            return answer(Err(Error::invalid_at("/nonce", message)));
        }
        let device = Device { instance_id, name, platform, app_version };
        let (validation, usage) = answer(access.0.validate_device(device).await)?;
        let license = License::new(&access.0, &validation, usage, nonce);
        Ok(Written::new(&answer(signed(&access.0, license).await)?))
    }

    /// Forgets a device, whose place is free then. One that was revoked stays so.
    ///
    /// For a device that is given away or set up anew.
    #[oai(path = "/deactivate-license", method = "post", operation_id = "deactivate_license")]
    async fn deactivate_license(
        &self,
        access: Unlock,
        body: Body<DeactivateLicense>,
    ) -> ApiResult<Written<Deactivated>> {
        let device = Device { instance_id: body.value.instance_id, ..Device::default() };
        let activation = answer(access.0.deactivate_device(device).await)?;
        Ok(Written::new(&Deactivated { deactivated: true, activation: ActivationBody::from(&activation) }))
    }

    /// The key by which answers about licenses are checked. Anybody may ask.
    ///
    /// It is Ed25519, and the same for all of the server's workspaces.
    #[oai(path = "/license-key", method = "get", operation_id = "get_license_key")]
    async fn get_license_key(&self, engine: Data<&Arc<Engine>>) -> ApiResult<Written<LicenseKey>> {
        let key = answer(engine.license_key().await)?;
        Ok(Written::new(&LicenseKey {
            algorithm: "Ed25519".into(),
            public_key: STANDARD.encode(&key),
            jwk: LicenseJwk {
                kty: "OKP".into(),
                crv: "Ed25519".into(),
                x: URL_SAFE_NO_PAD.encode(&key),
                r#use: "sig".into(),
                alg: "EdDSA".into(),
            },
        }))
    }
}

impl License {
    fn new(access: &Unlocker, validation: &Validation, usage: Usage, nonce: Option<String>) -> License {
        let Validation { verdict, activation, active, now } = validation;
        let (code, status, detail) = match verdict {
            Verdict::Valid => ("VALID", "active", "the device is activated"),
            Verdict::LimitReached => {
                ("ACTIVATION_LIMIT_REACHED", "limit_reached", "as many devices are activated as the plan allows")
            }
            Verdict::Revoked => ("DEVICE_REVOKED", "revoked", "the device was revoked"),
        };
        let plan = access.caller().plan();
        let devices: &[Activation] = if *verdict == Verdict::LimitReached { active } else { &[] };
        License {
            valid: *verdict == Verdict::Valid,
            code: code.into(),
            status: status.into(),
            detail: detail.into(),
            activation: activation.as_ref().map(ActivationBody::from),
            activations: devices.iter().map(ActivationBody::from).collect(),
            usage: LicenseUsage {
                activations: active.len() as u64,
                storage_bytes: usage.storage_bytes,
                projects: usage.projects,
                agents: usage.agents,
            },
            limits: plan.limits.into(),
            plan: LicensePlan {
                id: plan.id.clone(),
                name: plan.name.clone(),
                status: plan.status.name().into(),
                trial_ends_at: plan.trial_ends_at.map(format_date),
            },
            scopes: access.caller().scopes().iter().map(|scope| scope.name().into()).collect(),
            cache: Cache::new(*verdict, *now),
            server_time: format_date(*now),
            nonce,
            signature: None,
        }
    }
}

impl Cache {
    /// Only a device that may work may do so without asking.
    fn new(verdict: Verdict, now: i64) -> Cache {
        let (ttl_ms, grace_ms) = if verdict == Verdict::Valid { (TTL_S * 1_000, GRACE_S * 1_000) } else { (0, 0) };
        Cache {
            ttl_seconds: TTL_S,
            grace_seconds: GRACE_S,
            revalidate_after: format_date(now.saturating_add(ttl_ms)),
            offline_until: format_date(now.saturating_add(ttl_ms + grace_ms)),
        }
    }
}

async fn signed(access: &Unlocker, license: License) -> Result<License, Error> {
    let canonical = serde_json_canonicalizer::to_vec(&license).map_err(Error::internal)?;
    let signature = access.sign(canonical).await?;
    Ok(License { signature: Some(STANDARD.encode(signature)), ..license })
}
