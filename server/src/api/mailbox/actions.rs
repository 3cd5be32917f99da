//! What people do with a task: `/mailbox/:task_id/approve` and the like.

use foldwork_engine::Writer;
use foldwork_engine::model::task::Action;
use foldwork_engine::model::value::Object;
use poem_openapi::OpenApi;
use poem_openapi::param::{Header, Path};

use super::command::{command, expected_version};
use crate::api::Section;
use crate::auth::ApiWrite;
use crate::http::error::{ApiResult, answer};
use crate::wire::body::Body;
use crate::wire::received::Received;
use crate::wire::task::{Acted, ApproveTask, AskTask, AssignTask, DeferTask, EditTask, MarkTask, RejectTask, acted};

pub struct Api;

#[OpenApi(tag = "Section::Mailbox")]
impl Api {
    /// Accepts the output. The effects of its artifacts are appended with it, all or nothing.
    ///
    /// 409 `task_state_conflict` tells in which status the task is, and which actions are left.
    #[oai(path = "/mailbox/:task_id/approve", method = "post", operation_id = "approve_task")]
    async fn approve_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<ApproveTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Approve, &body.fields, if_match.as_deref()).await
    }

    /// Accepts the output with changes, which are kept as its next version. Effects are appended as with approval.
    ///
    /// Where the task's metadata says what an edit must keep to, one that does not is 400.
    #[oai(path = "/mailbox/:task_id/edit", method = "post", operation_id = "edit_task")]
    async fn edit_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<EditTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Edit, &body.fields, if_match.as_deref()).await
    }

    /// Refuses the output. An agent that holds the task holds it no more.
    ///
    /// The reason is a message of the task, which its agent reads.
    #[oai(path = "/mailbox/:task_id/reject", method = "post", operation_id = "reject_task")]
    async fn reject_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<RejectTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Reject, &body.fields, if_match.as_deref()).await
    }

    /// Sets the task aside. It wakes at its time, to the status that it left, or with whatever is done to it.
    ///
    /// Without a time it sleeps until something is done to it.
    #[oai(path = "/mailbox/:task_id/defer", method = "post", operation_id = "defer_task")]
    async fn defer_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<DeferTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Defer, &body.fields, if_match.as_deref()).await
    }

    /// Asks the agent something, or answers what it asked.
    ///
    /// The task waits for its agent then, which is told so.
    #[oai(path = "/mailbox/:task_id/ask", method = "post", operation_id = "ask_task")]
    async fn ask_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<AskTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Ask, &body.fields, if_match.as_deref()).await
    }

    /// Gives the task to an agent, a user, or nobody. An agent that holds it holds it no more.
    ///
    /// What was said and made of the task goes with it.
    #[oai(path = "/mailbox/:task_id/assign", method = "post", operation_id = "assign_task")]
    async fn assign_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<AssignTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Assign, &body.fields, if_match.as_deref()).await
    }

    /// Marks the task as read.
    ///
    /// Marking it again changes nothing and is no event.
    #[oai(path = "/mailbox/:task_id/read", method = "post", operation_id = "read_task")]
    async fn read_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<MarkTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Read, &body.fields, if_match.as_deref()).await
    }

    /// Marks the task as unread.
    ///
    /// Marking it again changes nothing and is no event.
    #[oai(path = "/mailbox/:task_id/unread", method = "post", operation_id = "unread_task")]
    async fn unread_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<Received<MarkTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<Acted> {
        act(&access.0, &task_id, Action::Unread, &body.fields, if_match.as_deref()).await
    }
}

async fn act(writer: &Writer, id: &str, action: Action, said: &Object, if_match: Option<&str>) -> ApiResult<Acted> {
    let expected = answer(expected_version(said, if_match))?;
    let command = answer(command(action, said, writer.now_ms()))?;
    Ok(acted(&*answer(writer.act_on_task(id, command, expected).await)?))
}
