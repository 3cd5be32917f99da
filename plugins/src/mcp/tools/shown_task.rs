//! Tasks in the form in which models receive them.

use std::sync::Arc;

use foldwork_engine::model::date::format_date;
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::task::view::{ArtifactView, MessageView, TaskView, TimelineView, WholeTask};
use foldwork_engine::model::value::Object;
use serde::Serialize;

use super::shown::shown;

shown! {
    /// A task without its messages and artifacts.
    #[derive(Serialize)]
    pub struct ShownTask from view: TaskView {
        id: Arc<str> = view.id,
        title: Arc<str> = view.title,
        status: &'static str = view.status.name(),
        priority: &'static str = view.priority.name(),
        assignee_type: Option<&'static str> = view.assignee.as_ref().map(|assignee| match assignee {
            Assignee::Agent(_) => "agent",
            Assignee::User(_) => "user",
        }),
        assignee_id: Option<Arc<str>> = view.assignee.map(|(Assignee::Agent(id) | Assignee::User(id))| id),
        project_id: Option<Arc<str>> = view.project_id,
        source_type: Option<&'static str> = view.source_type.map(|kind| kind.name()),
        source: Arc<Object> = view.source,
        metadata: Arc<Object> = view.metadata,
        unread: bool = view.is_unread,
        waiting_on: &'static str = view.waiting_on.name(),
        resolution: Option<Arc<Object>> = view.resolution,
        allowed_actions: Vec<&'static str> = view.allowed_actions.into_iter().map(|action| action.name()).collect(),
        attempt: u64 = view.attempt,
        claimed_by: Option<Arc<str>> = view.claimed_by,
        input_request: Option<Arc<Object>> = view.input_request,
        deferred_until: Option<String> = view.deferred_until.map(format_date),
        due_at: Option<String> = view.due_at.map(format_date),
        overdue: bool = view.is_overdue,
        escalated: u64 = view.escalated,
        created_by: Option<Arc<str>> = view.created_by,
        created_at: String = format_date(view.created_at),
        updated_at: String = format_date(view.updated_at),
        version: u64 = view.version,
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

shown! {
    #[derive(Serialize)]
    struct ShownMessage from view: MessageView {
        id: Arc<str> = view.id,
        role: &'static str = view.role.name(),
        author: Arc<str> = view.author,
        parts: Vec<Arc<Object>> = view.parts,
        text: Arc<str> = view.text,
        created_at: Arc<str> = view.created_at,
        #[serde(skip_serializing_if = "Option::is_none")]
        in_reply_to: Option<Arc<str>> = view.in_reply_to,
    }
}

shown! {
    #[derive(Serialize)]
    struct ShownArtifact from view: ArtifactView {
        id: Arc<str> = view.id,
        name: Arc<str> = view.name,
        version: u64 = view.version,
        parts: Vec<Arc<Object>> = view.parts,
        created_by: Arc<str> = view.created_by,
        created_at: Arc<str> = view.created_at,
        #[serde(skip_serializing_if = "Option::is_none")]
        supersedes: Option<Arc<str>> = view.supersedes,
        #[serde(skip_serializing_if = "Option::is_none")]
        effect: Option<Arc<Object>> = view.effect,
        #[serde(skip_serializing_if = "Option::is_none")]
        patch: Option<Vec<Arc<Object>>> = view.patch,
    }
}

shown! {
    #[derive(Serialize)]
    struct ShownEntry from view: TimelineView {
        position: u64 = view.position,
        version: u64 = view.version,
        event_id: Arc<str> = view.event_id,
        event_type: Arc<str> = view.event_type,
        occurred_at: String = format_date(view.occurred_at),
        actor: Arc<str> = view.actor,
        user_id: Option<Arc<str>> = view.user_id,
        key_id: Option<Arc<str>> = view.key_id,
        agent_id: Option<Arc<str>> = view.agent_id,
        status: Option<&'static str> = view.status.map(|status| status.name()),
        messages: Vec<Arc<str>> = view.messages,
        artifacts: Vec<Arc<str>> = view.artifacts,
        detail: Object = view.detail,
    }
}
