//! Views of projects for readers.

use std::sync::Arc;

use super::aggregate::Aggregate;

/// A project. Times are in milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct ProjectView {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub slug: Arc<str>,
    pub description: Option<Arc<str>>,
    pub version: u64,
    pub created_at: i64,
    pub updated_at: i64,
}

impl From<&Aggregate> for ProjectView {
    fn from(project: &Aggregate) -> ProjectView {
        ProjectView {
            id: project.id.text(),
            name: project.text("name").unwrap_or_default(),
            slug: project.text("slug").unwrap_or_default(),
            description: project.text("description"),
            version: project.version,
            created_at: project.created_at,
            updated_at: project.last_event_at,
        }
    }
}
