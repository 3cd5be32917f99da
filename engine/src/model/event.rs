//! Events that clients send, and events that the log stores.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::id::AggregateId;
use super::value::{Object, Value};

/// The maximum number of events in one append.
pub const MAX_EVENTS_PER_APPEND: usize = 1_000;

/// The verb of an event that creates an aggregate, or creates it again after its deletion.
const CREATED: &str = "created";

/// An event in the log. Events never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub event_id: Arc<str>,
    pub aggregate_id: AggregateId,
    pub aggregate_type: Arc<str>,
    pub event_type: Arc<str>,
    pub project_id: Option<Arc<str>>,
    /// The version of the stream after this event. Versions start at 1 and have no gaps.
    pub version: u64,
    /// The event's position in the workspace's log. Positions start at 1 and have no gaps.
    pub position: u64,
    pub payload: Arc<Object>,
    pub metadata: Arc<Object>,
    /// The actor that appended the event: `key:<id>`, `user:<id>`, `plugin:<name>` or `system`. An imported event keeps
    /// the actor that another log recorded.
    pub actor: Arc<str>,
    /// The time at which the event occurred, in milliseconds since the epoch. Equals `recorded_at` if the client gave
    /// no time.
    pub occurred_at: i64,
    pub recorded_at: i64,
    pub sent: EventText,
}

/// The serialized text of an event for subscribers of the log. The text is created for the first subscriber and shared
/// with all others. Comparisons of events ignore the text, and clones of an event start without a text, because the
/// text can be derived from the event.
#[derive(Debug, Default)]
pub struct EventText(OnceLock<Box<str>>);

impl EventText {
    /// Returns the text. The first call creates the text with `write`.
    pub fn text(&self, write: impl FnOnce() -> String) -> &str {
        self.0.get_or_init(|| write().into_boxed_str())
    }
}

impl Clone for EventText {
    fn clone(&self) -> EventText {
        EventText::default()
    }
}

impl PartialEq for EventText {
    fn eq(&self, _: &EventText) -> bool {
        true
    }
}

impl Eq for EventText {}

impl Event {
    /// Returns an event for tests, with an empty payload. The version of the event equals `position`, as in a log with
    /// only one stream.
    #[cfg(test)]
    pub fn sample(aggregate_id: &str, event_type: &str, position: u64) -> Event {
        Event {
            event_id: format!("e-{position}").into(),
            aggregate_id: AggregateId::from(Arc::from(aggregate_id)),
            aggregate_type: event_type.split('.').next().unwrap_or_default().into(),
            event_type: event_type.into(),
            project_id: None,
            version: position,
            position,
            payload: Arc::default(),
            metadata: Arc::default(),
            actor: "system".into(),
            occurred_at: 0,
            recorded_at: 0,
            sent: EventText::default(),
        }
    }

    /// Returns the part of the event type after the dot, such as `created` for `article.created`.
    pub fn verb(&self) -> &str {
        verb(&self.event_type)
    }

    /// Returns the approximate size of the event in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        256 + self.payload.size_bytes() + self.metadata.size_bytes()
    }

    /// Returns the event as a pipeline row. Times become dates. Numbers that are kept in their written form become the
    /// nearest doubles.
    pub fn row(&self) -> Value {
        let mut row = Object::with_capacity(12);
        row.push("_id", self.event_id.clone());
        row.push("aggregate_id", self.aggregate_id.text());
        row.push("aggregate_type", self.aggregate_type.clone());
        row.push("event_type", self.event_type.clone());
        row.push("project_id", self.project_id.clone());
        row.push("version", self.version as i64);
        row.push("position", self.position as i64);
        row.push("payload", rounded(&self.payload));
        row.push("metadata", rounded(&self.metadata));
        row.push("actor", self.actor.clone());
        row.push("occurred_at", Value::Date(self.occurred_at));
        row.push("recorded_at", Value::Date(self.recorded_at));
        row.into()
    }
}

fn rounded(object: &Arc<Object>) -> Value {
    if object.numbers().is_some() { object.rounded().into() } else { Value::Object(object.clone()) }
}
/// The names of the fields of an event. In the pipeline row of an event, the id has the name `_id`.
pub const EVENT_FIELDS: [&str; 12] = [
    EVENT_ID,
    "aggregate_id",
    "aggregate_type",
    "event_type",
    "project_id",
    "version",
    "position",
    "payload",
    "metadata",
    "actor",
    "occurred_at",
    "recorded_at",
];
/// The name of the field with the id of an event.
pub const EVENT_ID: &str = "event_id";

