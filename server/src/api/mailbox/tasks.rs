//! `/mailbox` and `/mailbox/:task_id`: listing, creating and reading tasks.

use foldwork_engine::model::closed_set::names;
use foldwork_engine::model::facts::Priority;
use foldwork_engine::model::task::{SourceType, Task};
use foldwork_engine::workspace::mailbox::tasks::{NewTask, TaskLimit};
use foldwork_engine::{Error, Writer};
use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::{Header, Path, Query};

use super::command::{FilterTexts, assignee};
use crate::api::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::etag::{etag, is_known};
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{AssigneesOrNone, OneOf, Sources, WaitedFor};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent};
use crate::wire::page::{PageBody, PageBytes, limit, read_cursor};
use crate::wire::request_body::ReceivedBody;
use crate::wire::response::revalidated;
use crate::wire::task::{CreateTask, TaskBody, WholeTaskBody, drafts};

pub struct Api;

const LIST: &str = "mailbox";

revalidated!(TaskResponse of WholeTaskBody: "The task with its messages, artifacts and timeline.");

#[OpenApi(tag = "Section::Mailbox")]
impl Api {
    /// Lists tasks, newest first.
    ///
    /// Filters may be combined. The status `open` matches all open statuses, and `closed` matches all closed statuses.
    /// A page may have fewer tasks than `limit`, because its size in bytes is limited as well.
    #[oai(path = "/mailbox", method = "get", operation_id = "list_tasks")]
    #[expect(clippy::too_many_arguments, reason = "one argument per query parameter")]
    async fn list_tasks(
        &self,
        access: ApiRead,
        /// Only tasks with one of these statuses, separated by commas. Alternatively `open` or `closed`.
        status: Query<Option<String>>,
        /// Only tasks assigned to this agent or user.
        assignee_id: Query<Option<String>>,
        /// Only tasks assigned to an agent, to a user, or to nobody.
        assignee_type: Query<Option<OneOf<AssigneesOrNone>>>,
        /// Only tasks of the project with this id or slug.
        project_id: Query<Option<String>>,
        /// Only tasks from this kind of source.
        source_type: Query<Option<OneOf<Sources>>>,
        /// Only unread tasks (`true`), or only read tasks (`false`).
        unread: Query<Option<bool>>,
        /// Only tasks that wait for a person, for an agent, or for nobody.
        waiting_on: Query<Option<OneOf<WaitedFor>>>,
        /// Only tasks with one of these priorities, separated by commas.
        priority: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
        page_bytes: Data<&PageBytes>,
    ) -> ApiResult<JsonResponse<PageBody<TaskBody>>> {
        let filter = FilterTexts {
            status: status.0,
            assignee_type: assignee_type.as_deref().map(str::to_owned),
            assignee_id: assignee_id.0,
            project_id: project_id.0,
            source_type: source_type.as_deref().map(str::to_owned),
            unread: unread.0,
            waiting_on: waiting_on.as_deref().map(str::to_owned),
            priority: priority.0,
        };
        let filter = filter.filter()?;
        let before = read_cursor(LIST, cursor.as_deref())?;
        let limit = TaskLimit { tasks: limit(rows)?, bytes: page_bytes.0.0 };
        let page = access.0.list_tasks(&filter, before, limit).await?;
        let bytes = page.items.iter().map(|task| Task::new(task).listed_bytes()).sum();
        let decider = access.0.decider();
        Ok(JsonResponse::large(bytes, || PageBody::new(page, LIST, |task| TaskBody::from(decider.view(&task)))))
    }

    /// Creates a task.
    ///
    /// If the assignee, or an assignee in `metadata.review.escalate`, is not in the workspace or is an agent that gets
    /// no work, the request is rejected. If the body has an `idempotency_key`, a later request with the same key
    /// creates no task and returns the first task. The key never expires.
    #[oai(path = "/mailbox", method = "post", operation_id = "create_task")]
    async fn create_task(
        &self,
        access: ApiWrite,
        body: Body<ReceivedBody<CreateTask>>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<TaskBody>> {
        let Body { value: ReceivedBody { request, .. }, text } = body;
        let new = new_task(&request)?;
        let make = async move |writer: Writer, request| {
            let (task, repeated) = writer.create_task(NewTask { request, ..new }).await?;
            let location = format!("{}/mailbox/{}", API, task.id);
            Ok(CreationOutcome { body: TaskBody::from(writer.decider().view(&task)), location, repeated })
        };
        idempotent(&access.0, key.0, "create_task", &text, make).await
    }

    /// Returns one task with its messages, artifacts and timeline.
    ///
    /// The timeline contains the task's events in the order of the log, with the ids of messages and artifacts.
    /// `would_append` contains the events that approval would append now. If the task has effects, the computation of
    /// `would_append` counts as a query, and the response can be 429 `too_many_queries`.
    #[oai(path = "/mailbox/:task_id", method = "get", operation_id = "get_task")]
    async fn get_task(
        &self,
        access: ApiRead,
        task_id: Path<String>,
        /// The number of most recent events in the timeline, 0 to 1,000; the default is 1,000.
        timeline: Query<Option<u64>>,
        #[oai(name = "If-None-Match")] if_none_match: Header<Option<String>>,
    ) -> ApiResult<TaskResponse> {
        let task = access.0.task(&task_id).await?;
        let tag = etag(task.version);
        let approval = access.0.approval(&task).await?;
        // The preview of the approval depends on other aggregates, which the tag does not cover.
        if approval.is_empty() && is_known(if_none_match.as_deref(), &tag) {
            return Ok(TaskResponse::Known(tag));
        }
        let whole = access.0.whole_task(&task, timeline.0).await?;
        let timeline = whole.timeline.iter().map(|entry| entry.detail.size_bytes()).sum::<usize>();
        let bytes = task.size_bytes() + timeline + approval.size_bytes();
        let body = JsonResponse::large(bytes, || WholeTaskBody::from((whole, approval)));
        Ok(TaskResponse::Found(body, tag))
    }
}

fn new_task(sent: &CreateTask) -> Result<NewTask, Error> {
    let title = sent.title.required_text()?;
    let wrong = || sent.priority.invalid("expected `low`, `normal`, `high` or `urgent`");
    let named = sent.priority.text()?;
    let priority = named.map(|name| Priority::parse(&name).ok_or_else(wrong)).transpose()?;
    Ok(NewTask {
        title,
        priority: priority.unwrap_or_default(),
        assignee: assignee(&sent.assignee_type, &sent.assignee_id)?,
        project: sent.project_id.text()?,
        source_type: source_type(sent)?,
        source: sent.source.object()?,
        metadata: sent.metadata.object()?,
        due_at: sent.due_at.time()?,
        artifacts: drafts(&sent.artifact, &sent.artifacts)?,
        idempotency_key: sent.idempotency_key.text()?,
        request: None,
    })
}

fn source_type(sent: &CreateTask) -> Result<Option<SourceType>, Error> {
    let allowed = || names::<SourceType>().join(", ");
    let wrong = || sent.source_type.invalid(format!("expected one of {}", allowed()));
    sent.source_type.text()?.map(|name| SourceType::parse(&name).ok_or_else(wrong)).transpose()
}
