//! The requests of people about tasks.

use std::collections::HashMap;

use crate::wire::closed_sets::{Assignees, AssigneesOrNone, OneOf, Priorities, Sources, TaskActions};
use crate::wire::json::{AnyObject, AnyValue};
use crate::wire::request_body::{SentField, SentText, sent_fields};

sent_fields! {
    /// A task to create.
    pub struct CreateTask;

    pub title: SentField<String>,
    /// The kind of the assignee. Requires `assignee_id`.
    pub assignee_type: SentField<Option<OneOf<Assignees>>>,
    pub assignee_id: SentText,
    /// The priority; the default is `normal`.
    pub priority: SentField<Option<OneOf<Priorities>>>,
    /// The id or slug of the task's project.
    pub project_id: SentText,
    /// The metadata of the task. `review.allowed_decisions` lists the allowed decisions; the default is all decisions.
    /// `review.required_role` (`editor` or `owner`) is the lowest role that may decide. `review.arguments_schema` is a
    /// JSON Schema that an edit must match. The schema may have at most 64 KiB and 500 subschemas, and must not refer
    /// to other documents. `review.escalate` contains up to 20 steps `{after, to, priority}` for an overdue task:
    /// `after` is the time after `due_at` (seconds, or text such as `30m`, `2h` or `PT2H`), `to` is the next assignee
    /// (`agent:ID`, `user:ID`, or the fields of an assignment), and `priority` is the new priority, unless the task
    /// already has a higher priority. Each step requires `after` and at least one of `to` and `priority`.
    pub metadata: SentField<Option<AnyObject>>,
    /// The kind of source; the default is `api`.
    pub source_type: SentField<Option<OneOf<Sources>>>,
    /// The source of the task. Its field `aggregate_id` contains the id of the aggregate that the task is about.
    pub source: SentField<Option<AnyObject>>,
    /// The due date, RFC 3339.
    pub due_at: SentText,
    /// The initial artifacts. Each item is `{name, parts | text | data | content, effect}`.
    pub artifacts: SentField<Option<Vec<AnyObject>>>,
    /// A key chosen by the client. A later request with the same key returns the task of the first request. The key
    /// never expires.
    pub idempotency_key: SentText,
    /// An initial artifact, which is added before the artifacts in `artifacts`.
    pub artifact: SentField<Option<AnyObject>>,
}

sent_fields! {
    /// Approves the task's output.
    pub struct ApproveTask;

    pub comment: SentText,
    /// Whether an effect may overwrite an aggregate that has changed since the author of the effect read it; the
    /// default is false.
    pub accept_stale: SentField<Option<bool>>,
    /// Whether output that was added before the last `request_changes` may be approved; the default is false.
    pub accept_superseded: SentField<Option<bool>>,
    pub expected_version: SentField<Option<u64>>,
}

sent_fields! {
    /// Approves the task's output with changes. Exactly one of the fields `modifications`, `content`, `text`,
    /// `artifact` and `artifacts` must contain the changes.
    pub struct EditTask;

    /// Fields to merge into the data of the last artifact (RFC 7396). If the artifact has no data object, the fields
    /// are merged into the payload of its effect.
    pub modifications: SentField<Option<AnyObject>>,
    /// The new content of the last artifact.
    pub content: SentField<Option<AnyValue>>,
    pub text: SentText,
    /// The next version of the output: `{id, name, parts | text | data | content, effect}`.
    pub artifact: SentField<Option<AnyObject>>,
    pub artifacts: SentField<Option<Vec<AnyObject>>>,
    pub comment: SentText,
    /// Whether an effect may overwrite an aggregate that has changed since the author of the effect read it; the
    /// default is false.
    pub accept_stale: SentField<Option<bool>>,
    /// Whether output that was added before the last `request_changes` may be approved; the default is false.
    pub accept_superseded: SentField<Option<bool>>,
    pub expected_version: SentField<Option<u64>>,
}

