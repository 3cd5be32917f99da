//! `/functions/v1`: license operations for apps on devices.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::license::{Activation, LicenseVerdict};
use foldwork_engine::model::plan::UserPlan;
use foldwork_engine::workspace::licenses::{Device, PlanUsage, Validation};
use foldwork_engine::{Engine, Error, Unlocker};
use poem::web::Data;
use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::section::Section;
use crate::auth::Unlock;
use crate::http::error::ApiResult;
use crate::wire::activation::ActivationBody;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{LicenseCodes, LicenseStates, OneOf, PlanStates, Scopes};
use crate::wire::plan::LimitsBody;
use crate::wire::shown::shown;

pub struct Api;

/// The time for which a validation is valid, in seconds.
const TTL_S: i64 = 86_400;
/// The time for which a device may work offline after its validation has expired, in seconds.
const GRACE_S: i64 = 604_800;
/// The maximum length of a nonce in characters.
const MAX_NONCE: usize = 200;

/// A device to validate.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValidateLicense {
    /// The id of the device. The device chooses the id and sends the same id with every validation.
    #[oai(rename = "instanceId")]
    #[serde(rename = "instanceId")]
    instance_id: String,
    name: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    /// A random text that the response repeats. A client that checks the nonce detects a replayed old response.
    nonce: Option<String>,
}

/// A device to deactivate.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeactivateLicense {
    #[oai(rename = "instanceId")]
    #[serde(rename = "instanceId")]
    instance_id: String,
}

shown! {
    /// The result of a validation: whether the device may work, and the time until which the response is valid.
    struct License from (access, validation, usage, nonce): (&Unlocker, &Validation, PlanUsage, Option<String>) where {
        let Validation { verdict, activation, active, now } = validation;
        let (code, status, detail) = match verdict {
            LicenseVerdict::Valid => ("VALID", "active", "the device is activated"),
            LicenseVerdict::LimitReached => {
                ("ACTIVATION_LIMIT_REACHED", "limit_reached", "the plan's limit of activated devices is reached")
            }
            LicenseVerdict::Revoked => ("DEVICE_REVOKED", "revoked", "the device was revoked"),
        };
        let plan = access.caller().plan();
        let devices: &[Activation] = if *verdict == LicenseVerdict::LimitReached { active } else { &[] };
    };

    valid: bool = *verdict == LicenseVerdict::Valid,
    code: OneOf<LicenseCodes> = code.into(),
    status: OneOf<LicenseStates> = status.into(),
    /// A description of `code` for people.
    detail: String = detail.into(),
    /// The activation of the device, or null if the device has no activation.
    activation: Option<ActivationBody> = activation.as_ref().map(ActivationBody::from),
    /// The user's active devices if the device was rejected because the plan's limit is reached, otherwise an empty
    /// list.
    activations: Vec<ActivationBody> = devices.iter().map(ActivationBody::from).collect(),
    usage: LicenseUsage = LicenseUsage::from((active.len(), usage)),
    limits: LimitsBody = plan.limits.into(),
    plan: LicensePlan = plan.into(),
    scopes: Vec<OneOf<Scopes>> = access.caller().scopes().iter().map(|scope| scope.name().into()).collect(),
    cache: Cache = Cache::from((*verdict, *now)),
    server_time: String = format_date(*now),
    nonce: Option<String> = nonce,
    /// An Ed25519 signature in base64. The signed text is the canonical form (RFC 8785) of this body without
    /// `signature`.
    @read_only signature: Option<String> = None,
}

shown! {
    /// The number of the user's active devices, and the workspace's usage of storage, projects and agents.
    struct LicenseUsage from (devices, usage): (usize, PlanUsage);

    activations: u64 = devices as u64,
    storage_bytes: u64 = usage.storage_bytes,
    projects: u64 = usage.projects,
    agents: u64 = usage.agents,
}

shown! {
    /// The plan that limits the number of devices.
    struct LicensePlan from plan: &UserPlan;

    id: String = plan.id.clone(),
    name: String = plan.name.clone(),
    status: OneOf<PlanStates> = plan.status.name().into(),
    trial_ends_at: Option<String> = plan.trial_ends_at.map(format_date),
}

