//! The requests of people about tasks.

use poem_openapi::Object;

use crate::wire::closed_sets::{Assignees, AssigneesOrNone, OneOf, Priorities, Sources, TaskActions};
use crate::wire::json::{AnyObject, AnyValue};

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
