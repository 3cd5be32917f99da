//! The JSON of an event in responses.

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::event::Event;

use super::json::{AnyObject, Text};
use super::shown::shown;

shown! {
    /// An event of the log.
    #[oai(rename = "Event")]
    pub struct EventBody from event: &Event;

    pub event_id: Text = event.event_id.clone().into(),
    pub aggregate_id: Text = event.aggregate_id.text().into(),
    pub aggregate_type: Text = event.aggregate_type.clone().into(),
    pub event_type: Text = event.event_type.clone().into(),
    pub project_id: Option<Text> = event.project_id.clone().map(Text),
    /// The event's number in its stream, from 1.
    pub version: u64 = event.version,
    /// The event's number in the workspace's log, from 1.
    pub position: u64 = event.position,
    pub payload: AnyObject = AnyObject(event.payload.clone()),
    pub metadata: AnyObject = AnyObject(event.metadata.clone()),
    pub actor: Text = event.actor.clone().into(),
    pub occurred_at: String = format_date(event.occurred_at),
    pub recorded_at: String = format_date(event.recorded_at),
}
