//! The JSON of a project in responses.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::project::ProjectView;

use super::json::Text;
use super::shown::shown;

shown! {
    /// A project, which groups aggregates of the workspace.
    #[oai(rename = "Project")]
    pub struct ProjectBody from project: &Aggregate where {
        let view = ProjectView::from(project);
    };

    id: Text = view.id.into(),
    name: Text = view.name.into(),
    slug: Text = view.slug.into(),
    description: Option<Text> = view.description.map(Text),
    version: u64 = view.version,
    created_at: String = format_date(view.created_at),
    updated_at: String = format_date(view.updated_at),
}
