//! `/workspace`: the caller's workspace.

use poem_openapi::OpenApi;

use super::section::Section;
use crate::auth::ProfileRead;
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;
use crate::wire::workspace::WorkspaceBody;

pub struct Api;

#[OpenApi(tag = "Section::Workspace")]
impl Api {
    /// Returns the authenticated user's workspace.
    ///
    /// Each request accesses one workspace, which the header `Foldwork-Workspace` selects by its id. Without this
    /// header, the request accesses the workspace of the key or, with a token of an identity provider, the first
    /// workspace that the user joined.
    #[oai(path = "/workspace", method = "get", operation_id = "get_workspace")]
    async fn get_workspace(&self, access: ProfileRead) -> ApiResult<JsonResponse<WorkspaceBody>> {
        Ok(JsonResponse::new(&WorkspaceBody::from(&access.0.workspace().await?)))
    }
}
