//! The events in requests: one event, or a list of events that is appended atomically.

use std::borrow::Cow;

use foldwork_engine::Error;
use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::value::Value;
use foldwork_engine::model::violation::Violations;
use poem_openapi::Object;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type};
use serde::Deserialize;

use super::json::{AnyObject, ExpectedVersion, RequiredText, described_by};
use super::page::time_at;
use crate::http::etag::expected;

/// An event to append to the stream in the path.
#[derive(Object, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
#[oai(rename = "StreamEvent")]
pub struct EventInput {
    /// The id of the aggregate whose stream receives the event. If present, this id must equal the id in the path.
    aggregate_id: Option<String>,
    /// The type of the aggregate. Required only for the first event of a stream; later events have the stream's type.
    aggregate_type: Option<String>,
    /// The type of the event, written `<type>.<verb>`.
    event_type: RequiredText,
    /// The id or slug of the aggregate's project.
    project_id: Option<String>,
    payload: Option<AnyObject>,
    metadata: Option<AnyObject>,
    /// An id chosen by the client, which makes the append idempotent: the server never appends two events with the same
    /// id.
    event_id: Option<String>,
    /// The expected version of the stream, or `none`, `exists` or `any`.
    expected_version: Option<ExpectedVersion>,
    /// The time at which the event occurred, RFC 3339; the default is the time of the append.
    occurred_at: Option<String>,
    /// Whether to restore the aggregate with its earlier fields if the aggregate is deleted. Without `restore`,
    /// `<type>.created` restores a deleted aggregate without its earlier fields, and any other event for a deleted
    /// aggregate is a conflict.
    restore: Option<bool>,
}

/// An event to append to any stream.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct AddressedEvent(EventInput);

/// Several events, which are appended to one stream atomically. This type is the schema of one of the two forms of an
/// [`AppendBody`].
#[derive(Object)]
struct StreamEvents {
    events: Vec<EventInput>,
    /// The expected version of the stream before the first event, or `none`, `exists` or `any`. A version, `none` and
    /// `exists` apply only to the first event. `any` applies to all events of the list.
    expected_version: Option<ExpectedVersion>,
}

/// One event, or several (`events`) that are appended atomically.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct AppendBody {
    events: Option<Vec<EventInput>>,
    aggregate_id: Option<String>,
    aggregate_type: Option<String>,
    event_type: RequiredText,
    project_id: Option<String>,
    payload: Option<AnyObject>,
    metadata: Option<AnyObject>,
    event_id: Option<String>,
    expected_version: Option<ExpectedVersion>,
    occurred_at: Option<String>,
    restore: Option<bool>,
}

impl AppendBody {
    /// Returns the events to append to a stream, and whether the body contains a list of events. The first event
    /// expects the version that the body or the header `If-Match` states.
    pub fn into_events(self, stream: &str, if_match: Option<&str>) -> Result<(Vec<NewEvent>, bool), Error> {
        let (inputs, stated, is_batch) = self.into_inputs()?;
        let states_any = stated == Some(StreamExpectation::Any);
        let mut stated = Some(expected(stated, if_match)?).filter(|stated| *stated != StreamExpectation::ByVerb);
        let new = |(index, input): (usize, EventInput)| {
            let beside = if states_any { Some(StreamExpectation::Any) } else { stated.take() };
            new_event(input, Some(stream), beside).map_err(|error| if is_batch { error.at_event(index) } else { error })
        };
        let events = inputs.into_iter().enumerate().map(new).collect::<Result<_, Error>>()?;
        Ok((events, is_batch))
    }

    /// Returns the events of the body, the expected version for a list of events, and whether the body contains such a
    /// list. The expected version is `None` if the body contains a single event, because the event itself contains its
    /// expected version.
    fn into_inputs(self) -> Result<(Vec<EventInput>, Option<StreamExpectation>, bool), Error> {
        let AppendBody { events, aggregate_id, aggregate_type, event_type, project_id, .. } = self;
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
        let Some(events) = events else { return Ok((vec![event], None, false)) };
        event.check_absent()?;
        let stated = read_expected(event.expected_version)?;
        Ok((events, stated, true))
    }
}

impl EventInput {
    /// Fails if the body contains fields of a single event in addition to a list of events.
    fn check_absent(&self) -> Result<(), Error> {
        let fields = [
            ("aggregate_id", self.aggregate_id.is_some()),
            ("aggregate_type", self.aggregate_type.is_some()),
            ("event_type", self.event_type.0.is_some()),
            ("project_id", self.project_id.is_some()),
            ("payload", self.payload.is_some()),
            ("metadata", self.metadata.is_some()),
            ("event_id", self.event_id.is_some()),
            ("occurred_at", self.occurred_at.is_some()),
            ("restore", self.restore.is_some()),
        ];
        let mut wrong = Violations::default();
        for (name, _) in fields.iter().filter(|(_, is_present)| *is_present) {
            wrong.add(format!("/{name}"), "not allowed beside `events`; set the field in each event of the list");
        }
        Ok(wrong.finish(())?)
    }
}

