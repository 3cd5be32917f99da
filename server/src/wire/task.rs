//! The schemas of tasks in the OpenAPI document. The engine writes the JSON, because agents receive the same JSON.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::task::shown;
use poem_openapi::{ApiResponse, Object};

use super::body::JsonResponse;
use super::closed_sets::{
    Assignees, AssigneesOrNone, OneOf, Priorities, Sources, Speakers, TaskActions, TaskStatuses, WaitedFor,
};
use super::json::{AnyObject, AnyValue};
use crate::http::etag::etag;

/// A task for an agent or a person.
#[derive(Object)]
#[oai(rename = "Task")]
pub struct TaskBody {
    id: String,
    title: String,
    /// The status. `approved`, `rejected`, `completed`, `failed` and `canceled` are final.
    status: OneOf<TaskStatuses>,
    priority: OneOf<Priorities>,
    #[oai(nullable)]
    assignee_type: Option<OneOf<Assignees>>,
    #[oai(nullable)]
    assignee_id: Option<String>,
    #[oai(nullable)]
    project_id: Option<String>,
    #[oai(nullable)]
    source_type: Option<OneOf<Sources>>,
    /// The source that created the task. `aggregate_id` names the aggregate that the task is about.
    source: AnyObject,
    /// The metadata given at creation. `review.allowed_decisions` restricts the actions. An edit must match
    /// `review.arguments_schema`. `review.escalate` lists the escalation steps of an overdue task.
    metadata: AnyObject,
    /// Whether the task has changes that the party in `waiting_on` has not read.
    unread: bool,
    waiting_on: OneOf<WaitedFor>,
    /// The final action: `{action, by, at}` and the comment, reason or error given with the action.
    #[oai(nullable)]
    resolution: Option<AnyObject>,
    /// The actions that a person may take now.
    allowed_actions: Vec<OneOf<TaskActions>>,
    /// The number of the current or next attempt, from 1.
    attempt: u64,
    /// The id of the agent that holds the task.
    #[oai(nullable)]
    claimed_by: Option<String>,
    /// The agent's question: `{message, schema}`.
    #[oai(nullable)]
    input_request: Option<AnyObject>,
    /// The time at which a deferred task becomes active again.
    #[oai(nullable)]
    deferred_until: Option<String>,
    /// The due date. When the due date passes, `task.overdue` is added to the timeline and the task becomes unread.
    #[oai(nullable)]
    due_at: Option<String>,
    /// Whether the due date has passed.
    overdue: bool,
    /// The number of steps of `metadata.review.escalate` that were taken since the due date.
    escalated: u64,
    /// The user who created the task, or `plugin:<name>`.
    #[oai(nullable)]
    created_by: Option<String>,
    created_at: String,
    updated_at: String,
    version: u64,
}

/// A task with its messages, artifacts and timeline.
#[derive(Object)]
#[oai(rename = "WholeTask")]
pub struct WholeTaskBody {
    #[oai(flatten)]
    task: TaskBody,
    messages: Vec<MessageBody>,
    /// All versions of all artifacts.
    artifacts: Vec<ArtifactBody>,
    /// The task's events in the order of the log, at most the last 1,000.
    timeline: Vec<TimelineEntry>,
}

/// A task that an agent has claimed.
#[derive(Object)]
#[oai(rename = "ClaimedTask")]
pub struct ClaimedBody {
    #[oai(flatten)]
    task: TaskBody,
    lease: LeaseBody,
}

/// The lease of a claim: the agent holds the task until the lease expires.
#[derive(Object)]
#[oai(rename = "Lease")]
struct LeaseBody {
    agent_id: String,
    /// The number of this claim, unique within the task. An agent can send the number as `claim` with its requests.
    claim: u64,
    expires_at: String,
}

/// A message on a task.
#[derive(Object)]
#[oai(rename = "Message")]
pub struct MessageBody {
    id: String,
    role: OneOf<Speakers>,
    author: String,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    parts: Vec<AnyObject>,
    text: String,
    created_at: String,
    in_reply_to: Option<String>,
}

