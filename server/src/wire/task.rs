//! Tasks and what is said about them, as the document shows it. What is written comes from the engine, which shows it to agents too.

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
    /// `approved`, `rejected`, `completed`, `failed` and `canceled` are final.
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
    /// What the task came from; `aggregate_id` is what it is about.
    source: AnyObject,
    /// As it was given. `review.allowed_decisions` narrows the actions, `review.arguments_schema` is what an edit must
    /// keep to, `review.escalate` says what happens while the task stays overdue.
    metadata: AnyObject,
    /// There is something new for whom the task waits for.
    unread: bool,
    waiting_on: Word<WaitedFor>,
    /// How the task ended: `{action, by, at}` and what was said.
    #[oai(nullable)]
    resolution: Option<AnyObject>,
    /// What a person may do with it now.
    allowed_actions: Vec<Word<TaskActions>>,
    /// From 1: how often work on it was begun, or is about to be.
    attempt: u64,
    /// The agent that holds it.
    #[oai(nullable)]
    claimed_by: Option<String>,
    /// What the agent asked for: `{message, schema}`.
    #[oai(nullable)]
    input_request: Option<AnyObject>,
    /// When a deferred task wakes by itself.
    #[oai(nullable)]
    deferred_until: Option<String>,
    /// When this time comes, `task.overdue` is in the timeline and the task is unread again.
    #[oai(nullable)]
    due_at: Option<String>,
    /// The due date has passed.
    overdue: bool,
    /// Steps of `metadata.review.escalate` that were taken since.
    escalated: u64,
    /// The user who made it, or `plugin:<name>`.
    #[oai(nullable)]
    created_by: Option<String>,
    created_at: String,
    updated_at: String,
    version: u64,
}

/// A task with all that was said and made of it.
#[derive(Object)]
#[oai(rename = "WholeTask")]
pub struct WholeTaskBody {
    #[oai(flatten)]
    task: TaskBody,
    messages: Vec<MessageBody>,
    /// Every version of every artifact.
    artifacts: Vec<ArtifactBody>,
    /// What happened, in order; of very long ones the last thousand events.
    timeline: Vec<TimelineEntry>,
}

/// A task that an agent holds.
#[derive(Object)]
#[oai(rename = "ClaimedTask")]
pub struct ClaimedBody {
    #[oai(flatten)]
    task: TaskBody,
    lease: LeaseBody,
}

/// Until when an agent holds a task.
#[derive(Object)]
#[oai(rename = "Lease")]
struct LeaseBody {
    agent_id: String,
    /// Tells this claim from every other one; work may name it.
    claim: u64,
    expires_at: String,
}

/// Something that was said about a task.
#[derive(Object)]
#[oai(rename = "Message")]
pub struct MessageBody {
    id: String,
    role: Word<Speakers>,
    author: String,
    /// `{text}`, `{data}` or `{file}` each, with an optional `media_type`.
    parts: Vec<AnyObject>,
    text: String,
    created_at: String,
    in_reply_to: Option<String>,
}

/// Output of a task, in one of its versions.
#[derive(Object)]
#[oai(rename = "Artifact")]
pub struct ArtifactBody {
    id: String,
    name: String,
    version: u64,
    /// `{text}`, `{data}` or `{file}` each, with an optional `media_type`.
    parts: Vec<AnyObject>,
    created_by: String,
    created_at: String,
    /// The version before.
    supersedes: Option<String>,
    /// The event that approval appends: `{aggregate_id, event_type, payload}`.
    effect: Option<AnyObject>,
    /// What a person changed of the version before, as a JSON patch (RFC 6902).
    patch: Option<Vec<AnyObject>>,
}

/// Something that happened to a task.
#[derive(Object)]
struct TimelineEntry {
    position: u64,
    version: u64,
    event_id: String,
    event_type: String,
    occurred_at: String,
    actor: String,
    /// The status from then on, where the event says it.
    #[oai(nullable)]
    status: Option<String>,
    /// Ids of messages and artifacts that came with it.
    messages: Vec<String>,
    artifacts: Vec<String>,
    /// What else the event says.
    detail: AnyObject,
}

/// A page of tasks.
#[derive(Object)]
pub struct TaskPage {
    data: Vec<TaskBody>,
    #[oai(nullable)]
    next_cursor: Option<String>,
}

/// A task that is to be made.
#[derive(Object)]
pub struct CreateTask {
    title: String,
    /// Both this and the id, or neither.
    #[oai(nullable)]
    assignee_type: Option<Word<Assignees>>,
    #[oai(nullable)]
    assignee_id: Option<String>,
    /// Normal where it is not given.
    #[oai(nullable)]
    priority: Option<Word<Priorities>>,
    /// A project's id or slug.
    #[oai(nullable)]
    project_id: Option<String>,
    /// `review.allowed_decisions` narrows the actions. `review.arguments_schema` is a JSON Schema that an edit must keep to:
    /// at most 64 KiB and 500 subschemas, with references within it alone. `review.escalate` has up to 20 steps
    /// `{after, to, priority}` for a task that stays overdue: `after` is a time after `due_at` (seconds, or a text such as
    /// `30m`, `2h` or `PT2H`), `to` who gets the task then (`agent:ID`, `user:ID`, or as an assignment says it), `priority`
    /// what it is raised to.
    #[oai(nullable)]
    metadata: Option<AnyObject>,
    /// `api` where it is not given.
    #[oai(nullable)]
    source_type: Option<Word<Sources>>,
    /// `aggregate_id` is what the task is about.
    #[oai(nullable)]
    source: Option<AnyObject>,
    /// RFC 3339.
    #[oai(nullable)]
    due_at: Option<String>,
    /// Output that there is already: `{name, parts | text | data, effect}` each.
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    /// For ever: the task that was made under it first is the answer.
    #[oai(nullable)]
    idempotency_key: Option<String>,
}

