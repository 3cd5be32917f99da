//! Views of tasks for readers: plain data, independent of the format of a response.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::act::Action;
use super::content::{AuthorRole, Effect};
use super::record::Task;
use super::record::field::{self, *};
use super::source::SourceType;
use super::status::Status;
use super::title;
use super::transition::allowed_actions;
use crate::model::aggregate::Aggregate;
use crate::model::closed_set::closed_set;
use crate::model::event::Event;
use crate::model::facts::{Assignee, Priority};
use crate::model::value::{Object, Value};

closed_set!(WaitingOn);

/// The party that must act next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum WaitingOn {
    Human,
    Agent,
    None,
}

impl WaitingOn {
    /// Returns the statuses in which a task may wait for the party.
    pub fn statuses(self) -> Vec<Status> {
        match self {
            WaitingOn::Human => {
                vec![Status::Pending, Status::AwaitingReply, Status::InputRequired, Status::Review, Status::Failed]
            }
            WaitingOn::Agent => vec![Status::Pending, Status::AwaitingReply, Status::InProgress],
            WaitingOn::None => {
                let is_none = |status: &Status| *status == Status::Deferred || !status.is_open();
                Status::VARIANTS.iter().copied().filter(is_none).collect()
            }
        }
    }

    /// Returns the party that must act next on a task.
    pub fn of(task: &Task<'_>) -> WaitingOn {
        match task.status() {
            Status::Pending | Status::AwaitingReply if task.assigned_agent().is_some() => WaitingOn::Agent,
            Status::Pending | Status::AwaitingReply | Status::InputRequired | Status::Review => WaitingOn::Human,
            Status::InProgress => WaitingOn::Agent,
            // A person should see the failure, and may retry the task.
            Status::Failed if task.is_unread() => WaitingOn::Human,
            Status::Deferred => WaitingOn::None,
            Status::Approved | Status::Rejected | Status::Completed | Status::Failed | Status::Canceled => {
                WaitingOn::None
            }
        }
    }
}

/// A task without its messages and artifacts. Times are in milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct TaskView {
    pub id: Arc<str>,
    pub title: Arc<str>,
    pub status: Status,
    pub priority: Priority,
    pub assignee: Option<Assignee>,
    pub project_id: Option<Arc<str>>,
    pub source_type: Option<SourceType>,
    pub source: Arc<Object>,
    pub metadata: Arc<Object>,
    pub is_unread: bool,
    pub waiting_on: WaitingOn,
    pub resolution: Option<Arc<Object>>,
    pub allowed_actions: Vec<Action>,
    pub attempt: u64,
    pub claimed_by: Option<Arc<str>>,
    pub input_request: Option<Arc<Object>>,
    pub deferred_until: Option<i64>,
    pub due_at: Option<i64>,
    pub is_overdue: bool,
    pub escalated: u64,
    pub created_by: Option<Arc<str>>,
    pub created_at: i64,
    pub updated_at: i64,
    pub version: u64,
}

impl From<&Aggregate> for TaskView {
    fn from(aggregate: &Aggregate) -> TaskView {
        let task = Task::new(aggregate);
        let text = |name: &str| task.get(name).and_then(Value::shared_str);
        let object = |name: &str| task.get(name).and_then(Value::shared_object);
        TaskView {
            id: aggregate.id.text(),
            // Tasks of older versions of the program may have any text as their title.
            title: text(TITLE).map(|title| title::cut(&title)).unwrap_or_default(),
            status: task.status(),
            priority: task.priority(),
            assignee: task.assignee(),
            project_id: aggregate.project_id.clone(),
            source_type: task.text(SOURCE_TYPE).and_then(SourceType::parse),
            source: object(SOURCE).unwrap_or_default(),
            metadata: object(METADATA).unwrap_or_default(),
            is_unread: task.is_unread(),
            waiting_on: WaitingOn::of(&task),
            resolution: object(RESOLUTION),
            allowed_actions: allowed_actions(&task),
            attempt: u64::try_from(task.attempt()).unwrap_or(1),
            claimed_by: text(CLAIMED_BY),
            input_request: object(INPUT_REQUEST),
            deferred_until: task.date(DEFERRED_UNTIL),
            due_at: task.date(DUE_AT),
            is_overdue: task.is_overdue(),
            escalated: task.escalated() as u64,
            created_by: text(CREATED_BY),
            created_at: aggregate.created_at,
            updated_at: aggregate.last_event_at,
            version: aggregate.version,
        }
    }
}

