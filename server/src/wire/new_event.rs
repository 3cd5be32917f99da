//! The events in requests: one, or a list that is appended atomically.

use foldwork_engine::Error;
use foldwork_engine::model::date::parse_date;
use foldwork_engine::model::event::{Expected, NewEvent};
use foldwork_engine::model::value::Value;
use poem_openapi::Object;
use serde::Deserialize;

use super::json::{AnyObject, ExpectedVersion};

/// An event to append.
#[derive(Object, Deserialize, Default)]
#[serde(default)]
#[oai(rename = "NewEvent")]
pub struct EventInput {
    /// The id of the aggregate whose stream receives the event. Not needed if the path names the aggregate.
    #[oai(nullable)]
    aggregate_id: Option<String>,
    #[oai(nullable)]
    aggregate_type: Option<String>,
    /// The type of the event, written `<type>.<verb>`.
    #[oai(nullable)]
    event_type: Option<String>,
    /// The id or slug of the aggregate's project.
    #[oai(nullable)]
    project_id: Option<String>,
    #[oai(nullable)]
    payload: Option<AnyObject>,
    #[oai(nullable)]
    metadata: Option<AnyObject>,
    /// An id chosen by the client, which makes the append idempotent: the server never appends two events with the same
    /// id.
    #[oai(nullable)]
    event_id: Option<String>,
    /// The expected version of the stream, or `none`, `exists` or `any`.
    #[oai(nullable)]
    expected_version: Option<ExpectedVersion>,
    /// The time at which the event occurred, RFC 3339; the default is the time of the append.
    #[oai(nullable)]
    occurred_at: Option<String>,
    /// Whether to restore the aggregate if it is deleted. Without `restore`, only `<type>.created` restores a deleted
    /// aggregate; any other event is a conflict.
    #[oai(nullable)]
    restore: Option<bool>,
}

/// One event, or several (`events`) that are appended atomically.
#[derive(Object, Deserialize, Default)]
#[serde(default)]
pub struct AppendBody {
    #[oai(nullable)]
    events: Option<Vec<EventInput>>,
    #[oai(nullable)]
    aggregate_id: Option<String>,
    #[oai(nullable)]
    aggregate_type: Option<String>,
    /// The type of the event, written `<type>.<verb>`.
    #[oai(nullable)]
    event_type: Option<String>,
    /// The id or slug of the aggregate's project.
    #[oai(nullable)]
    project_id: Option<String>,
    #[oai(nullable)]
    payload: Option<AnyObject>,
    #[oai(nullable)]
    metadata: Option<AnyObject>,
    /// An id chosen by the client, which makes the append idempotent: the server never appends two events with the same
    /// id.
    #[oai(nullable)]
    event_id: Option<String>,
    /// The expected version of the stream, or `none`, `exists` or `any`.
    #[oai(nullable)]
    expected_version: Option<ExpectedVersion>,
    /// The time at which the event occurred, RFC 3339; the default is the time of the append.
    #[oai(nullable)]
    occurred_at: Option<String>,
    /// Whether to restore the aggregate if it is deleted. Without `restore`, only `<type>.created` restores a deleted
    /// aggregate; any other event is a conflict.
    #[oai(nullable)]
    restore: Option<bool>,
}

impl AppendBody {
    /// Returns the events and whether the body has a list of events.
    pub fn into_events(self) -> (Vec<EventInput>, bool) {
        let AppendBody { events, aggregate_id, aggregate_type, event_type, project_id, .. } = self;
        if let Some(events) = events {
            return (events, true);
        }
        let AppendBody { payload, metadata, event_id, expected_version, occurred_at, restore, .. } = self;
        let event = EventInput {
            aggregate_id,
            aggregate_type,
            event_type,
            project_id,
            payload,
            metadata,
            event_id,
            expected_version,
            occurred_at,
            restore,
        };
        (vec![event], false)
    }
}

/// Events for any streams, appended in order and atomically.
#[derive(Object, Deserialize)]
pub struct BatchBody {
    pub events: Vec<EventInput>,
    /// Whether an article gets another slug instead of a slug that another article of its project has, or that is not
    /// valid: a number is appended. Otherwise such an event is refused. Imports set this.
    #[serde(default)]
    #[oai(nullable)]
    pub rename_slugs: Option<bool>,
}

/// Returns the events that a request appends. `stream` is the aggregate of the path, and `is_batch` is whether the body
/// has a list of events.
pub fn new_events(inputs: Vec<EventInput>, stream: Option<&str>, is_batch: bool) -> Result<Vec<NewEvent>, Error> {
    let new =
        |(index, input)| new_event(input, stream).map_err(|error| if is_batch { error.at_event(index) } else { error });
    inputs.into_iter().enumerate().map(new).collect()
}

fn new_event(input: EventInput, stream: Option<&str>) -> Result<NewEvent, Error> {
    let required =
        |value: Option<String>, name: &str| value.ok_or_else(|| Error::invalid_at(format!("/{name}"), "required"));
    let aggregate_id = match (input.aggregate_id, stream) {
        (Some(id), Some(stream)) if id != stream => {
            return Err(Error::invalid_at("/aggregate_id", "differs from the stream of the path"));
        }
        (_, Some(stream)) => stream.to_owned(),
        (id, None) => required(id, "aggregate_id")?,
    };
    let occurred_at = match input.occurred_at {
        None => None,
        Some(text) => {
            let wrong = || Error::invalid_at("/occurred_at", "expected an RFC 3339 time");
            Some(parse_date(&text).ok_or_else(wrong)?)
        }
    };
    Ok(NewEvent {
        aggregate_id,
        aggregate_type: required(input.aggregate_type, "aggregate_type")?,
        event_type: required(input.event_type, "event_type")?,
        project: input.project_id,
        payload: input.payload.unwrap_or_default().into_object(),
        metadata: input.metadata.unwrap_or_default().into_object(),
        event_id: input.event_id,
        expected: read_expected(input.expected_version)?,
        occurred_at,
        restore: input.restore.unwrap_or(false),
        ..NewEvent::default()
    })
}

/// Parses the `expected_version` of a request body.
pub fn read_expected(expected: Option<ExpectedVersion>) -> Result<Expected, Error> {
    let wrong = || {
        let allowed = "expected a version, \"none\", \"exists\" or \"any\"";
        Error::invalid_at("/expected_version", allowed)
    };
    match expected.map(|expected| expected.0) {
        None | Some(Value::Null) => Ok(Expected::Any),
        Some(Value::Int(0)) => Ok(Expected::None),
        Some(Value::Int(version)) => u64::try_from(version).map(Expected::Version).map_err(|_| wrong()),
        Some(Value::String(word)) => match &*word {
            "none" => Ok(Expected::None),
            "exists" => Ok(Expected::Exists),
            "any" => Ok(Expected::Any),
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    }
}