/// Events for any streams, appended in order and atomically.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchBody {
    pub events: Vec<AddressedEvent>,
    /// Whether the server chooses a different slug for an article if the requested slug is not valid or is taken in the
    /// project. Without `rename_slugs`, an event with such a slug is rejected. Imports set `rename_slugs`.
    pub rename_slugs: Option<bool>,
}

described_by!(AddressedEvent as "NewEvent", |registry| {
    EventInput::register(registry);
    let mut schema = registry.schemas.get(&*EventInput::name()).cloned().unwrap_or(MetaSchema::ANY);
    schema.title = Some("NewEvent".to_owned());
    schema.description = Some("An event to append to any stream.");
    schema.required.insert(0, "aggregate_id");
    for (_, property) in schema.properties.iter_mut().filter(|(name, _)| *name == "aggregate_id") {
        *property = String::schema_ref();
    }
    schema
});
described_by!(AppendBody as "AppendBody", |registry| {
    EventInput::register(registry);
    StreamEvents::register(registry);
    MetaSchema {
        title: Some("AppendBody".to_owned()),
        description: Some("One event, or several (`events`) that are appended atomically."),
        one_of: vec![EventInput::schema_ref(), StreamEvents::schema_ref()],
        ..MetaSchema::ANY
    }
});

impl ParseFromJSON for AddressedEvent {
    fn parse_from_json(value: Option<serde_json::Value>) -> ParseResult<Self> {
        EventInput::parse_from_json(value).map(AddressedEvent).map_err(ParseError::propagate)
    }
}

impl ToJSON for AddressedEvent {
    fn to_json(&self) -> Option<serde_json::Value> {
        self.0.to_json()
    }
}

/// Returns the events that a request appends to any streams.
pub fn new_events(inputs: Vec<AddressedEvent>) -> Result<Vec<NewEvent>, Error> {
    let new = |(index, AddressedEvent(input)): (usize, AddressedEvent)| {
        new_event(input, None, None).map_err(|error| error.at_event(index))
    };
    inputs.into_iter().enumerate().map(new).collect()
}

/// Returns a new event. `stream` is the id of the aggregate in the path, and `beside` is the expectation that the
/// request states outside of the event. Fails if the event states another expectation.
fn new_event(input: EventInput, stream: Option<&str>, beside: Option<StreamExpectation>) -> Result<NewEvent, Error> {
    let required =
        |value: Option<String>, name: &str| value.ok_or_else(|| Error::invalid_at(format!("/{name}"), "required"));
    let aggregate_id = match (input.aggregate_id, stream) {
        (Some(id), Some(stream)) if id != stream => {
            return Err(Error::invalid_at("/aggregate_id", "differs from the aggregate id in the path"));
        }
        (_, Some(stream)) => stream.to_owned(),
        (id, None) => required(id, "aggregate_id")?,
    };
    let occurred_at = time_at("/occurred_at", input.occurred_at.as_deref())?;
    Ok(NewEvent {
        aggregate_id,
        aggregate_type: input.aggregate_type.map(type_name).transpose()?.unwrap_or_default(),
        event_type: required(input.event_type.0, "event_type")?,
        project: input.project_id,
        payload: input.payload.unwrap_or_default().into_object(),
        metadata: input.metadata.unwrap_or_default().into_object(),
        event_id: input.event_id,
        expected: merged_expectation(read_expected(input.expected_version)?, beside)?,
        occurred_at,
        restore: input.restore.unwrap_or(false),
        ..NewEvent::default()
    })
}

/// Fails if the name of a type is empty, because the engine reads an empty name as the type of the stream.
fn type_name(name: String) -> Result<String, Error> {
    let is_empty = || Error::invalid_at("/aggregate_type", "expected the name of a type, or no aggregate_type");
    if name.is_empty() { Err(is_empty()) } else { Ok(name) }
}

/// Combines the two expectations that a request can contain for an event: `own` in the event itself, and `beside`
/// outside the event. Fails if both are present and differ.
fn merged_expectation(
    own: Option<StreamExpectation>,
    beside: Option<StreamExpectation>,
) -> Result<StreamExpectation, Error> {
    match (own, beside) {
        (Some(own), Some(beside)) if own != beside => {
            let message = "differs from the version in If-Match or from the `expected_version` beside `events`";
            Err(Error::invalid_at("/expected_version", message))
        }
        (own, beside) => Ok(own.or(beside).unwrap_or_default()),
    }
}

/// Parses the `expected_version` of a request body.
pub fn read_expected(expected: Option<ExpectedVersion>) -> Result<Option<StreamExpectation>, Error> {
    let wrong = || {
        let allowed = "expected a version, \"none\", \"exists\" or \"any\"";
        Error::invalid_at("/expected_version", allowed)
    };
    let expected = match expected.map(|expected| expected.0) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Int(version)) => u64::try_from(version).map(StreamExpectation::at).map_err(|_| wrong()),
        Some(Value::String(word)) => match &*word {
            "none" => Ok(StreamExpectation::None),
            "exists" => Ok(StreamExpectation::Exists),
            "any" => Ok(StreamExpectation::Any),
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    };
    expected.map(Some)
}
