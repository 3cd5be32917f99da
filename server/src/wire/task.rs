//! The wire types of tasks, as the OpenAPI document describes them. The engine writes the JSON, because agents get the
//! same.

use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::task::shown;
use poem_openapi::{ApiResponse, Object};

use super::body::Written;
use super::closed_sets::{
    Assignees, AssigneesOrNone, Priorities, Sources, Speakers, TaskActions, TaskStatuses, WaitedFor, Word,
};
use super::json::{AnyObject, AnyValue};
use crate::http::etag::etag;

/// A task.
#[derive(Object)]
#[oai(rename = "Task")]
pub struct TaskBody {
    id: String,
    title: String,
    /// The statuses `approved`, `rejected`, `completed`, `failed` and `canceled` are final.
    status: Word<TaskStatuses>,
    priority: Word<Priorities>,
    #[oai(nullable)]
    assignee_type: Option<Word<Assignees>>,
    #[oai(nullable)]
    assignee_id: Option<String>,
    #[oai(nullable)]
    project_id: Option<String>,
    #[oai(nullable)]
    source_type: Option<Word<Sources>>,
    /// Where the task came from. `aggregate_id` names the aggregate that the task is about.
    source: AnyObject,
    /// The metadata given at creation. `review.allowed_decisions` restricts the actions, an edit must match
    /// `review.arguments_schema`, and `review.escalate` lists the steps taken while the task stays overdue.
    metadata: AnyObject,
    /// Whether there is something new for the party in `waiting_on`.
    unread: bool,
    waiting_on: Word<WaitedFor>,
    /// How the task ended: `{action, by, at}` and the comment, reason or error given with the action.
    #[oai(nullable)]
    resolution: Option<AnyObject>,
    /// The actions that a person may take now.
    allowed_actions: Vec<Word<TaskActions>>,
    /// The number of the current or next attempt, from 1.
    attempt: u64,
    /// The agent that holds the task.
    #[oai(nullable)]
    claimed_by: Option<String>,
    /// The agent's question: `{message, schema}`.
    #[oai(nullable)]
    input_request: Option<AnyObject>,
    /// When a deferred task becomes active again.
    #[oai(nullable)]
    deferred_until: Option<String>,
    /// The due date. When it passes, `task.overdue` is added to the timeline and the task becomes unread.
    #[oai(nullable)]
    due_at: Option<String>,
    /// Whether the due date has passed.
    overdue: bool,
    /// How many steps of `metadata.review.escalate` were taken since the due date.
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
    /// Every version of every artifact.
    artifacts: Vec<ArtifactBody>,
    /// The task's events in order. Of a very long history, the last thousand.
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

/// The lease under which an agent holds a task.
#[derive(Object)]
#[oai(rename = "Lease")]
struct LeaseBody {
    agent_id: String,
    /// The number of this claim, unique within the task. An agent's requests may name the claim.
    claim: u64,
    expires_at: String,
}

/// A message on a task.
#[derive(Object)]
#[oai(rename = "Message")]
pub struct MessageBody {
    id: String,
    role: Word<Speakers>,
    author: String,
    /// Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
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
    /// Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    parts: Vec<AnyObject>,
    created_by: String,
    created_at: String,
    /// The previous version.
    supersedes: Option<String>,
    /// The event that approval appends: `{aggregate_id, event_type, payload}`.
    effect: Option<AnyObject>,
    /// What a person changed from the previous version, as a JSON patch (RFC 6902).
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
    /// The event's other fields.
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
    /// Set together with `assignee_id`, or not at all.
    #[oai(nullable)]
    assignee_type: Option<Word<Assignees>>,
    #[oai(nullable)]
    assignee_id: Option<String>,
    /// The default is `normal`.
    #[oai(nullable)]
    priority: Option<Word<Priorities>>,
    /// A project's id or slug.
    #[oai(nullable)]
    project_id: Option<String>,
    /// `review.allowed_decisions` restricts the actions. `review.arguments_schema` is a JSON Schema that an edit must
    /// match: at most 64 KiB and 500 subschemas, with references only to itself. `review.escalate` has up to 20 steps
    /// `{after, to, priority}` for a task that stays overdue: `after` is the time after `due_at` (seconds, or text such
    /// as `30m`, `2h` or `PT2H`), `to` is the next assignee (`agent:ID`, `user:ID`, or the fields of an assignment),
    /// and `priority` is the priority that the task is raised to.
    #[oai(nullable)]
    metadata: Option<AnyObject>,
    /// The default is `api`.
    #[oai(nullable)]
    source_type: Option<Word<Sources>>,
    /// `aggregate_id` names the aggregate that the task is about.
    #[oai(nullable)]
    source: Option<AnyObject>,
    /// The due date, RFC 3339.
    #[oai(nullable)]
    due_at: Option<String>,
    /// Output that exists already. Each item is `{name, parts | text | data, effect}`.
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    /// Never expires: a request with the same key returns the first task.
    #[oai(nullable)]
    idempotency_key: Option<String>,
}

/// Approves the output.
#[derive(Object)]
pub struct ApproveTask {
    #[oai(nullable)]
    comment: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Approves the output with changes, given as one of `modifications`, `content`, `text`, `artifact` and `artifacts`.
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

/// Rejects the output. `message` and `comment` are synonyms of `reason`.
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
    /// When the task becomes active again, RFC 3339.
    #[oai(nullable)]
    until: Option<String>,
    /// How long the task is deferred, instead of `until`.
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
    assignee_type: Option<Word<AssigneesOrNone>>,
    #[oai(nullable)]
    assignee_id: Option<String>,
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    user_id: Option<String>,
    /// The new due date, RFC 3339. Without it the due date stays. When a new date passes, a task that was overdue
    /// becomes overdue again.
    #[oai(nullable)]
    due_at: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// An action that needs no fields.
#[derive(Object)]
pub struct MarkTask {
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// One action on many tasks. The fields of the action are added to this object.
#[derive(Object)]
pub struct ActOnTasks {
    action: Word<TaskActions>,
    #[oai(nullable)]
    ids: Option<Vec<String>>,
    /// Instead of `ids`, with the parameters of `GET /mailbox`: `status`, `assignee_id`, `assignee_type`, `project_id`,
    /// `source_type`, `unread`, `priority`.
    #[oai(nullable)]
    filter: Option<AnyObject>,
    /// How many tasks the filter must match. Any other number is a conflict.
    #[oai(nullable)]
    expected: Option<u64>,
}

/// The result of the action for each task.
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

/// A message of the agent or, without `agent_id`, of the caller.
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

/// Output of the agent that holds the task.
#[derive(Object)]
pub struct AddArtifact {
    #[oai(nullable)]
    agent_id: Option<String>,
    /// The claim under which the output was made.
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    name: Option<String>,
    /// Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`. `text` or `data` may replace the
    /// parts.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    text: Option<String>,
    #[oai(nullable)]
    data: Option<AnyValue>,
    /// The version that this one follows.
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
    /// Output to add in the same step.
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

/// Asks a person for something that the agent needs to continue.
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

/// Reports that the agent failed.
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
    Done(Written<TaskBody>, #[oai(header = "ETag")] String),
}

/// Returns a task as the response to an action on it.
pub fn acted(task: &Aggregate) -> Acted {
    Acted::Done(Written::new(&shown::shown(task)), etag(task.version))
}