/// Returns the part of an event type after the first dot, or an empty text if there is no dot.
pub fn verb(event_type: &str) -> &str {
    event_type.split_once('.').map_or("", |(_, verb)| verb)
}

/// An event to be appended. The appender sets the fields that only the stored [`Event`] has, such as the version and
/// the position.
#[derive(Debug, Clone, Default)]
pub struct NewEvent {
    pub aggregate_id: String,
    /// The type of the aggregate. May be empty if the aggregate already exists.
    pub aggregate_type: String,
    pub event_type: String,
    /// The id or the slug of a project.
    pub project: Option<String>,
    pub payload: Object,
    pub metadata: Object,
    pub event_id: Option<String>,
    pub expected: StreamExpectation,
    pub occurred_at: Option<i64>,
    /// Whether the event restores a deleted aggregate together with its earlier state. An event `<type>.created`
    /// without this flag also restores the aggregate, but begins from an empty state.
    pub restore: bool,
    /// Whether a plugin derived this event from another event, or the event is an effect of a task's output. If the log
    /// already has an event with the same id, nothing is appended, even if the content of that event differs. A derived
    /// event never restores a deleted aggregate.
    pub derived: bool,
    /// Whether an article whose slug is not accepted gets another slug. If `false`, an event with such a slug is
    /// rejected, or keeps the slug if `recorded` is set.
    pub renames_slug: bool,
    /// The record of the event in another log. Set only for events that an operator imports or restores.
    pub recorded: Option<OriginalRecord>,
    /// The slugs of the articles in the log from which the event is imported. Read only if `renames_slug` is set. The
    /// imported article keeps its slug if no other article has the slug, or if the other article had the same slug in
    /// that log. Otherwise, the imported article gets another slug.
    pub slugs_in_log: Option<Arc<SlugsInLog>>,
}

/// The ids of the articles that had a slug at any time in a log, by slug.
pub type SlugsInLog = HashMap<String, HashSet<String>>;

/// The record of an event in another log. An imported event keeps this record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalRecord {
    /// The actor that appended the event to the other log.
    pub actor: Arc<str>,
    /// The time at which the event was appended to the other log, in milliseconds since the epoch.
    pub at: i64,
}

impl NewEvent {
    /// Returns whether the event may be appended to a deleted aggregate.
    pub fn restores(&self) -> bool {
        // A recorded event is always allowed, because the other log has already accepted the event at this place in the
        // stream.
        self.recorded.is_some() || (!self.derived && (self.restore || verb(&self.event_type) == CREATED))
    }

    /// Returns whether the event, if appended to a deleted aggregate, restores the aggregate without its earlier
    /// fields.
    pub fn restores_empty(&self) -> bool {
        self.recorded.is_none() && !self.restore && verb(&self.event_type) == CREATED
    }

    /// Returns the approximate size in memory that the event will have after the append, in bytes.
    pub fn size_bytes(&self) -> usize {
        256 + self.payload.size_bytes() + self.metadata.size_bytes()
    }
}

/// A client's expectation about the stream to which the client appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamExpectation {
    /// Only the expectation of the event's verb: `created` expects that the aggregate does not exist or is deleted, and
    /// `updated` and `deleted` expect that the aggregate exists.
    #[default]
    ByVerb,
    /// Any state of the stream, regardless of the verb. A deleted aggregate still accepts only an event that restores
    /// the aggregate ([`NewEvent::restores`]).
    Any,
    /// The stream has no events yet.
    None,
    /// The stream has at least one event.
    Exists,
    /// The stream's last event has this version.
    Version(u64),
    /// The stream is empty, or the version of its last event is lower than this version.
    Below(u64),
}

impl StreamExpectation {
    /// Returns the expectation that the stream's last event has this version. Version 0 means that the stream has no
    /// events.
    pub fn at(version: u64) -> StreamExpectation {
        if version == 0 { StreamExpectation::None } else { StreamExpectation::Version(version) }
    }

    /// Returns whether a stream with the last version `current` meets the expectation. `current` is 0 if the stream
    /// does not exist. Does not check what the verb of the event expects: [`StreamExpectation::ByVerb`] allows every
    /// version.
    pub fn allows(self, current: u64) -> bool {
        match self {
            StreamExpectation::ByVerb | StreamExpectation::Any => true,
            StreamExpectation::None => current == 0,
            StreamExpectation::Exists => current > 0,
            StreamExpectation::Version(version) => current == version,
            StreamExpectation::Below(version) => current < version,
        }
    }
}
