//! Tasks in the form in which models receive them.

use std::sync::Arc;

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::task::view::{ArtifactView, MessageView, TaskView, TimelineView, WholeTask};
use foldwork_engine::model::value::Object;
use serde::Serialize;

/// A task without its messages and artifacts.
#[derive(Serialize)]
pub struct ShownTask {
    id: Arc<str>,
    title: Arc<str>,
    status: &'static str,
    priority: &'static str,
    assignee_type: Option<&'static str>,
    assignee_id: Option<Arc<str>>,
    project_id: Option<Arc<str>>,
    source_type: Option<&'static str>,
    source: Arc<Object>,
    metadata: Arc<Object>,
    unread: bool,
    waiting_on: &'static str,
    resolution: Option<Arc<Object>>,
    allowed_actions: Vec<&'static str>,
    attempt: u64,
    claimed_by: Option<Arc<str>>,
    input_request: Option<Arc<Object>>,
    deferred_until: Option<String>,
    due_at: Option<String>,
    overdue: bool,
    escalated: u64,
    created_by: Option<Arc<str>>,
    created_at: String,
    updated_at: String,
    version: u64,
}

impl From<TaskView> for ShownTask {
    fn from(view: TaskView) -> ShownTask {
        let (assignee_type, assignee_id) = match view.assignee {
            None => (None, None),
            Some(Assignee::Agent(id)) => (Some("agent"), Some(id)),
            Some(Assignee::User(id)) => (Some("user"), Some(id)),
        };
        ShownTask {
            id: view.id,
            title: view.title,
            status: view.status.name(),
            priority: view.priority.name(),
            assignee_type,
            assignee_id,
            project_id: view.project_id,
            source_type: view.source_type.map(|kind| kind.name()),
            source: view.source,
            metadata: view.metadata,
            unread: view.is_unread,
            waiting_on: view.waiting_on.name(),
            resolution: view.resolution,
            allowed_actions: view.allowed_actions.into_iter().map(|action| action.name()).collect(),
            attempt: view.attempt,
            claimed_by: view.claimed_by,
            input_request: view.input_request,
            deferred_until: view.deferred_until.map(format_date),
            due_at: view.due_at.map(format_date),
            overdue: view.is_overdue,
            escalated: view.escalated,
            created_by: view.created_by,
            created_at: format_date(view.created_at),
            updated_at: format_date(view.updated_at),
            version: view.version,
        }
    }
}

/// A task with its messages, all versions of its artifacts and, if the call requests it, its timeline.
#[derive(Serialize)]
pub struct ShownWhole {
    #[serde(flatten)]
    task: ShownTask,
    messages: Vec<ShownMessage>,
    artifacts: Vec<ShownArtifact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Vec<ShownEntry>>,
}

impl ShownWhole {
    /// Converts a task. Omits the timeline unless `with_timeline` is set.
    pub fn new(whole: WholeTask, with_timeline: bool) -> ShownWhole {
        let WholeTask { task, messages, artifacts, timeline } = whole;
        ShownWhole {
            task: task.into(),
            messages: messages.into_iter().map(ShownMessage::from).collect(),
            artifacts: artifacts.into_iter().map(ShownArtifact::from).collect(),
            timeline: with_timeline.then(|| timeline.into_iter().map(ShownEntry::from).collect()),
        }
    }
}

#[derive(Serialize)]
struct ShownMessage {
    id: Arc<str>,
    role: &'static str,
    author: Arc<str>,
    parts: Vec<Arc<Object>>,
    text: Arc<str>,
    created_at: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<Arc<str>>,
}

impl From<MessageView> for ShownMessage {
    fn from(view: MessageView) -> ShownMessage {
        let MessageView { id, role, author, parts, text, created_at, in_reply_to } = view;
        ShownMessage { id, role: role.name(), author, parts, text, created_at, in_reply_to }
    }
}

#[derive(Serialize)]
struct ShownArtifact {
    id: Arc<str>,
    name: Arc<str>,
    version: u64,
    parts: Vec<Arc<Object>>,
    created_by: Arc<str>,
    created_at: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Arc<Object>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Vec<Arc<Object>>>,
}

impl From<ArtifactView> for ShownArtifact {
    fn from(view: ArtifactView) -> ShownArtifact {
        let ArtifactView { id, name, version, parts, created_by, created_at, supersedes, effect, patch } = view;
        ShownArtifact { id, name, version, parts, created_by, created_at, supersedes, effect, patch }
    }
}

#[derive(Serialize)]
struct ShownEntry {
    position: u64,
    version: u64,
    event_id: Arc<str>,
    event_type: Arc<str>,
    occurred_at: String,
    actor: Arc<str>,
    user_id: Option<Arc<str>>,
    key_id: Option<Arc<str>>,
    agent_id: Option<Arc<str>>,
    status: Option<&'static str>,
    messages: Vec<Arc<str>>,
    artifacts: Vec<Arc<str>>,
    detail: Object,
}

impl From<TimelineView> for ShownEntry {
    fn from(view: TimelineView) -> ShownEntry {
        let TimelineView { position, version, event_id, event_type, occurred_at, actor, .. } = view;
        let TimelineView { user_id, key_id, agent_id, status, messages, artifacts, detail, .. } = view;
        ShownEntry {
            position,
            version,
            event_id,
            event_type,
            occurred_at: format_date(occurred_at),
            actor,
            user_id,
            key_id,
            agent_id,
            status: status.map(|status| status.name()),
            messages,
            artifacts,
            detail,
        }
    }
}
