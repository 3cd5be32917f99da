//! `/workspaces` and `/users`: all workspaces and users of the installation, for operators.

use foldwork_engine::model::access::Membership;
use foldwork_engine::workspace::deletion::{ListedUser, PageById};
use poem_openapi::param::{Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::Deserialize;

use super::section::Section;
use crate::auth::OperatorWrite;
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{OneOf, Roles};
use crate::wire::page::{PageBody, limit, listed, named_cursor, read_named_cursor};
use crate::wire::plan::PlanBody;
use crate::wire::shown::shown;
use crate::wire::workspace::WorkspaceBody;

pub struct Api;

/// The maximum number of workspaces that a response lists for each user.
const MAX_MEMBERSHIPS: usize = 100;

const WORKSPACES: &str = "workspaces";
const USERS: &str = "users";

listed!(WorkspaceBody as "WorkspacePage": "A page of workspaces.");

shown! {
    /// A user of the installation.
    #[oai(rename = "User")]
    struct UserBody from user: &ListedUser where {
        let record = &user.record;
    };

    id: String = record.id.to_string(),
    name: Option<String> = record.name.as_deref().map(str::to_owned),
    email: Option<String> = record.email.as_deref().map(str::to_owned),
    /// Whether the address counts as verified. An identity provider has verified the address, or the settings trust the
    /// addresses of a provider whose tokens do not state this.
    email_verified: bool = record.email_verified,
    plan: PlanBody = PlanBody::from(&user.plan),
    /// The workspaces of the user in the order of joining, at most 100.
    workspaces: Vec<UserWorkspace> = user.memberships.iter().take(MAX_MEMBERSHIPS).map(UserWorkspace::from).collect(),
}

shown! {
    /// A workspace of a user.
    struct UserWorkspace from member: &Membership;

    id: String = member.workspace_id.to_string(),
    role: OneOf<Roles> = member.role.name().into(),
}

listed!(UserBody as "UserPage": "A page of users.");

/// Changes to a workspace.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeWorkspace {
    /// The new name, 1 to 200 characters.
    name: String,
}

#[OpenApi(tag = "Section::Operators")]
impl Api {
    /// Lists all workspaces of the installation, in the order of their ids.
    ///
    /// Requires an owner of the installation's first workspace (`operator_required`).
    #[oai(path = "/workspaces", method = "get", operation_id = "list_workspaces")]
    async fn list_workspaces(
        &self,
        access: OperatorWrite,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
    ) -> ApiResult<JsonResponse<PageBody<WorkspaceBody>>> {
        let after = read_named_cursor(WORKSPACES, cursor.as_deref())?;
        let page = access.0.list_workspaces(after.as_deref(), limit(rows)?).await?;
        Ok(JsonResponse::new(&page_of(&page, WORKSPACES)))
    }

    /// Changes the name of a workspace.
    ///
    /// Requires an owner of the installation's first workspace (`operator_required`).
    #[oai(path = "/workspaces/:workspace_id", method = "patch", operation_id = "update_workspace")]
    async fn update_workspace(
        &self,
        access: OperatorWrite,
        workspace_id: Path<String>,
        body: Body<ChangeWorkspace>,
    ) -> ApiResult<JsonResponse<WorkspaceBody>> {
        let workspace = access.0.rename_workspace(&workspace_id, &body.name).await?;
        Ok(JsonResponse::new(&WorkspaceBody::from(&workspace)))
    }

    /// Deletes a workspace after a grace period.
    ///
    /// The setting `[workspaces] deletion_grace` is the length of the period, and the response contains the end of the
    /// period in `delete_at`. Until the period ends, the workspace can be used without restrictions, the mailbox of its
    /// owners contains a task about the deletion, and `POST /workspaces/{id}/restore` cancels the deletion. When the
    /// period ends, the events, files, keys, memberships and invitations of the workspace are deleted. The users of the
    /// workspace remain. Repeating the request does not prolong the period. The first workspace cannot be deleted (409
    /// `first_workspace`). Only owners of the first workspace can delete other workspaces (`operator_required`).
    #[oai(path = "/workspaces/:workspace_id", method = "delete", operation_id = "delete_workspace")]
    async fn delete_workspace(
        &self,
        access: OperatorWrite,
        workspace_id: Path<String>,
    ) -> ApiResult<JsonResponse<WorkspaceBody>> {
        let workspace = access.0.delete_workspace(&workspace_id).await?;
        Ok(JsonResponse::new(&WorkspaceBody::from(&workspace)))
    }

    /// Cancels the deletion of a workspace whose grace period has not ended.
    ///
    /// If no deletion is scheduled, the request has no effect. Only owners of the installation's first workspace can do
    /// this (`operator_required`).
    #[oai(path = "/workspaces/:workspace_id/restore", method = "post", operation_id = "restore_workspace")]
    async fn restore_workspace(
        &self,
        access: OperatorWrite,
        workspace_id: Path<String>,
    ) -> ApiResult<JsonResponse<WorkspaceBody>> {
        let workspace = access.0.keep_workspace(&workspace_id).await?;
        Ok(JsonResponse::new(&WorkspaceBody::from(&workspace)))
    }

    /// Lists all users of the installation with their plans and workspaces, in the order of their ids.
    ///
    /// Requires an owner of the installation's first workspace (`operator_required`).
    #[oai(path = "/users", method = "get", operation_id = "list_users")]
    async fn list_users(
        &self,
        access: OperatorWrite,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
    ) -> ApiResult<JsonResponse<PageBody<UserBody>>> {
        let after = read_named_cursor(USERS, cursor.as_deref())?;
        let page = access.0.list_users(after.as_deref(), limit(rows)?).await?;
        Ok(JsonResponse::new(&page_of(&page, USERS)))
    }
}

fn page_of<'a, S, T: From<&'a S>>(page: &'a PageById<S>, list: &str) -> PageBody<T> {
    let next_cursor = page.next.as_deref().map(|id| named_cursor(list, id));
    PageBody { data: page.items.iter().map(T::from).collect(), next_cursor }
}
