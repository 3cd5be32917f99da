//! Wire types that several sections share, and conversions from the engine's records.

use foldwork_engine::model::access::{KeyRecord, WorkspaceRecord};
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::article::{published_at, published_version};
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::event::Event;
use foldwork_engine::model::value::{Object as Fields, Value};
use poem_openapi::Object;
use serde::Serialize;

use super::json::{AnyObject, AnyValue};
use super::words::{Publication, Scopes, Word};

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

/// A project.
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

/// A key, without its secret.
#[derive(Object, Serialize)]
#[oai(rename = "Key")]
pub struct KeyBody {
    pub id: String,
    pub name: String,
    pub scopes: Vec<Word<Scopes>>,
    /// The part of the key that may be shown, such as `sk_ab12…9f`.
    pub display: String,
    pub created_at: String,
    #[oai(nullable)]
    pub last_used_at: Option<String>,
    #[oai(nullable)]
    pub expires_at: Option<String>,
    /// The id of the key that created this key, or `session:` or `user:` with the id of its creator. The key stops
    /// working with the one it was derived from.
    #[oai(nullable)]
    pub derived_from: Option<String>,
    /// Whether the key is valid for every workspace of its user, not only the one it was created in.
    pub all_workspaces: bool,
}

impl From<&KeyRecord> for KeyBody {
    fn from(key: &KeyRecord) -> KeyBody {
        KeyBody {
            id: key.id.to_string(),
            name: key.name.clone(),
            scopes: key.scopes.iter().map(|scope| scope.name().into()).collect(),
            display: key.display.clone(),
            created_at: format_date(key.created_at),
            last_used_at: key.last_used_at.map(format_date),
            expires_at: key.expires_at.map(format_date),
            derived_from: key.derived_from.as_deref().map(str::to_owned),
            all_workspaces: key.opens_all,
        }
    }
}

/// An event of the log.
#[derive(Object, Serialize)]
#[oai(rename = "Event")]
pub struct EventBody {
    pub event_id: String,
    pub aggregate_id: String,
    pub aggregate_type: String,
    pub event_type: String,
    #[oai(nullable)]
    pub project_id: Option<String>,
    /// The event's number in its stream, from 1.
    pub version: u64,
    /// The event's number in the workspace's log, from 1.
    pub position: u64,
    pub payload: AnyObject,
    pub metadata: AnyObject,
    pub actor: String,
    pub occurred_at: String,
    pub recorded_at: String,
}

impl From<&Event> for EventBody {
    fn from(event: &Event) -> EventBody {
        EventBody {
            event_id: event.event_id.to_string(),
            aggregate_id: event.aggregate_id.to_string(),
            aggregate_type: event.aggregate_type.to_string(),
            event_type: event.event_type.to_string(),
            project_id: event.project_id.as_deref().map(str::to_owned),
            version: event.version,
            position: event.position,
            payload: AnyObject((*event.payload).clone()),
            metadata: AnyObject((*event.metadata).clone()),
            actor: event.actor.to_string(),
            occurred_at: format_date(event.occurred_at),
            recorded_at: format_date(event.recorded_at),
        }
    }
}

/// An article.
#[derive(Object, Serialize)]
#[oai(rename = "Article")]
pub struct ArticleBody {
    pub aggregate_id: String,
    #[oai(nullable)]
    pub project_id: Option<String>,
    #[oai(nullable)]
    pub title: Option<String>,
    #[oai(nullable)]
    pub body: Option<String>,
    #[oai(nullable)]
    pub slug: Option<String>,
    pub tags: Vec<AnyValue>,
    pub status: Word<Publication>,
    pub version: u64,
    #[oai(nullable)]
    pub published_version: Option<u64>,
    pub created_at: String,
    pub updated_at: String,
    #[oai(nullable)]
    pub published_at: Option<String>,
}

impl From<&Aggregate> for ArticleBody {
    fn from(article: &Aggregate) -> ArticleBody {
        let published_version = published_version(article);
        let tags = article.state.get("tags").and_then(Value::as_array).unwrap_or_default();
        ArticleBody {
            aggregate_id: article.id.to_string(),
            project_id: article.project_id.as_deref().map(str::to_owned),
            title: text(article, "title"),
            body: text(article, "body"),
            slug: text(article, "slug"),
            tags: tags.iter().cloned().map(AnyValue).collect(),
            status: if published_version.is_some() { "published" } else { "draft" }.into(),
            version: article.version,
            published_version,
            created_at: format_date(article.created_at),
            updated_at: format_date(article.last_event_at),
            published_at: published_at(article).map(format_date),
        }
    }
}

pub fn text(aggregate: &Aggregate, name: &str) -> Option<String> {
    aggregate.state.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Returns an object with these fields.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Fields {
    fields.into_iter().collect()
}