sent_fields! {
    /// Rejects the task's output. `message` and `comment` are other names for `reason`.
    pub struct RejectTask;

    pub reason: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `reason`.
    pub message: SentText,
    /// Another name for `reason`.
    pub comment: SentText,
}

sent_fields! {
    /// Defers the task. Without `until` and `for_seconds`, the deferral has no end, and `reason` is required.
    pub struct DeferTask;

    /// The time at which the task becomes active again, RFC 3339.
    pub until: SentText,
    /// The duration of the deferral in seconds, instead of `until`.
    pub for_seconds: SentField<Option<u64>>,
    pub reason: SentText,
    pub expected_version: SentField<Option<u64>>,
}

sent_fields! {
    /// Sends a message to the agent, which is expected to reply. `question` and `text` are other names for `message`.
    pub struct AskTask;

    pub message: SentText,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`, with an optional
    /// `media_type`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `message`.
    pub question: SentText,
    /// Another name for `message`.
    pub text: SentText,
}

sent_fields! {
    /// Sends the output back to the agent. `text` is another name for `message`.
    pub struct RequestChanges;

    /// The requested changes.
    pub message: SentText,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`, with an optional
    /// `media_type`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `message`.
    pub text: SentText,
}

sent_fields! {
    /// Answers the agent's question. `answer` and `text` are other names for `message`.
    pub struct AnswerTask;

    pub message: SentText,
    /// The message as parts instead of text. Each part is `{text}`, `{data}` or `{file}`, with an optional
    /// `media_type`.
    pub parts: SentField<Option<Vec<AnyObject>>>,
    pub in_reply_to: SentText,
    pub expected_version: SentField<Option<u64>>,
    /// Another name for `message`.
    pub answer: SentText,
    /// Another name for `message`.
    pub text: SentText,
}

sent_fields! {
    /// Reassigns the task. `agent_id` or `user_id` may replace `assignee_type` and `assignee_id`.
    pub struct AssignTask;

    pub assignee_type: SentField<Option<OneOf<AssigneesOrNone>>>,
    pub assignee_id: SentText,
    pub agent_id: SentText,
    pub user_id: SentText,
    /// The new due date, RFC 3339. If `due_at` is absent, the due date does not change. With a new due date, an overdue
    /// task is not overdue until the new date passes.
    pub due_at: SentText,
    pub expected_version: SentField<Option<u64>>,
}

sent_fields! {
    /// Returns a failed task to its assignee. If the assignee is no longer a member, or is an agent that gets no work,
    /// the task becomes unassigned.
    pub struct RetryTask;

    pub comment: SentText,
    pub expected_version: SentField<Option<u64>>,
}

sent_fields! {
    /// An action that marks a task as read or unread.
    pub struct MarkTask;

    pub expected_version: SentField<Option<u64>>,
}

sent_fields! {
    open
    /// One action on many tasks. The object also contains the fields of the action itself.
    pub struct ActOnTasks;

    pub action: SentField<OneOf<TaskActions>>,
    pub ids: SentField<Option<Vec<String>>>,
    /// An object instead of `ids`. The object maps the id of each task to the version that the caller has read. The
    /// results are in the order of the ids in this object. A task whose current version differs gets 409
    /// `version_conflict`.
    pub expected_versions: SentField<Option<HashMap<String, u64>>>,
    /// A filter instead of `ids`. Its fields are parameters of `GET /mailbox`: `status`, `assignee_id`,
    /// `assignee_type`, `project_id`, `source_type`, `unread`, `waiting_on` and `priority`.
    pub filter: SentField<Option<AnyObject>>,
    /// The expected number of tasks that match the filter, at most 500. Required with `filter`. If the number differs,
    /// the request fails with 409 `count_mismatch`.
    pub expected: SentField<Option<u64>>,
}

sent_fields! {
    /// A filter of tasks in a request body.
    pub struct SentFilter;

    pub status: SentText,
    pub assignee_type: SentText,
    pub assignee_id: SentText,
    pub project_id: SentText,
    pub source_type: SentText,
    pub unread: SentField<Option<bool>>,
    pub waiting_on: SentText,
    pub priority: SentText,
}
