//! Events: what a client sends, and what the log holds.

use std::sync::{Arc, OnceLock};

use super::id::AggregateId;
use super::value::{Object, Value};

/// Largest number of events that one append may carry.
pub const MAX_EVENTS_PER_APPEND: usize = 1_000;

/// The verb that begins an aggregate, and begins it again after it was deleted.
const CREATED: &str = "created";

/// An event in the log. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub event_id: Arc<str>,
    pub aggregate_id: AggregateId,
    pub aggregate_type: Arc<str>,
    pub event_type: Arc<str>,
    pub project_id: Option<Arc<str>>,
    /// Place in the stream, from 1, without gaps.
    pub version: u64,
    /// Place in the workspace's log, from 1, without gaps.
    pub position: u64,
    pub payload: Arc<Object>,
    pub metadata: Arc<Object>,
    /// Who appended it: `key:<id>`, `user:<id>` or `system`.
    pub actor: Arc<str>,
    /// When it happened, as the client said, or else `recorded_at`; milliseconds since the epoch.
    pub occurred_at: i64,
    pub recorded_at: i64,
    pub sent: Sent,
}

/// The text in which an event is sent to those who follow the log: written by the first who sends it, for all of them.
/// It says what the event says, so events are equal whether they have one or not; a copy has none yet.
#[derive(Debug, Default)]
pub struct Sent(OnceLock<Box<str>>);

impl Sent {
    /// The text, written now where nobody has yet.
    pub fn text(&self, write: impl FnOnce() -> String) -> &str {
        self.0.get_or_init(|| write().into_boxed_str())
    }
}

impl Clone for Sent {
    fn clone(&self) -> Sent {
        Sent::default()
    }
}

impl PartialEq for Sent {
    fn eq(&self, _: &Sent) -> bool {
        true
    }
}

impl Eq for Sent {}

impl Event {
    /// What follows the dot in the event's type: `created` of `article.created`.
    pub fn verb(&self) -> &str {
        verb(&self.event_type)
    }

    /// Bytes that the event takes in memory, roughly.
    pub fn size_bytes(&self) -> usize {
        256 + self.payload.size_bytes() + self.metadata.size_bytes()
    }

    /// The event as a row of a pipeline, the times as dates.
    pub fn row(&self) -> Value {
        let mut row = Object::with_capacity(12);
        row.push("_id", self.event_id.clone());
        row.push("aggregate_id", self.aggregate_id.text());
        row.push("aggregate_type", self.aggregate_type.clone());
        row.push("event_type", self.event_type.clone());
        row.push("project_id", self.project_id.clone());
        row.push("version", self.version as i64);
        row.push("position", self.position as i64);
        row.push("payload", Value::Object(self.payload.clone()));
        row.push("metadata", Value::Object(self.metadata.clone()));
        row.push("actor", self.actor.clone());
        row.push("occurred_at", Value::Date(self.occurred_at));
        row.push("recorded_at", Value::Date(self.recorded_at));
        row.into()
    }
}

/// What follows the dot in an event type.
pub fn verb(event_type: &str) -> &str {
    event_type.split_once('.').map_or("", |(_, verb)| verb)
}

/// An event that is to be appended; what is left open is decided by the appender.
#[derive(Debug, Clone, Default)]
pub struct NewEvent {
    pub aggregate_id: String,
    pub aggregate_type: String,
    pub event_type: String,
    /// A project's id or slug.
    pub project: Option<String>,
    pub payload: Object,
    pub metadata: Object,
    pub event_id: Option<String>,
    pub expected: Expected,
    pub occurred_at: Option<i64>,
    /// Brings its aggregate back if that is deleted, as an event `<type>.created` does.
    pub restore: bool,
    /// Made from another event by a plugin: what is in the log under its id is this event, whatever was made of it then,
    /// and it never brings a deleted aggregate back.
    pub derived: bool,
}

impl NewEvent {
    /// Whether the event may be appended to an aggregate that is deleted.
    pub fn restores(&self) -> bool {
        !self.derived && (self.restore || verb(&self.event_type) == CREATED)
    }

    /// Bytes that the event will take, roughly.
    pub fn size_bytes(&self) -> usize {
        256 + self.payload.size_bytes() + self.metadata.size_bytes()
    }
}

/// What the client believes of the stream it appends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expected {
    #[default]
    Any,
    /// The stream has no event yet.
    None,
    /// The stream has at least one event.
    Exists,
    /// The stream's last version.
    Version(u64),
}

impl Expected {
    /// Whether a stream whose last version is `current` (0 where there is no stream) is as believed.
    pub fn allows(self, current: u64) -> bool {
        match self {
            Expected::Any => true,
            Expected::None => current == 0,
            Expected::Exists => current > 0,
            Expected::Version(version) => current == version,
        }
    }
}