/// A task with its messages, all versions of its artifacts, and its timeline.
#[derive(Debug, Clone)]
pub struct WholeTask {
    pub task: TaskView,
    pub messages: Vec<MessageView>,
    pub artifacts: Vec<ArtifactView>,
    pub timeline: Vec<TimelineView>,
}

impl WholeTask {
    /// Returns the whole task with the given entries of its timeline.
    pub fn new(aggregate: &Aggregate, timeline: Vec<TimelineView>) -> WholeTask {
        let task = Task::new(aggregate);
        WholeTask {
            task: TaskView::from(aggregate),
            messages: task.messages().iter().filter_map(MessageView::of).collect(),
            artifacts: task.artifacts().iter().filter_map(ArtifactView::of).collect(),
            timeline,
        }
    }
}

/// A message of a task.
#[derive(Debug, Clone)]
pub struct MessageView {
    pub id: Arc<str>,
    pub role: AuthorRole,
    pub author: Arc<str>,
    pub parts: Vec<Arc<Object>>,
    /// The texts of all parts.
    pub text: Arc<str>,
    /// The creation time of the message, in the stored RFC 3339 form.
    pub created_at: Arc<str>,
    pub in_reply_to: Option<Arc<str>>,
}

impl MessageView {
    /// Reads the stored form of a message. Returns `None` if the value is not an object.
    pub fn of(stored: &Value) -> Option<MessageView> {
        let stored = StoredContent(stored.as_object()?);
        Some(MessageView {
            id: stored.text("id").unwrap_or_default(),
            role: stored.text("role").and_then(|name| AuthorRole::parse(&name)).unwrap_or(AuthorRole::System),
            author: stored.text("author").unwrap_or_default(),
            parts: stored.objects("parts").unwrap_or_default(),
            text: stored.text("text").unwrap_or_default(),
            created_at: stored.text("created_at").unwrap_or_default(),
            in_reply_to: stored.text("in_reply_to"),
        })
    }
}

/// One version of an artifact.
#[derive(Debug, Clone)]
pub struct ArtifactView {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub version: u64,
    pub parts: Vec<Arc<Object>>,
    pub created_by: Arc<str>,
    /// The creation time of the version, in the stored RFC 3339 form.
    pub created_at: Arc<str>,
    /// The id of the previous version.
    pub supersedes: Option<Arc<str>>,
    /// The event that is appended when the artifact is approved, or when a scripted agent delivers the artifact without
    /// a review.
    pub effect: Option<Arc<Object>>,
    /// The changes that a person made to the previous version.
    pub patch: Option<Vec<Arc<Object>>>,
}

impl ArtifactView {
    /// Reads the stored form of an artifact. Returns `None` if the value is not an object.
    pub fn of(stored: &Value) -> Option<ArtifactView> {
        let stored = StoredContent(stored.as_object()?);
        Some(ArtifactView {
            id: stored.text("id").unwrap_or_default(),
            name: stored.text("name").unwrap_or_default(),
            version: stored.number("version").unwrap_or(1),
            parts: stored.objects("parts").unwrap_or_default(),
            created_by: stored.text("created_by").unwrap_or_default(),
            created_at: stored.text("created_at").unwrap_or_default(),
            supersedes: stored.text("supersedes"),
            effect: Effect::shown(stored.0),
            patch: stored.objects("patch"),
        })
    }
}

/// An event of a task. The view contains only the ids of messages and artifacts, because the task contains their
/// content.
#[derive(Debug, Clone)]
pub struct TimelineView {
    pub position: u64,
    pub version: u64,
    pub event_id: Arc<str>,
    pub event_type: Arc<str>,
    /// The time of the event, in milliseconds since the epoch.
    pub occurred_at: i64,
    pub actor: Arc<str>,
    /// The id of the user who sent the request.
    pub user_id: Option<Arc<str>>,
    /// The id of the key that the request presented.
    pub key_id: Option<Arc<str>>,
    /// The id of the agent for which the request acted.
    pub agent_id: Option<Arc<str>>,
    /// The status after the event, even if the event did not change the status. `None` if the event contains no status.
    pub status: Option<Status>,
    pub messages: Vec<Arc<str>>,
    pub artifacts: Vec<Arc<str>>,
    /// The payload without the status, the messages, the artifacts and the fields for internal use.
    pub detail: Object,
}

