//! The JSON of a project in responses.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::project::ProjectView;
use poem_openapi::Object;
use serde::Serialize;

use super::json::Text;

/// A project, which groups aggregates of the workspace.
#[derive(Object, Serialize)]
#[oai(rename = "Project")]
pub struct ProjectBody {
    id: Text,
    name: Text,
    slug: Text,
    description: Option<Text>,
    version: u64,
    created_at: String,
    updated_at: String,
}

impl From<&Aggregate> for ProjectBody {
    fn from(project: &Aggregate) -> ProjectBody {
        let ProjectView { id, name, slug, description, version, created_at, updated_at } = project.into();
        ProjectBody {
            id: id.into(),
            name: name.into(),
            slug: slug.into(),
            description: description.map(Text),
            version,
            created_at: format_date(created_at),
            updated_at: format_date(updated_at),
        }
    }
}
