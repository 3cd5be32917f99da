//! Actions of people on a task, such as `/mailbox/:task_id/approve`.

use foldwork_engine::workspace::mailbox::TaskCommand;
use poem_openapi::OpenApi;
use poem_openapi::param::{Header, Path};

use super::command::expected_version;
use crate::api::section::Section;
use crate::auth::ApiWrite;
use crate::http::error::ApiResult;
use crate::wire::body::Body;
use crate::wire::request_body::ReceivedBody;
use crate::wire::task::{
    AnswerTask, ApprovalResponse, ApproveTask, AskTask, AssignTask, DeferTask, EditTask, MarkTask, RejectTask,
    RequestChanges, RetryTask, TaskActionResponse,
};

pub struct Api;

/// Declares the operations. Each operation has a schema of the request body, a response and a command. In the commands,
/// `$access` is the caller's access and `$body` is the request body.
macro_rules! actions {
    ($access:ident, $body:ident; $($(#[$about:meta])+ $name:ident: $sent:ident -> $response:ident = $command:expr;)+) => {
        #[OpenApi(tag = "Section::Mailbox")]
        impl Api {
            $(
                $(#[$about])+
                async fn $name(
                    &self,
                    $access: ApiWrite,
                    task_id: Path<String>,
                    $body: Body<ReceivedBody<$sent>>,
                    #[oai(name = "If-Match")] if_match: Header<Option<String>>,
                ) -> ApiResult<$response> {
                    let expected = expected_version(&$body.expected_version, if_match.as_deref())?;
                    let command = $command;
                    let done = $access.0.act_on_task(&task_id, command, expected).await?;
                    Ok($response::of(done, &$access.0.decider()))
                }
            )+
        }
    };
}

actions! {
    access, body;

    /// Approves the output, and appends the effects of the current artifacts.
    ///
    /// The server appends the events in `effect` of the current artifacts atomically with the approval. The response
    /// contains these events in `appended`. Before the approval, `would_append` of the task contains these events.
    ///
    /// If an aggregate has changed since the author of an effect read the aggregate, the response is 409 `stale` with
    /// the difference, unless `accept_stale` is true. If the output is from before the last request for changes, the
    /// response is 409 `superseded`, unless `accept_superseded` is true. Effects that the log rejects get 409
    /// `effect_refused`.
    ///
    /// If the task's status does not allow the approval, the response is 409 `task_state_conflict` with the status and
    /// the allowed actions. A user who has delivered output of the task gets 403 `own_delivery`, unless the server
    /// allows users to decide about their own output.
    #[oai(path = "/mailbox/:task_id/approve", method = "post", operation_id = "approve_task")]
    approve_task: ApproveTask -> ApprovalResponse = body.command(access.0.now_ms())?;

    /// Approves the output with changes. The changed output is stored as the next version of the artifact.
    ///
    /// The server appends effects as for `approve`. If the artifact has an effect, the server makes the same change in
    /// the effect. If the effect does not contain the previous text or the previous value of the field, or contains the
    /// text more than once, the response is 409 `effect_unchanged`. In this case, a request with `artifact` can give
    /// the new effect.
    ///
    /// If the task's metadata has a schema for edits, an edit that does not match the schema gets 400.
    #[oai(path = "/mailbox/:task_id/edit", method = "post", operation_id = "edit_task")]
    edit_task: EditTask -> ApprovalResponse = body.command(access.0.now_ms())?;

    /// Rejects the output. An agent that holds the task loses its claim.
    ///
    /// The task's `resolution` contains the reason. The agent gets the resolution with the event `task.rejected`.
    #[oai(path = "/mailbox/:task_id/reject", method = "post", operation_id = "reject_task")]
    reject_task: RejectTask -> TaskActionResponse = body.command(access.0.now_ms())?;

    /// Defers the task. The task returns to its previous status at the given time.
    ///
    /// An action that changes the status of the task, such as `approve`, `ask` or `assign`, ends the deferral earlier.
    /// Without a time, the task stays deferred until such an action.
    #[oai(path = "/mailbox/:task_id/defer", method = "post", operation_id = "defer_task")]
    defer_task: DeferTask -> TaskActionResponse = body.command(access.0.now_ms())?;

    /// Asks the agent a question, or answers the agent's question.
    ///
    /// The task then waits for its agent. The agent gets the message as `task.asked`, even if the message answers a
    /// question.
    #[oai(path = "/mailbox/:task_id/ask", method = "post", operation_id = "ask_task")]
    ask_task: AskTask -> TaskActionResponse = body.command(access.0.now_ms())?;

    /// Sends the output back to the agent with a description of the requested changes.
    ///
    /// The task then waits for its agent, which gets the message as `task.changes_requested`.
    #[oai(path = "/mailbox/:task_id/request-changes", method = "post", operation_id = "request_changes")]
    request_changes: RequestChanges -> TaskActionResponse = body.command(access.0.now_ms())?;

    /// Answers the question of the agent that asked for input.
    ///
    /// The task then waits for its agent, which gets the message as `task.answered`.
    #[oai(path = "/mailbox/:task_id/answer", method = "post", operation_id = "answer_task")]
    answer_task: AnswerTask -> TaskActionResponse = body.command(access.0.now_ms())?;

    /// Assigns the task to an agent, a user, or nobody. An agent that holds the task loses its claim.
    ///
    /// The task keeps its messages and artifacts.
    #[oai(path = "/mailbox/:task_id/assign", method = "post", operation_id = "assign_task")]
    assign_task: AssignTask -> TaskActionResponse = body.command(access.0.now_ms())?;

    /// Returns a failed task to its assignee, and restarts the count of attempts.
    ///
    /// If the assignee has left the workspace or gets no work, the task is assigned to nobody. The server notifies the
    /// task's agent. A failed task waits for a person until the task is retried or marked as read.
    #[oai(path = "/mailbox/:task_id/retry", method = "post", operation_id = "retry_task")]
    retry_task: RetryTask -> TaskActionResponse = body.command(access.0.now_ms())?;

    /// Marks the task as read.
    ///
    /// Marking a read task again has no effect and appends no event.
    #[oai(path = "/mailbox/:task_id/read", method = "post", operation_id = "read_task")]
    read_task: MarkTask -> TaskActionResponse = TaskCommand::Read;

    /// Marks the task as unread.
    ///
    /// Marking an unread task again has no effect and appends no event.
    #[oai(path = "/mailbox/:task_id/unread", method = "post", operation_id = "unread_task")]
    unread_task: MarkTask -> TaskActionResponse = TaskCommand::Unread;
}
