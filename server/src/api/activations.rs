//! `/license/activations`: the devices of a user.

use foldwork_engine::model::license::Activation;
use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::{Path, Query};

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::wire::activation::ActivationBody;
use crate::wire::body::JsonResponse;
use crate::wire::list::{ListOrder, ListPart, time_key};
use crate::wire::page::{PageBody, PageBytes, listed};
use crate::wire::response::no_content;

pub struct Api;

listed!(ActivationBody as "ActivationPage": "A page of the caller's devices.");

no_content!(ActivationRevocationResponse: "The device was revoked.");

#[OpenApi(tag = "Section::License")]
impl Api {
    /// Lists the caller's devices, oldest first, including revoked devices.
    ///
    /// Active devices count towards the plan's limit, and revoked devices do not. All devices are on one page, unless
    /// the page reaches `limit` or its maximum size in bytes.
    #[oai(path = "/license/activations", method = "get", operation_id = "list_activations")]
    async fn list_activations(
        &self,
        access: ApiRead,
        /// Rows per page, 1 to 200. By default, only the size of a page in bytes is limited.
        #[oai(name = "limit")]
        Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<ActivationBody>>> {
        let part = ListPart { list: "activations", rows, cursor: cursor.as_deref(), bytes: **bytes };
        let devices = access.0.list_activations().await?;
        let order = |device: &Activation| time_key(device.activated_at, &device.id);
        Ok(part.of(&devices, ListOrder::Ascending, order, |device| ActivationBody::from(device))?)
    }

    /// Revokes one of the caller's devices. A revoked device no longer counts towards the plan's limit, and its next
    /// validation fails.
    ///
    /// The revocation applies to the device's id, whichever key the device uses. The device can be activated again only
    /// under another id. The server keeps the last 100 revoked devices of a user, and forgets earlier revocations.
    #[oai(path = "/license/activations/:activation_id", method = "delete", operation_id = "revoke_activation")]
    async fn revoke_activation(
        &self,
        access: ApiWrite,
        activation_id: Path<String>,
    ) -> ApiResult<ActivationRevocationResponse> {
        access.0.revoke_activation(&activation_id).await?;
        Ok(ActivationRevocationResponse::Done)
    }
}
