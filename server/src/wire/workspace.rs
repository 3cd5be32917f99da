//! The JSON of the workspace in responses.

use foldwork_engine::model::access::WorkspaceRecord;
use foldwork_engine::model::date::format_date;
use poem_openapi::Object;
use serde::Serialize;

/// The caller's workspace.
#[derive(Object, Serialize)]
#[oai(rename = "Workspace")]
pub struct WorkspaceBody {
    pub id: String,
    pub name: String,
    pub slug: String,
    pub owner_id: String,
    pub created_at: String,
}

impl From<&WorkspaceRecord> for WorkspaceBody {
    fn from(record: &WorkspaceRecord) -> WorkspaceBody {
        WorkspaceBody {
            id: record.id.to_string(),
            name: record.name.clone(),
            slug: record.slug.clone(),
            owner_id: record.owner_id.to_string(),
            created_at: format_date(record.created_at),
        }
    }
}
