//! `/license/activations`: the devices of a user.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::license::Activation;
use poem_openapi::param::Path;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::Serialize;

use super::Section;
use super::body::Written;
use super::error::{ApiResult, answer};
use super::page::PageBody;
use crate::auth::{ApiRead, ApiWrite};

pub struct Api;

/// An activated or revoked device.
#[derive(Object, Serialize)]
#[oai(rename = "Activation")]
pub struct ActivationBody {
    id: String,
    /// The id that the device chose.
    instance_id: String,
    #[oai(nullable)]
    name: Option<String>,
    #[oai(nullable)]
    platform: Option<String>,
    #[oai(nullable)]
    app_version: Option<String>,
    created: String,
    activated_at: String,
    last_validated_at: String,
    #[oai(nullable)]
    revoked_at: Option<String>,
}

impl From<&Activation> for ActivationBody {
    fn from(activation: &Activation) -> ActivationBody {
        ActivationBody {
            id: activation.id.to_string(),
            instance_id: activation.instance_id.clone(),
            name: activation.name.clone(),
            platform: activation.platform.clone(),
            app_version: activation.app_version.clone(),
            created: format_date(activation.activated_at),
            activated_at: format_date(activation.activated_at),
            last_validated_at: format_date(activation.last_validated_at),
            revoked_at: activation.revoked_at.map(format_date),
        }
    }
}

/// All devices of the caller.
#[derive(Object)]
struct ActivationPage {
    data: Vec<ActivationBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

#[derive(ApiResponse)]
enum Revoked {
    /// The device was revoked.
    #[oai(status = 204)]
    Done,
}

#[OpenApi(tag = "Section::License")]
impl Api {
    /// Lists the caller's devices, oldest first, including revoked ones.
    ///
    /// Only active devices count towards the plan's limit.
    #[oai(path = "/license/activations", method = "get", operation_id = "list_activations")]
    async fn list_activations(&self, access: ApiRead) -> ApiResult<Written<ActivationPage>> {
        let activations = answer(access.0.list_activations().await)?;
        let data: Vec<ActivationBody> = activations.iter().map(ActivationBody::from).collect();
        Ok(Written::new(&PageBody { data, next_cursor: None }))
    }

    /// Revokes one of the caller's devices, which frees its place in the plan. The device learns of the revocation at
    /// its next validation.
    ///
    /// The device stays revoked, whatever key it uses, until it is activated under another id.
    #[oai(path = "/license/activations/:activation_id", method = "delete", operation_id = "revoke_activation")]
    async fn revoke_activation(&self, access: ApiWrite, activation_id: Path<String>) -> ApiResult<Revoked> {
        answer(access.0.revoke_activation(&activation_id).await)?;
        Ok(Revoked::Done)
    }
}
