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
    /// A token belongs to one user and one workspace. Everything that the token can access is in that workspace.
    #[oai(path = "/workspace", method = "get", operation_id = "get_workspace")]
    async fn get_workspace(&self, access: ProfileRead) -> ApiResult<JsonResponse<WorkspaceBody>> {
        Ok(JsonResponse::new(&WorkspaceBody::from(&access.0.workspace().await?)))
    }
}