impl From<&Event> for TimelineView {
    fn from(event: &Event) -> TimelineView {
        let ids = |name: &str| {
            let items = event.payload.get(name).and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(|item| item.get("id")?.shared_str()).collect()
        };
        let signed = |name: &str| event.metadata.get(name).and_then(Value::shared_str);
        let is_detail = |name: &str| {
            use field::{DELIVERED_BELOW, DELIVERED_BY, SOURCE_VERSION};
            !matches!(name, MESSAGES | ARTIFACTS | STATUS | DELIVERED_BY | DELIVERED_BELOW | SOURCE_VERSION)
        };
        let detail = event.payload.iter().filter(|(name, _)| is_detail(name));
        TimelineView {
            position: event.position,
            version: event.version,
            event_id: event.event_id.clone(),
            event_type: event.event_type.clone(),
            occurred_at: event.occurred_at,
            actor: event.actor.clone(),
            user_id: signed("user_id"),
            key_id: signed("key_id"),
            agent_id: signed("agent_id"),
            status: event.payload.get(STATUS).and_then(Value::as_str).and_then(Status::parse),
            messages: ids(MESSAGES),
            artifacts: ids(ARTIFACTS),
            detail: detail.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

/// An event that an approval appends, and the state of the aggregate after the event.
#[derive(Debug, Clone)]
pub struct EffectView {
    /// The id of the artifact version that has the effect.
    pub artifact_id: Option<Arc<str>>,
    /// The event. In a preview, the event's id, position and times have no meaning.
    pub event: Arc<Event>,
    /// The row of the aggregate after the event. `None` if this row and the rows of the preceding effects together
    /// exceed the size limit.
    pub state: Option<Value>,
    pub stale: Option<StaleEffect>,
}

impl EffectView {
    /// Creates the view of an effect's event.
    pub fn new(event: Arc<Event>, state: Option<Value>) -> EffectView {
        let artifact_id = event.metadata.get("artifact_id").and_then(Value::shared_str);
        EffectView { artifact_id, event, state, stale: None }
    }

    /// Returns the approximate size of the view, in bytes.
    pub fn size_bytes(&self) -> usize {
        let of = |value: &Option<Value>| value.as_ref().map_or(0, Value::size_bytes);
        let difference = self.stale.as_ref().and_then(|stale| stale.difference.as_ref());
        self.event.size_bytes() + of(&self.state) + difference.map_or(0, Object::size_bytes)
    }
}

/// The changes of an aggregate since the author of an effect read the aggregate.
#[derive(Debug, Clone)]
pub struct StaleEffect {
    /// The version that the author has read.
    pub expected_version: u64,
    pub current_version: u64,
    /// The fields that differ between the version that the author has read and the current version. Each field has its
    /// earlier value `was` and its current value `now`. `None` if the aggregates of the effects have too many events to
    /// compare, or if this difference and the included differences of the preceding effects together exceed the size
    /// limit.
    pub difference: Option<Object>,
}

/// Returns the fields in which two states of an aggregate differ, each with `was` and `now`.
pub fn difference(was: &Object, now: &Object) -> Object {
    let differs = |name: &&Arc<str>| was.get(name) != now.get(name);
    let names = was.keys().chain(now.keys().filter(|name| !was.contains(name))).filter(differs);
    let change = |name: &Arc<str>| {
        let mut change = Object::new();
        change.push("was", was.get(name).cloned());
        change.push("now", now.get(name).cloned());
        (name.clone(), Value::from(change))
    };
    names.map(change).collect()
}

/// The stored form of a message or an artifact.
struct StoredContent<'o>(&'o Object);

impl StoredContent<'_> {
    fn text(&self, name: &str) -> Option<Arc<str>> {
        self.0.get(name).and_then(Value::shared_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        u64::try_from(self.0.get(name)?.as_int()?).ok()
    }

    fn objects(&self, name: &str) -> Option<Vec<Arc<Object>>> {
        Some(self.0.get(name)?.as_array()?.iter().filter_map(Value::shared_object).collect())
    }
}
