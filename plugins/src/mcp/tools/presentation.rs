//! Events and articles in the form in which models receive them.

use std::sync::Arc;

use foldwork_engine::model::article::ArticleView;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::event::Event;
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::articles::Perspective;
use schemars::JsonSchema;
use serde::Serialize;

use super::shown::shown;
use crate::mcp::closed_sets::OneOf;

shown! {
    /// An event in the form in which models receive it.
    #[derive(Serialize, JsonSchema)]
    pub struct ShownEvent from event: &Event {
        event_id: String = event.event_id.to_string(),
        aggregate_id: String = event.aggregate_id.to_string(),
        aggregate_type: String = event.aggregate_type.to_string(),
        /// The type of the event, in the form `<type>.<verb>`.
        event_type: String = event.event_type.to_string(),
        project_id: Option<String> = event.project_id.as_deref().map(str::to_owned),
        /// The event's position in the aggregate's history, from 1.
        version: u64 = event.version,
        /// The event's position in the workspace's log, from 1.
        position: u64 = event.position,
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        payload: Object = (*event.payload).clone(),
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        metadata: Object = (*event.metadata).clone(),
        /// The principal that appended the event.
        actor: String = event.actor.to_string(),
        occurred_at: String = format_date(event.occurred_at),
        recorded_at: String = format_date(event.recorded_at),
    }
}

shown! {
    /// An article without its body.
    #[derive(Serialize, JsonSchema)]
    pub struct ShownArticle from view: ArticleView {
        aggregate_id: Arc<str> = view.id,
        project_id: Option<Arc<str>> = view.project_id,
        title: Option<Arc<str>> = view.title,
        slug: Option<Arc<str>> = view.slug,
        status: OneOf<Perspective> = OneOf(match view.published_version {
            Some(_) => Perspective::Published,
            None => Perspective::Draft,
        }),
        version: u64 = view.version,
        published_version: Option<u64> = view.published_version,
        published_at: Option<String> = view.published_at.filter(|_| view.published_version.is_some()).map(format_date),
    }
}
