//! A task in responses: alone, with its contents, with a claim, and in lists.

mod agent;
mod approval;
mod content;
mod draft;
mod person;

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::task::view::{EffectView, TaskView, WholeTask};
use foldwork_engine::workspace::mailbox::actions::ActedTask;
use foldwork_engine::workspace::mailbox::approval::Approval;
use foldwork_engine::workspace::mailbox::batch::TaskOutcome;
use foldwork_engine::workspace::mailbox::decider::Decider;
use foldwork_engine::workspace::mailbox::work::HeldLease;
use poem_openapi::Object;
use serde::Serialize;

pub use self::agent::*;
pub use self::approval::EffectBody;
pub use self::content::{ArtifactBody, MessageBody, TimelineEntry};
pub use self::draft::{drafts, message, required_message};
pub use self::person::*;
use super::body::JsonResponse;
use super::closed_sets::{Assignees, OneOf, Priorities, Sources, TaskActions, TaskStatuses, WaitedFor};
use super::json::{AnyObject, Text};
use super::page::listed;
use super::response::tagged;
use super::shown::shown;
use crate::http::error::ApiError;
use crate::http::etag::etag;

shown! {
    /// A task for an agent or a person.
    #[oai(rename = "Task")]
    pub struct TaskBody from view: TaskView where {
        let (kind, id) = assignee(view.assignee);
    };

    id: Text = view.id.into(),
    title: Text = view.title.into(),
    /// The status. `approved`, `rejected`, `completed`, `failed` and `canceled` are closed statuses. Of these, only
    /// `failed` can change again: by `retry`, or by the output of a replayed step.
    status: OneOf<TaskStatuses> = view.status.name().into(),
    priority: OneOf<Priorities> = view.priority.name().into(),
    assignee_type: Option<OneOf<Assignees>> = kind,
    assignee_id: Option<Text> = id,
    project_id: Option<Text> = view.project_id.map(Text),
    source_type: Option<OneOf<Sources>> = view.source_type.map(|kind| kind.name().into()),
    /// The source that created the task. `aggregate_id` names the aggregate that the task is about.
    source: AnyObject = AnyObject(view.source),
    /// The metadata given at creation. `review.allowed_decisions` lists the allowed decisions; the default is all
    /// decisions. `review.required_role` is the lowest role that may decide. Edited output must match
    /// `review.arguments_schema`. `review.escalate` lists the escalation steps of an overdue task.
    metadata: AnyObject = AnyObject(view.metadata),
    /// Whether the task has unread changes, such as a message, a completion, a failure or an assignment. A claim, a
    /// deferral, a final decision and the action `read` mark the task as read.
    unread: bool = view.is_unread,
    waiting_on: OneOf<WaitedFor> = view.waiting_on.name().into(),
    /// The final action: `{action, by, at}` and the comment, reason or error given with the action.
    resolution: Option<AnyObject> = view.resolution.map(AnyObject),
    /// The actions that the caller may take now. In feeds of agents, the actions that a person may take.
    allowed_actions: Vec<OneOf<TaskActions>> =
        view.allowed_actions.into_iter().map(|action| action.name().into()).collect(),
    /// The number of the current or next attempt. The first attempt has the number 1.
    attempt: u64 = view.attempt,
    /// The id of the agent that holds the task.
    claimed_by: Option<Text> = view.claimed_by.map(Text),
    /// The agent's question: `{message, schema}`.
    input_request: Option<AnyObject> = view.input_request.map(AnyObject),
    /// The time at which a deferred task becomes active again.
    deferred_until: Option<String> = view.deferred_until.map(format_date),
    /// The due date. When the due date of an open task passes, `task.overdue` is added to the timeline and the task
    /// becomes unread.
    due_at: Option<String> = view.due_at.map(format_date),
    /// Whether the due date passed while the task was open.
    overdue: bool = view.is_overdue,
    /// The number of steps of `metadata.review.escalate` that were taken since the last due date that has passed.
    escalated: u64 = view.escalated,
    /// The id of the user who created the task, `plugin:<name>`, or `system` for a notice of the server.
    created_by: Option<Text> = view.created_by.map(Text),
    created_at: String = format_date(view.created_at),
    updated_at: String = format_date(view.updated_at),
    version: u64 = view.version,
}

impl From<&Aggregate> for TaskBody {
    fn from(task: &Aggregate) -> TaskBody {
        TaskBody::from(TaskView::from(task))
    }
}

fn assignee(assignee: Option<Assignee>) -> (Option<OneOf<Assignees>>, Option<Text>) {
    match assignee {
        None => (None, None),
        Some(Assignee::Agent(id)) => (Some("agent".into()), Some(id.into())),
        Some(Assignee::User(id)) => (Some("user".into()), Some(id.into())),
    }
}