/// Accepts the output.
#[derive(Object)]
pub struct ApproveTask {
    #[oai(nullable)]
    comment: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Accepts the output with changes: one of `modifications`, `content`, `text`, `artifact` and `artifacts`.
#[derive(Object)]
pub struct EditTask {
    /// Fields that are merged into the output's data.
    #[oai(nullable)]
    modifications: Option<AnyObject>,
    /// What the output is to hold.
    #[oai(nullable)]
    content: Option<AnyValue>,
    #[oai(nullable)]
    text: Option<String>,
    /// The output in its next version: `{id, name, parts | text | data, effect}`.
    #[oai(nullable)]
    artifact: Option<AnyObject>,
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    comment: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Refuses the output. `message` and `comment` are taken for the reason too.
#[derive(Object)]
pub struct RejectTask {
    #[oai(nullable)]
    reason: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Sets the task aside.
#[derive(Object)]
pub struct DeferTask {
    /// RFC 3339: when it wakes by itself.
    #[oai(nullable)]
    until: Option<String>,
    /// Or how long it sleeps.
    #[oai(nullable)]
    for_seconds: Option<u64>,
    #[oai(nullable)]
    reason: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Says something to the agent, which is to answer. `question` and `text` are taken for the message too.
#[derive(Object)]
pub struct AskTask {
    #[oai(nullable)]
    message: Option<String>,
    /// Instead of a text: `{text}`, `{data}` or `{file}` each.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    in_reply_to: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Gives the task to somebody else. `agent_id` and `user_id` say both in one.
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
    /// RFC 3339: when it is due from then on; as before where it is not given. A task that was overdue is so again when
    /// this time comes.
    #[oai(nullable)]
    due_at: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Nothing needs to be said.
#[derive(Object)]
pub struct MarkTask {
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// One action on many tasks, with what the action says beside it.
#[derive(Object)]
pub struct ActOnTasks {
    action: Word<TaskActions>,
    #[oai(nullable)]
    ids: Option<Vec<String>>,
    /// Instead of ids, as in `GET /mailbox`: `status`, `assignee_id`, `assignee_type`, `project_id`, `source_type`,
    /// `unread`, `priority`.
    #[oai(nullable)]
    filter: Option<AnyObject>,
    /// How many tasks the filter means; any other number is a conflict.
    #[oai(nullable)]
    expected: Option<u64>,
}

/// What came of the action on each task.
#[derive(Object)]
pub struct ActedBody {
    results: Vec<ActedOn>,
    succeeded: u64,
    failed: u64,
}

#[derive(Object)]
struct ActedOn {
    id: String,
    /// As the action alone would be answered.
    status: u64,
    /// Where it went well.
    task: Option<TaskBody>,
    /// Where it did not: as the action alone would be answered.
    error: Option<AnyObject>,
}

/// An agent takes a task, or holds it longer.
#[derive(Object)]
pub struct ClaimTask {
    agent_id: String,
    /// 1 to 600; 90 where it is not given. Each heartbeat gives it as long again.
    #[oai(nullable)]
    lease_seconds: Option<u64>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Something that the agent says, or, where no agent is named, whoever asks.
#[derive(Object)]
pub struct AddMessage {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    text: Option<String>,
    /// Instead of a text: `{text}`, `{data}` or `{file}` each.
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
    /// The claim under which it was made.
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    name: Option<String>,
    /// `{text}`, `{data}` or `{file}` each, with an optional `media_type`; or `text` or `data` alone.
    #[oai(nullable)]
    parts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    text: Option<String>,
    #[oai(nullable)]
    data: Option<AnyValue>,
    /// The version that this one comes after.
    #[oai(nullable)]
    supersedes: Option<String>,
    /// The event that approval appends: `{aggregate_id, event_type, payload}`.
    #[oai(nullable)]
    effect: Option<AnyObject>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// The agent has done what it was to do.
#[derive(Object)]
pub struct CompleteTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    /// Output that comes with it.
    #[oai(nullable)]
    artifact: Option<AnyObject>,
    #[oai(nullable)]
    artifacts: Option<Vec<AnyObject>>,
    #[oai(nullable)]
    message: Option<String>,
    /// `false`: nobody has to look at it.
    #[oai(nullable)]
    review: Option<bool>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// The agent cannot go on without an answer.
#[derive(Object)]
pub struct RequestInput {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    message: Option<String>,
    /// A JSON schema of the answer.
    #[oai(nullable)]
    schema: Option<AnyObject>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// The agent could not do it.
#[derive(Object)]
pub struct FailTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    error: String,
    /// Another attempt may go well.
    #[oai(nullable)]
    retryable: Option<bool>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// The agent gives the task back.
#[derive(Object)]
pub struct ReleaseTask {
    #[oai(nullable)]
    agent_id: Option<String>,
    #[oai(nullable)]
    claim: Option<u64>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

/// Whoever made the task, or the workspace's owner, takes it back.
#[derive(Object)]
pub struct CancelTask {
    #[oai(nullable)]
    reason: Option<String>,
    #[oai(nullable)]
    expected_version: Option<u64>,
}

#[derive(ApiResponse)]
pub enum Acted {
    /// The task as it is now.
    #[oai(status = 200)]
    Done(Written<TaskBody>, #[oai(header = "ETag")] String),
}

/// A task as the answer to what was done with it.
pub fn acted(task: &Aggregate) -> Acted {
    Acted::Done(Written::new(&shown::shown(task)), etag(task.version))
}