shown! {
    /// The period for which a client may cache the response.
    struct Cache from (verdict, now): (LicenseVerdict, i64) where {
        // For a rejected device, `revalidate_after` and `offline_until` are the current time.
        let is_valid = verdict == LicenseVerdict::Valid;
        let (ttl_ms, grace_ms) = if is_valid { (TTL_S * 1_000, GRACE_S * 1_000) } else { (0, 0) };
    };

    ttl_seconds: i64 = TTL_S,
    grace_seconds: i64 = GRACE_S,
    /// The time at which the device must validate again.
    revalidate_after: String = format_date(now.saturating_add(ttl_ms)),
    /// The time until which the device may work without reaching the server.
    offline_until: String = format_date(now.saturating_add(ttl_ms + grace_ms)),
}

/// The result of a deactivation. A device that is not revoked may be activated again.
#[derive(Object, Serialize)]
#[oai(rename = "Deactivated")]
struct DeactivationBody {
    deactivated: bool,
    activation: ActivationBody,
}

shown! {
    /// The public key that verifies license signatures.
    struct LicenseKey from key: &[u8];

    /// The signature algorithm, always `Ed25519`.
    algorithm: String = "Ed25519".into(),
    /// The 32 bytes of the key, in base64.
    public_key: String = STANDARD.encode(key),
    /// The same key as a JSON Web Key.
    jwk: LicenseJwk = LicenseJwk::from(key),
}

shown! {
    /// A public key in the format of RFC 8037.
    struct LicenseJwk from key: &[u8];

    kty: String = "OKP".into(),
    crv: String = "Ed25519".into(),
    x: String = URL_SAFE_NO_PAD.encode(key),
    r#use: String = "sig".into(),
    alg: String = "EdDSA".into(),
}

#[OpenApi(tag = "Section::License")]
impl Api {
    /// Validates a device. Activates an unknown device if the plan's limit allows another device.
    ///
    /// If the limit is reached or the device is revoked, the response is 200 with `valid: false`.
    #[oai(path = "/validate-license", method = "post", operation_id = "validate_license")]
    async fn validate_license(&self, access: Unlock, body: Body<ValidateLicense>) -> ApiResult<JsonResponse<License>> {
        let ValidateLicense { instance_id, name, platform, app_version, nonce } = body.value;
        if nonce.as_ref().is_some_and(|nonce| nonce.chars().count() > MAX_NONCE) {
            let message = format!("expected at most {MAX_NONCE} characters");
            return Err(Error::invalid_at("/nonce", message).into());
        }
        let device = Device { instance_id, name, platform, app_version };
        let (validation, usage) = access.0.validate_device(device).await?;
        let license = License::from((&access.0, &validation, usage, nonce));
        Ok(JsonResponse::new(&signed(&access.0, license).await?))
    }

    /// Deactivates a device, which then no longer counts towards the plan's limit. A revoked device stays revoked.
    ///
    /// This operation is meant for devices that are sold or set up again.
    #[oai(path = "/deactivate-license", method = "post", operation_id = "deactivate_license")]
    async fn deactivate_license(
        &self,
        access: Unlock,
        body: Body<DeactivateLicense>,
    ) -> ApiResult<JsonResponse<DeactivationBody>> {
        let device = Device { instance_id: body.value.instance_id, ..Device::default() };
        let activation = access.0.deactivate_device(device).await?;
        Ok(JsonResponse::new(&DeactivationBody { deactivated: true, activation: ActivationBody::from(&activation) }))
    }

    /// Returns the public key that verifies license signatures. The request needs no credential.
    ///
    /// The key is an Ed25519 key. All workspaces of the server have the same key.
    #[oai(path = "/license-key", method = "get", operation_id = "get_license_key")]
    async fn get_license_key(&self, engine: Data<&Arc<Engine>>) -> ApiResult<JsonResponse<LicenseKey>> {
        let key = engine.license_key().await?;
        Ok(JsonResponse::new(&LicenseKey::from(&*key)))
    }
}

async fn signed(access: &Unlocker, license: License) -> Result<License, Error> {
    let canonical = serde_json_canonicalizer::to_vec(&license).map_err(Error::internal)?;
    let signature = access.sign(canonical).await?;
    Ok(License { signature: Some(STANDARD.encode(signature)), ..license })
}