/// One version of a task's output.
#[derive(Object)]
#[oai(rename = "Artifact")]
pub struct ArtifactBody {
    id: String,
    name: String,
    version: u64,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    parts: Vec<AnyObject>,
    created_by: String,
    created_at: String,
    /// The id of the previous version.
    supersedes: Option<String>,
    /// The event that approval appends: `{aggregate_id, event_type, payload}`.
    effect: Option<AnyObject>,
    /// The changes that a person made to the previous version, as a JSON patch (RFC 6902).
    patch: Option<Vec<AnyObject>>,
}

/// An event of a task.
#[derive(Object)]
struct TimelineEntry {
    position: u64,
    version: u64,
    event_id: String,
    event_type: String,
    occurred_at: String,
    actor: String,
    /// The status after the event, if the event changes it.
    #[oai(nullable)]
    status: Option<String>,
    /// Ids of the messages and artifacts that the event added.
    messages: Vec<String>,
    artifacts: Vec<String>,
    /// The other fields of the event.
    detail: AnyObject,
}

/// A page of tasks.
#[derive(Object)]
pub struct TaskPage {
    data: Vec<TaskBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

/// A task to create.
#[derive(Object)]
pub struct CreateTask {
    title: String,
    /// The kind of the assignee. Requires `assignee_id`.
    #[oai(nullable)]
    assignee_type: Option<OneOf<Assignees>>,
    #[oai(nullable)]
    assignee_id: Option<String>,
    /// The priority; the default is `normal`.
    #[oai(nullable)]
    priority: Option<OneOf<Priorities>>,
    /// The id or slug of the task's project.
    #[oai(nullable)]
    project_id: Option<String>,
    /// The metadata of the task. `review.allowed_decisions` restricts the actions. `review.arguments_schema` is a JSON
    /// Schema that an edit must match. The schema may have at most 64 KiB and 500 subschemas, and must not refer to
    /// other documents. `review.escalate` has up to 20 steps `{after, to, priority}` for an overdue task: `after` is
    /// the time after `due_at` (seconds, or text such as `30m`, `2h` or `PT2H`), `to` is the next assignee (`agent:ID`,
    /// `user:ID`, or the fields of an assignment), and `priority` is the new priority.
    #[oai(nullable)]
    metadata: Option<AnyObject>,
    /// The kind of source; the default is `api`.
    #[oai(nullable)]
    source_type: Option<OneOf<Sources>>,
    /// `aggregate_id` names the aggregate that the task is about.
    #[oai(nullable)]
    source: Option<AnyObject>,
    /// The due date, RFC 3339.
    #[oai(nullable)]
    due_at: Option<String>,
    /// The initial artifacts. Each item is `{name, parts | text | data, effect}`.
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    /// A key chosen by the client. A later request with the same key returns the first task. The key never expires.
    #[oai(nullable)]
    idempotency_key: Option<String>,
}

/// Approves the task's output.
#[derive(Object)]
pub struct ApproveTask {
    #[oai(nullable)]
    comment: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Approves the task's output with changes. The changes are one of `modifications`, `content`, `text`, `artifact` and
/// `artifacts`.
#[derive(Object)]
pub struct EditTask {
    /// Fields to merge into the output's data.
    #[oai(nullable)]
    modifications: Option<AnyObject>,
    /// The new content of the output.
    #[oai(nullable)]
    content: Option<AnyValue>,
    #[oai(nullable)]
    text: Option<String>,
    /// The next version of the output: `{id, name, parts | text | data, effect}`.
    #[oai(nullable)]
    artifact: Option<AnyObject>,
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    comment: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Rejects the task's output. `message` and `comment` are synonyms of `reason`.
#[derive(Object)]
pub struct RejectTask {
    #[oai(nullable)]
    reason: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Defers the task.
#[derive(Object)]
pub struct DeferTask {
    /// The time at which the task becomes active again, RFC 3339.
    #[oai(nullable)]
    until: Option<String>,
    /// The duration of the deferral in seconds, instead of `until`.
    #[oai(nullable)]
    for_seconds: Option<u64>,
    #[oai(nullable)]
    reason: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Sends a message to the agent, which is expected to reply. `question` and `text` are synonyms of `message`.
#[derive(Object)]
pub struct AskTask {
    #[oai(nullable)]
    message: Option<String>,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    in_reply_to: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Reassigns the task. `agent_id` or `user_id` may replace `assignee_type` and `assignee_id`.
#[derive(Object)]
pub struct AssignTask {
    #[oai(nullable)]
    assignee_type: Option<OneOf<AssigneesOrNone>>,
    #[oai(nullable)]
    assignee_id: Option<String>,
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    user_id: Option<String>,
    /// The new due date, RFC 3339. If `due_at` is absent, the due date does not change. An overdue task becomes overdue
    /// again when the new date passes.
    #[oai(nullable)]
    due_at: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// An action that marks a task as read or unread.
#[derive(Object)]
pub struct MarkTask {
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// One action on many tasks. The object also has the fields of the action itself.
#[derive(Object)]
pub struct ActOnTasks {
    action: OneOf<TaskActions>,
    #[oai(nullable)]
    ids: Option<Vec<String>>,
    /// A filter instead of `ids`. Its fields are parameters of `GET /mailbox`: `status`, `assignee_id`,
    /// `assignee_type`, `project_id`, `source_type`, `unread` and `priority`.
    #[oai(nullable)]
    filter: Option<AnyObject>,
    /// The number of tasks that the filter must match. If the filter matches another number, the request fails with
    /// 409.
    #[oai(nullable)]
    expected: Option<u64>,
}

/// The results of the action, one per task.
#[derive(Object)]
pub struct ActedBody {
    results: Vec<ActedOn>,
    succeeded: u64,
    failed: u64,
}

#[derive(Object)]
struct ActedOn {
    id: String,
    /// The HTTP status that the action on this task alone would return.
    status: u64,
    /// The task after the action, if the action succeeded.
    task: Option<TaskBody>,
    /// The error body that the action on this task alone would return, if the action failed.
    error: Option<AnyObject>,
}

/// Claims a task for an agent, or renews the claim.
#[derive(Object)]
pub struct ClaimTask {
    agent_id: String,
    /// The lease in seconds, 1 to 600; the default is 90. Each heartbeat renews the lease for the same time.
    #[oai(nullable)]
    lease_seconds: Option<u64>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// A message to add to a task. The author is the agent or, without `agent_id`, the caller.
#[derive(Object)]
pub struct AddMessage {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    text: Option<String>,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    in_reply_to: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// An artifact to add to a task. The agent that holds the task is the author.
#[derive(Object)]
pub struct AddArtifact {
    #[oai(nullable)]
    agent_id: Option<String>,
    /// The number of the claim under which the agent made the output.
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    name: Option<String>,
    /// The content. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`. `text` or `data` may
    /// replace the parts.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    text: Option<String>,
    #[oai(nullable)]
    data: Option<AnyValue>,
    /// The id of the previous version of this artifact.
    #[oai(nullable)]
    supersedes: Option<String>,
    /// The event that approval appends: `{aggregate_id, event_type, payload}`.
    #[oai(nullable)]
    effect: Option<AnyObject>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Completes the agent's work on the task.
#[derive(Object)]
pub struct CompleteTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    /// An artifact to add together with the completion.
    #[oai(nullable)]
    artifact: Option<AnyObject>,
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    message: Option<String>,
    /// `false` completes the task without a review by a person.
    #[oai(nullable)]
    review: Option<bool>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Asks a person for input that the agent needs to continue.
#[derive(Object)]
pub struct RequestInput {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    message: Option<String>,
    /// A JSON Schema that the reply must match.
    #[oai(nullable)]
    schema: Option<AnyObject>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Reports that the agent failed to complete the task.
#[derive(Object)]
pub struct FailTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    error: String,
    /// Whether another attempt may succeed.
    #[oai(nullable)]
    retryable: Option<bool>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Releases the agent's claim.
#[derive(Object)]
pub struct ReleaseTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Cancels the task. Only the task's creator and the workspace's owners may cancel a task.
#[derive(Object)]
pub struct CancelTask {
    #[oai(nullable)]
    reason: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

#[derive(ApiResponse)]
pub enum Acted {
    /// The task after the action.
    #[oai(status = 200)]
    Done(JsonResponse<TaskBody>, #[oai(header = "ETag")] String),
}

/// Returns the response to an action: the task after the action.
pub fn acted(task: &Aggregate) -> Acted {
    Acted::Done(JsonResponse::new(&shown::shown(task)), etag(task.version))
}
