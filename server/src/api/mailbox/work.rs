//! Operations of agents on a task, such as `/mailbox/:task_id/claim`.

use foldwork_engine::model::event::{Event, StreamExpectation};
use foldwork_engine::model::task::LEASE_S;
use foldwork_engine::model::task::record::field;
use foldwork_engine::model::task::view::{ArtifactView, MessageView};
use foldwork_engine::workspace::mailbox::actions::ActedTask;
use foldwork_engine::workspace::mailbox::{AgentAction, Claimant};
use foldwork_engine::workspace::responses::IdempotentRequest;
use foldwork_engine::{AgentWriter, Error};
use poem_openapi::param::{Header, Path};
use poem_openapi::{ApiResponse, OpenApi};

use super::command::{expected_version, worker};
use crate::api::section::Section;
use crate::auth::{AgentWrite, ApiWrite};
use crate::http::error::ApiResult;
use crate::http::etag::etag;
use crate::http::routes::API;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::idempotency::{CreationOutcome, CreationResponse, idempotent};
use crate::wire::request_body::{ReceivedBody, first_text};
use crate::wire::response::tagged;
use crate::wire::task::{
    AddArtifact, AddMessage, ArtifactBody, CancelTask, ClaimNext, ClaimTask, ClaimedBody, ClaimedTasks, CompleteTask,
    FailTask, MessageBody, ReleaseTask, RequestInput, TaskActionResponse, TaskBody, drafts, message, required_message,
};

pub struct Api;

tagged!(ClaimResponse of ClaimedBody: "The agent holds the task.");

#[derive(ApiResponse)]
enum ClaimedNext {
    /// The task that the agent holds now, or an empty list if no task waits for the agent.
    #[oai(status = 200)]
    Done(JsonResponse<ClaimedTasks>),
}

