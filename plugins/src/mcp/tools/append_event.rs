//! `append_event`: appends an event to an aggregate.

use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::value::Object;
use foldwork_engine::{Error, Result, Writer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::presentation::ShownEvent;
use crate::mcp::tool::{ToolCall, ToolWords};

pub(super) const WORDS: ToolWords = ToolWords {
    name: "append_event",
    title: "Append an event",
    description: "Appends one event to an aggregate. The first event of an id creates the aggregate. The event type \
        is `<aggregate_type>.<verb>`, such as `invoice.created`. Fields of the payload become fields of the state; \
        null sets null. `created` needs an id without an aggregate, `updated` and `deleted` an existing one; `created` \
        on a deleted aggregate begins from an empty state. Pass your own `event_id` (any unique text), so that a \
        repeated call appends nothing. Articles are created with `create_article`. Events cannot be removed; \
        `<type>.deleted` hides an aggregate.",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id of an existing aggregate, or a new id: a letter or digit, then up to 127 letters, digits and `._:-`.
    aggregate_id: String,
    /// The type of a new aggregate. Not needed for an existing aggregate.
    aggregate_type: Option<String>,
    /// The type of the event, in the form `<aggregate_type>.<verb>`.
    event_type: String,
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    payload: Option<Object>,
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    metadata: Option<Object>,
    /// The id or slug of the aggregate's project. The first event sets the project. A later event must not name another
    /// project.
    project_id: Option<String>,
    /// A unique id for the event. With an id, the call is safe to repeat: an event with the same id is appended only
    /// once.
    event_id: Option<String>,
    /// The version that the aggregate must have, or 0 if it must not exist yet. If the aggregate has another version,
    /// the call fails with `version_conflict`.
    expected_version: Option<u64>,
    /// Whether the event restores a deleted aggregate with its earlier state.
    restore: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    event: ShownEvent,
    /// Whether an earlier call has already appended the event.
    repeated: bool,
}

pub(super) async fn append_event(writer: Writer, arguments: Arguments, call: ToolCall) -> Result<Output> {
    let new = NewEvent {
        aggregate_id: arguments.aggregate_id,
        aggregate_type: arguments.aggregate_type.unwrap_or_default(),
        event_type: arguments.event_type,
        project: arguments.project_id,
        payload: call.exact("payload", arguments.payload.unwrap_or_default()),
        metadata: call.exact("metadata", arguments.metadata.unwrap_or_default()),
        event_id: arguments.event_id,
        expected: arguments.expected_version.map(StreamExpectation::at).unwrap_or_default(),
        restore: arguments.restore.unwrap_or(false),
        ..NewEvent::default()
    };
    let appended = writer.append_events(vec![new]).await?;
    let event = appended.events.first().ok_or_else(|| Error::invalid("the call appended no event"))?;
    Ok(Output { event: ShownEvent::from(&**event), repeated: appended.is_repeat() })
}
