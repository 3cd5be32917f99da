//! The JSON of a project in responses.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use poem_openapi::Object;
use serde::Serialize;

use super::state::text;

/// A project, which groups aggregates of the workspace.
#[derive(Object, Serialize)]
#[oai(rename = "Project")]
pub struct ProjectBody {
    pub id: String,
    pub name: String,
    pub slug: String,
    #[oai(nullable)]
    pub description: Option<String>,
    pub version: u64,
    pub created_at: String,
    pub updated_at: String,
}

impl From<&Aggregate> for ProjectBody {
    fn from(project: &Aggregate) -> ProjectBody {
        ProjectBody {
            id: project.id.to_string(),
            name: text(project, "name").unwrap_or_default(),
            slug: text(project, "slug").unwrap_or_default(),
            description: text(project, "description"),
            version: project.version,
            created_at: format_date(project.created_at),
            updated_at: format_date(project.last_event_at),
        }
    }
}
