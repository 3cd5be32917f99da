//! The JSON of workspaces in responses.

use foldwork_engine::model::access::WorkspaceRecord;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::deletion::ListedWorkspace;
use poem_openapi::Object;
use serde::Serialize;

/// A workspace.
#[derive(Object, Serialize)]
#[oai(rename = "Workspace")]
pub struct WorkspaceBody {
    pub id: String,
    pub name: String,
    pub slug: String,
    /// The id of the user who owns the workspace. The plan of this user limits the workspace.
    pub owner_id: String,
    pub created_at: String,
    /// The time at which the workspace will be deleted, or null if no deletion is scheduled.
    pub delete_at: Option<String>,
}

impl From<&ListedWorkspace> for WorkspaceBody {
    fn from(workspace: &ListedWorkspace) -> WorkspaceBody {
        let ListedWorkspace { record, delete_at } = workspace;
        let WorkspaceRecord { id, name, slug, owner_id, created_at } = record;
        WorkspaceBody {
            id: id.to_string(),
            name: name.clone(),
            slug: slug.clone(),
            owner_id: owner_id.to_string(),
            created_at: format_date(*created_at),
            delete_at: delete_at.map(format_date),
        }
    }
}
