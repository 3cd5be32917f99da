//! Events and articles in the form in which models receive them.

use std::sync::Arc;

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::article::ArticleView;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::event::Event;
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::articles::Perspective;
use schemars::JsonSchema;
use serde::Serialize;

use crate::mcp::closed_sets::OneOf;

/// An event in the form in which models receive it.
#[derive(Serialize, JsonSchema)]
pub struct ShownEvent {
    event_id: String,
    aggregate_id: String,
    aggregate_type: String,
    /// The type of the event, in the form `<type>.<verb>`.
    event_type: String,
    project_id: Option<String>,
    /// The event's position in the aggregate's history, from 1.
    version: u64,
    /// The event's position in the workspace's log, from 1.
    position: u64,
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    payload: Object,
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    metadata: Object,
    /// The principal that appended the event.
    actor: String,
    occurred_at: String,
    recorded_at: String,
}

impl From<&Event> for ShownEvent {
    fn from(event: &Event) -> ShownEvent {
        ShownEvent {
            event_id: event.event_id.to_string(),
            aggregate_id: event.aggregate_id.to_string(),
            aggregate_type: event.aggregate_type.to_string(),
            event_type: event.event_type.to_string(),
            project_id: event.project_id.as_deref().map(str::to_owned),
            version: event.version,
            position: event.position,
            payload: (*event.payload).clone(),
            metadata: (*event.metadata).clone(),
            actor: event.actor.to_string(),
            occurred_at: format_date(event.occurred_at),
            recorded_at: format_date(event.recorded_at),
        }
    }
}

/// An article without its body.
#[derive(Serialize, JsonSchema)]
pub struct ShownArticle {
    aggregate_id: Arc<str>,
    project_id: Option<Arc<str>>,
    title: Option<Arc<str>>,
    slug: Option<Arc<str>>,
    status: OneOf<Perspective>,
    version: u64,
    published_version: Option<u64>,
    published_at: Option<String>,
}

impl From<&Aggregate> for ShownArticle {
    fn from(article: &Aggregate) -> ShownArticle {
        let view = ArticleView::from(article);
        let is_published = view.published_version.is_some();
        ShownArticle {
            aggregate_id: view.id,
            project_id: view.project_id,
            title: view.title,
            slug: view.slug,
            status: OneOf(if is_published { Perspective::Published } else { Perspective::Draft }),
            version: view.version,
            published_version: view.published_version,
            published_at: view.published_at.filter(|_| is_published).map(format_date),
        }
    }
}
