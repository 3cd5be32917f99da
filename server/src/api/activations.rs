//! `/license/activations`: the devices of a user, as the user sees them.

use poem_openapi::param::Path;
use poem_openapi::{ApiResponse, Object, OpenApi};

use super::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::{ApiResult, answer};
use crate::wire::activation::ActivationBody;
use crate::wire::body::Written;
use crate::wire::page::PageBody;

pub struct Api;

/// All devices of the caller.
#[derive(Object)]
struct ActivationPage {
    data: Vec<ActivationBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

#[derive(ApiResponse)]
enum Revoked {
    /// The device is refused from now on.
    #[oai(status = 204)]
    Done,
}

#[OpenApi(tag = "Section::License")]
impl Api {
    /// The caller's devices, those that were revoked too; the oldest first.
    ///
    /// Their number that is active is what counts against the plan.
    #[oai(path = "/license/activations", method = "get", operation_id = "list_activations")]
    async fn list_activations(&self, access: ApiRead) -> ApiResult<Written<ActivationPage>> {
        let activations = answer(access.0.list_activations().await)?;
        let data: Vec<ActivationBody> = activations.iter().map(ActivationBody::from).collect();
        Ok(Written::new(&PageBody { data, next_cursor: None }))
    }

    /// Revokes a device of the caller's. It is told so when it asks next, and its place is free.
    ///
    /// Revoked it stays, whatever key it comes with, until it is activated under another id.
    #[oai(path = "/license/activations/:activation_id", method = "delete", operation_id = "revoke_activation")]
    async fn revoke_activation(&self, access: ApiWrite, activation_id: Path<String>) -> ApiResult<Revoked> {
        answer(access.0.revoke_activation(&activation_id).await)?;
        Ok(Revoked::Done)
    }
}