#[OpenApi(tag = "Section::Mailbox")]
impl Api {
    /// Claims the task for an agent, or renews the claim. Heartbeats of the agent renew the claim as well.
    ///
    /// Only one agent can hold a task. A lease that is not renewed expires, which counts as a failed attempt, except
    /// while the server or its store is unavailable. The task then returns to its previous status, or gets the status
    /// `failed` after the fifth attempt. A key that is bound to agents can claim only the tasks of its agents, and
    /// unassigned tasks without output from other authors (403 `others_output`).
    #[oai(path = "/mailbox/:task_id/claim", method = "post", operation_id = "claim_task")]
    async fn claim_task(
        &self,
        access: AgentWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<ClaimTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<ClaimResponse> {
        let mut who = worker(&body.agent_id, &body.claim)?;
        who.agent_id = Some(body.agent_id.required_text()?);
        let seconds = body.lease_seconds.integer()?.unwrap_or(LEASE_S);
        let claim = AgentAction::Claim { seconds, instance: body.instance.text()? };
        let expected = expected_version(&body.expected_version, if_match.as_deref())?;
        let mut worked = access.0.work_on_task(&task_id, who, claim, expected, None).await?;
        let lease = worked.claimed()?.into();
        let body = ClaimedBody { task: TaskBody::from(access.0.decider().view(&worked.task)), lease };
        Ok(ClaimResponse::Done(JsonResponse::new(&body), etag(worked.task.version)))
    }

    /// Claims the next task of an agent.
    ///
    /// The next task is the most urgent task that waits for the agent. Among equally urgent tasks, it is the oldest task.
    /// Several workers of one agent get different tasks. If no task waits for the agent, the list is empty.
    #[oai(path = "/mailbox/claim-next", method = "post", operation_id = "claim_next_task")]
    async fn claim_next_task(&self, access: AgentWrite, body: Body<ReceivedBody<ClaimNext>>) -> ApiResult<ClaimedNext> {
        let agent_id = body.agent_id.required_text()?;
        let (seconds, instance) = (body.lease_seconds.integer()?.unwrap_or(LEASE_S), body.instance.text()?);
        let mut data = Vec::new();
        if let Some(mut worked) = access.0.claim_next(&agent_id, seconds, instance).await? {
            let lease = worked.claimed()?.into();
            data.push(ClaimedBody { task: TaskBody::from(access.0.decider().view(&worked.task)), lease });
        }
        Ok(ClaimedNext::Done(JsonResponse::new(&ClaimedTasks { data })))
    }

    /// Adds a message to the task. If a person waits for the agent's reply, the agent's next message is the reply.
    ///
    /// A message may refer to another message (`in_reply_to`). The server notifies the task's agent of the new message,
    /// unless an agent wrote the message.
    #[oai(path = "/mailbox/:task_id/messages", method = "post", operation_id = "add_message")]
    async fn add_message(
        &self,
        access: AgentWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<AddMessage>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<MessageBody>> {
        let Body { value: ReceivedBody { request, .. }, text } = body;
        let texts = [&request.text, &request.message, &request.content];
        let work = AgentAction::Message { message: required_message(&request.parts, &request.in_reply_to, &texts)? };
        let who = worker(&request.agent_id, &request.claim)?;
        let expected = expected_version(&request.expected_version, if_match.as_deref())?;
        let call = TaskAddition { id: task_id.0, who, expected };
        let operation = format!("add_message/{}", call.id);
        let make = async move |writer: AgentWriter, request| call.add(&writer, work, request, added_message).await;
        idempotent(&access.0, key.0, &operation, &text, make).await
    }

    /// Adds an artifact to the task that the agent holds, or a new version of an existing artifact.
    ///
    /// Earlier versions remain stored. A review concerns the newest version. Only people and the author of an artifact
    /// can add a new version: a key that is bound to agents gets 403 `not_author` for artifacts of other authors.
    #[oai(path = "/mailbox/:task_id/artifacts", method = "post", operation_id = "add_artifact")]
    async fn add_artifact(
        &self,
        access: AgentWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<AddArtifact>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
        #[oai(name = "Idempotency-Key")] key: Header<Option<String>>,
    ) -> ApiResult<CreationResponse<ArtifactBody>> {
        let Body { value: ReceivedBody { request, .. }, text } = body;
        let who = worker(&request.agent_id, &request.claim);
        let expected = expected_version(&request.expected_version, if_match.as_deref());
        let draft = request.into_draft().map_err(Error::from)?;
        let work = AgentAction::Artifact { drafts: vec![draft] };
        let call = TaskAddition { id: task_id.0, who: who?, expected: expected? };
        let operation = format!("add_artifact/{}", call.id);
        let make = async move |writer: AgentWriter, request| call.add(&writer, work, request, added_artifact).await;
        idempotent(&access.0, key.0, &operation, &text, make).await
    }

    /// Completes the agent's work: the task goes to review or, with `review: false`, is completed without a review.
    ///
    /// The request may add output. A task needs no output to be completed. If a task requires a review, or if the
    /// output has an effect, the task cannot be completed without the review (409 `review_required`).
    #[oai(path = "/mailbox/:task_id/complete", method = "post", operation_id = "complete_task")]
    async fn complete_task(
        &self,
        access: AgentWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<CompleteTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<TaskActionResponse> {
        let operation = AgentAction::Complete {
            drafts: drafts(&body.artifact, &body.artifacts).map_err(Error::from)?,
            message: message(&body.parts, &body.in_reply_to, &[&body.message, &body.request.text])?,
            unreviewed: body.review.flag()? == Some(false),
        };
        let who = worker(&body.agent_id, &body.claim)?;
        let expected = expected_version(&body.expected_version, if_match.as_deref())?;
        work(&access.0, &task_id, who, operation, expected).await
    }

    /// Asks a person for input that the agent needs to continue, and releases the agent's claim.
    ///
    /// The person replies with the action `answer` or `ask`. A schema may describe the expected reply.
    #[oai(path = "/mailbox/:task_id/request-input", method = "post", operation_id = "request_input")]
    async fn request_input(
        &self,
        access: AgentWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<RequestInput>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<TaskActionResponse> {
        let texts = [&body.message, &body.question, &body.request.text];
        let message = required_message(&body.parts, &body.in_reply_to, &texts)?;
        let operation = AgentAction::RequestInput { message, schema: body.schema.value().cloned() };
        let who = worker(&body.agent_id, &body.claim)?;
        let expected = expected_version(&body.expected_version, if_match.as_deref())?;
        work(&access.0, &task_id, who, operation, expected).await
    }

    /// Reports that the agent failed. If the failure is retryable, the task waits for another attempt. A task has at
    /// most five attempts.
    ///
    /// After the fifth failed attempt, or after a failure that is not retryable, the task gets the status `failed`. The
    /// task stays in the mailbox, and a person can retry the task.
    #[oai(path = "/mailbox/:task_id/fail", method = "post", operation_id = "fail_task")]
    async fn fail_task(
        &self,
        access: AgentWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<FailTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<TaskActionResponse> {
        let error = first_text(&[&body.error, &body.message, &body.reason])?;
        let error = error.ok_or_else(|| body.error.invalid("required string"))?;
        let operation = AgentAction::Fail { error, retryable: body.retryable.flag()?.unwrap_or(false) };
        let who = worker(&body.agent_id, &body.claim)?;
        let expected = expected_version(&body.expected_version, if_match.as_deref())?;
        work(&access.0, &task_id, who, operation, expected).await
    }

    /// Releases the claim and returns the task to its status before the claim.
    ///
    /// The task stays assigned to its agent, which can claim the task again. Other agents can claim the task after
    /// `assign`.
    #[oai(path = "/mailbox/:task_id/release", method = "post", operation_id = "release_task")]
    async fn release_task(
        &self,
        access: AgentWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<ReleaseTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<TaskActionResponse> {
        let who = worker(&body.agent_id, &body.claim)?;
        let expected = expected_version(&body.expected_version, if_match.as_deref())?;
        work(&access.0, &task_id, who, AgentAction::Release, expected).await
    }

    /// Cancels the task. Only the task's creator and the workspace's owners may cancel a task.
    ///
    /// An agent that holds the task is notified and loses its claim.
    #[oai(path = "/mailbox/:task_id/cancel", method = "post", operation_id = "cancel_task")]
    async fn cancel_task(
        &self,
        access: ApiWrite,
        task_id: Path<String>,
        body: Body<ReceivedBody<CancelTask>>,
        #[oai(name = "If-Match")] if_match: Header<Option<String>>,
    ) -> ApiResult<TaskActionResponse> {
        let operation = AgentAction::Cancel { reason: first_text(&[&body.reason, &body.message, &body.comment])? };
        let expected = expected_version(&body.expected_version, if_match.as_deref())?;
        work(&access.0.as_agent_writer(), &task_id, Claimant::default(), operation, expected).await
    }
}

async fn work(
    writer: &AgentWriter,
    id: &str,
    who: Claimant,
    operation: AgentAction,
    expected: StreamExpectation,
) -> ApiResult<TaskActionResponse> {
    let worked = writer.work_on_task(id, who, operation, expected, None).await?;
    let acted = ActedTask { task: worked.task, appended: Vec::new() };
    Ok(TaskActionResponse::of(acted, &writer.decider()))
}

/// A request that adds a message or an artifact to a task.
struct TaskAddition {
    id: String,
    who: Claimant,
    expected: StreamExpectation,
}

impl TaskAddition {
    /// Adds the content, and returns the added message or artifact. `added` reads the message or artifact from the
    /// appended event.
    async fn add<T>(
        self,
        writer: &AgentWriter,
        work: AgentAction,
        request: Option<IdempotentRequest>,
        added: fn(&Event) -> Option<T>,
    ) -> Result<CreationOutcome<T>, Error> {
        let TaskAddition { id, who, expected } = self;
        let worked = writer.work_on_task(&id, who, work, expected, request).await?;
        let missing = || Error::not_found("content of task", &id);
        let body = worked.event.as_deref().and_then(added).ok_or_else(missing)?;
        Ok(CreationOutcome { body, location: format!("{}/mailbox/{id}", API), repeated: worked.repeated })
    }
}

fn added_message(event: &Event) -> Option<MessageBody> {
    MessageView::of(event.payload.get(field::MESSAGES)?.as_array()?.first()?).map(MessageBody::from)
}

fn added_artifact(event: &Event) -> Option<ArtifactBody> {
    ArtifactView::of(event.payload.get(field::ARTIFACTS)?.as_array()?.first()?).map(ArtifactBody::from)
}
