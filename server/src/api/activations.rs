//! `/license/activations`: the devices of a user.

use poem_openapi::param::Path;
use poem_openapi::{ApiResponse, OpenApi};

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::wire::activation::ActivationBody;
use crate::wire::body::JsonResponse;
use crate::wire::page::{Listed, PageBody};

pub struct Api;

impl Listed for ActivationBody {
    const PAGE: &'static str = "ActivationPage";
    const DESCRIPTION: &'static str = "All devices of the caller.";
}

#[derive(ApiResponse)]
enum Revoked {
    /// The device was revoked.
    #[oai(status = 204)]
    Done,
}

#[OpenApi(tag = "Section::License")]
impl Api {
    /// Lists the caller's devices, oldest first, including revoked devices.
    ///
    /// Only active devices count towards the plan's limit. Revoked devices do not.
    #[oai(path = "/license/activations", method = "get", operation_id = "list_activations")]
    async fn list_activations(&self, access: ApiRead) -> ApiResult<JsonResponse<PageBody<ActivationBody>>> {
        let activations = access.0.list_activations().await?;
        let data = activations.iter().map(ActivationBody::from).collect();
        Ok(JsonResponse::new(&PageBody { data, next_cursor: None }))
    }

    /// Revokes one of the caller's devices. A revoked device no longer counts towards the plan's limit, and its next
    /// validation fails.
    ///
    /// The revocation applies to the device's id with any key. The device can be activated again only under another id.
    #[oai(path = "/license/activations/:activation_id", method = "delete", operation_id = "revoke_activation")]
    async fn revoke_activation(&self, access: ApiWrite, activation_id: Path<String>) -> ApiResult<Revoked> {
        access.0.revoke_activation(&activation_id).await?;
        Ok(Revoked::Done)
    }
}
