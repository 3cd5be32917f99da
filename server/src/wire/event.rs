//! The JSON of an event in responses.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::event::Event;
use poem_openapi::Object;
use serde::Serialize;

use super::json::{AnyObject, Text};

/// An event of the log.
#[derive(Object, Serialize)]
#[oai(rename = "Event")]
pub struct EventBody {
    pub event_id: Text,
    pub aggregate_id: Text,
    pub aggregate_type: Text,
    pub event_type: Text,
    pub project_id: Option<Text>,
    /// The event's number in its stream, from 1.
    pub version: u64,
    /// The event's number in the workspace's log, from 1.
    pub position: u64,
    pub payload: AnyObject,
    pub metadata: AnyObject,
    pub actor: Text,
    pub occurred_at: String,
    pub recorded_at: String,
}

impl From<&Event> for EventBody {
    fn from(event: &Event) -> EventBody {
        EventBody {
            event_id: event.event_id.clone().into(),
            aggregate_id: event.aggregate_id.text().into(),
            aggregate_type: event.aggregate_type.clone().into(),
            event_type: event.event_type.clone().into(),
            project_id: event.project_id.clone().map(Text),
            version: event.version,
            position: event.position,
            payload: AnyObject(event.payload.clone()),
            metadata: AnyObject(event.metadata.clone()),
            actor: event.actor.clone().into(),
            occurred_at: format_date(event.occurred_at),
            recorded_at: format_date(event.recorded_at),
        }
    }
}
