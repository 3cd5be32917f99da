//! The JSON of workspaces in responses.

use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::deletion::ListedWorkspace;

use super::shown::shown;

shown! {
    /// A workspace.
    #[oai(rename = "Workspace")]
    pub struct WorkspaceBody from workspace: &ListedWorkspace where {
        let record = &workspace.record;
    };

    pub id: String = record.id.to_string(),
    pub name: String = record.name.clone(),
    pub slug: String = record.slug.clone(),
    /// The id of the user who owns the workspace. The plan of this user limits the workspace.
    pub owner_id: String = record.owner_id.to_string(),
    pub created_at: String = format_date(record.created_at),
    /// The time at which the workspace will be deleted, or null if no deletion is scheduled.
    pub delete_at: Option<String> = workspace.delete_at.map(format_date),
}