shown! {
    /// A task with its messages, artifacts and timeline.
    #[oai(rename = "WholeTask")]
    pub struct WholeTaskBody from (whole, approval): (WholeTask, Approval);

    #[oai(flatten)]
    #[serde(flatten)]
    task: TaskBody = whole.task.into(),
    messages: Vec<MessageBody> = whole.messages.into_iter().map(MessageBody::from).collect(),
    /// All versions of all artifacts. A task has at most 2,000 versions of artifacts, and at most 16 MiB of content.
    /// Requests that would exceed these limits get 409 `task_full`.
    artifacts: Vec<ArtifactBody> = whole.artifacts.into_iter().map(ArtifactBody::from).collect(),
    /// The task's events in the order of the log, at most the last 1,000.
    timeline: Vec<TimelineEntry> = whole.timeline.into_iter().map(TimelineEntry::from).collect(),
    /// The events that approval would append now, each with the state of its aggregate after the event. If approval
    /// would append more than 500 events, or payloads of more than 4 MiB together, `would_append` is empty, and
    /// `would_refuse` contains the error `approval_too_large`.
    would_append: Vec<EffectBody> = approval.would_append.into_iter().map(EffectBody::planned).collect(),
    /// The error that approval would return now because of the output or its effects. Null if there is no such error,
    /// or if the status of the task does not allow approval. Also null if only stale effects prevent approval:
    /// `would_append` marks these effects as `stale`. `allowed_actions` shows whether the caller may approve the task.
    would_refuse: Option<AnyObject> = approval.refusal.map(|error| ApiError::from(error).body.into()),
}

/// A task that a person has approved.
#[derive(Object, Serialize)]
#[oai(rename = "ApprovedTask")]
pub struct ApprovedBody {
    #[oai(flatten)]
    #[serde(flatten)]
    task: TaskBody,
    /// The events that the approval has appended in addition to the event of the task, each with the state of its
    /// aggregate.
    appended: Vec<EffectBody>,
}

/// A task that an agent has claimed.
#[derive(Object, Serialize)]
#[oai(rename = "ClaimedTask")]
pub struct ClaimedBody {
    #[oai(flatten)]
    #[serde(flatten)]
    pub task: TaskBody,
    pub lease: LeaseBody,
}

/// The claimed task, in a list that is empty if no task waits for the agent.
#[derive(Object, Serialize)]
pub struct ClaimedTasks {
    /// At most one task.
    pub data: Vec<ClaimedBody>,
}

shown! {
    /// The lease of a claim: the agent holds the task until the lease expires.
    #[oai(rename = "Lease")]
    pub struct LeaseBody from lease: HeldLease;

    agent_id: String = lease.agent_id,
    /// The number of this claim, unique within the task. An agent can send the number as `claim` with its requests.
    claim: u64 = lease.claim,
    expires_at: String = format_date(lease.until),
}

listed!(TaskBody as "TaskPage": "A page of tasks.");

/// The results of an action on several tasks, one result per task.
#[derive(Object, Serialize)]
pub struct ActedBody {
    results: Vec<ActedOn>,
    succeeded: u64,
    failed: u64,
}

#[derive(Object, Serialize)]
struct ActedOn {
    id: String,
    /// The HTTP status that the action on this task alone would return.
    status: u64,
    /// The task after the action, if the action succeeded.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskBody>,
    /// The events that an approval has appended in addition to the event of the task, each with the state of its
    /// aggregate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[oai(default)]
    appended: Vec<EffectBody>,
    /// The error body, if the action failed. An action on this task alone would return the same body.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<AnyObject>,
}

impl ActedBody {
    /// Returns the results of an action. Each task lists the actions that the caller, `decider`, may take.
    pub fn new(outcomes: Vec<TaskOutcome>, decider: &Decider) -> ActedBody {
        let succeeded = outcomes.iter().filter(|outcome| outcome.result.is_ok()).count();
        ActedBody {
            succeeded: succeeded as u64,
            failed: (outcomes.len() - succeeded) as u64,
            results: outcomes.into_iter().map(|outcome| ActedOn::new(outcome, decider)).collect(),
        }
    }
}

impl ActedOn {
    fn new(TaskOutcome { id, result }: TaskOutcome, decider: &Decider) -> ActedOn {
        match result {
            Ok(ActedTask { task, appended }) => {
                let appended = appended.into_iter().map(EffectBody::from).collect();
                let task = TaskBody::from(decider.view(&task));
                ActedOn { id, status: 200, task: Some(task), appended, error: None }
            }
            Err(error) => {
                let ApiError { status, body, .. } = ApiError::from(error);
                ActedOn {
                    id,
                    status: status.as_u16().into(),
                    task: None,
                    appended: Vec::new(),
                    error: Some(body.into()),
                }
            }
        }
    }
}

tagged!(pub TaskActionResponse of TaskBody: "The task after the action.");

impl TaskActionResponse {
    /// Returns the response to an action. The task lists the actions that the caller, `decider`, may take.
    pub fn of(acted: ActedTask, decider: &Decider) -> TaskActionResponse {
        let task = TaskBody::from(decider.view(&acted.task));
        TaskActionResponse::Done(JsonResponse::new(&task), etag(acted.task.version))
    }
}

tagged!(
    pub ApprovalResponse of ApprovedBody:
        "The task after the approval, and the events that the approval has appended."
);

impl ApprovalResponse {
    /// Returns the response to an approval. The task lists the actions that the caller, `decider`, may take.
    pub fn of(acted: ActedTask, decider: &Decider) -> ApprovalResponse {
        let ActedTask { task, appended } = acted;
        let bytes = task.size_bytes() + appended.iter().map(EffectView::size_bytes).sum::<usize>();
        let body = JsonResponse::large(bytes, || ApprovedBody {
            task: TaskBody::from(decider.view(&task)),
            appended: appended.into_iter().map(EffectBody::from).collect(),
        });
        ApprovalResponse::Done(body, etag(task.version))
    }
}
