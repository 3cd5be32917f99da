//! Checks the actions of agents on tasks, and the messages and cancellations of other callers. Returns the resulting
//! events.

use super::artifacts::{may_replace_all, versions};
use super::decision::{
    add_deliverers, advance, check_gets_work, conflict, event, find_expected, resolution, signed, state_conflict,
};
use super::limits::check_message;
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::builtin::AGENT;
use crate::model::date::format_date;
use crate::model::event::{NewEvent, StreamExpectation};
use crate::model::task::content::{ArtifactDraft, AuthorRole, Message, Stamp};
use crate::model::task::record::field;
use crate::model::task::transition::Circumstances;
use crate::model::task::{Act, Status, Task, TaskEvent, Verb};
use crate::model::value::{Object, Value};

/// The agent that works on a task. Fields that the request does not name are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimant {
    pub agent_id: Option<String>,
    /// The number of the claim under which the agent works. Work for another claim of the task is rejected.
    pub claim: Option<u64>,
    /// Whether the request comes from an owner of the workspace.
    pub(crate) is_owner: bool,
}

impl Claimant {
    /// Creates a claimant from the fields of a request.
    pub fn new(agent_id: Option<String>, claim: Option<u64>) -> Claimant {
        Claimant { agent_id, claim, is_owner: false }
    }
}

/// An action of an agent on a task.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAction {
    Claim {
        seconds: i64,
        /// The instance of the agent that claims the task, if the agent runs as several instances.
        instance: Option<String>,
    },
    Message {
        message: Message,
    },
    Artifact {
        drafts: Vec<ArtifactDraft>,
    },
    Complete {
        drafts: Vec<ArtifactDraft>,
        message: Option<Message>,
        /// Whether the output skips the review. Such an action is rejected if the task requires a review, or if the
        /// output has an effect. The effects in an agent's request are appended only when a person approves the output.
        unreviewed: bool,
    },
    RequestInput {
        message: Message,
        schema: Option<Value>,
    },
    Fail {
        error: String,
        retryable: bool,
    },
    Release,
    Cancel {
        reason: Option<String>,
    },
}

impl AgentAction {
    /// Returns the action without its content.
    pub fn verb(&self) -> Verb {
        match self {
            AgentAction::Claim { .. } => Verb::Claim,
            AgentAction::Message { .. } => Verb::Message,
            AgentAction::Artifact { .. } => Verb::Artifact,
            AgentAction::Complete { .. } => Verb::Complete,
            AgentAction::RequestInput { .. } => Verb::RequestInput,
            AgentAction::Fail { .. } => Verb::Fail,
            AgentAction::Release => Verb::Release,
            AgentAction::Cancel { .. } => Verb::Cancel,
        }
    }

    /// Returns the message of the action.
    fn message(&self) -> Option<&Message> {
        match self {
            AgentAction::Message { message } | AgentAction::RequestInput { message, .. } => Some(message),
            AgentAction::Complete { message, .. } => message.as_ref(),
            _ => None,
        }
    }

    /// Returns the approximate size of the action's content, in bytes.
    pub fn size_bytes(&self) -> usize {
        let drafted = |drafts: &[ArtifactDraft]| drafts.iter().map(ArtifactDraft::size_bytes).sum::<usize>();
        match self {
            AgentAction::Message { message } => message.size_bytes(),
            AgentAction::Artifact { drafts } => drafted(drafts),
            AgentAction::Complete { drafts, message, .. } => {
                drafted(drafts) + message.as_ref().map_or(0, Message::size_bytes)
            }
            AgentAction::RequestInput { message, schema } => {
                message.size_bytes() + schema.as_ref().map_or(0, Value::size_bytes)
            }
            AgentAction::Fail { error, .. } => error.len(),
            AgentAction::Cancel { reason, .. } => reason.as_ref().map_or(0, String::len),
            AgentAction::Claim { .. } | AgentAction::Release => 0,
        }
    }
}

/// Returns the events of an agent's action. Returns no events if a worker claims a task that the same worker already
/// holds.
pub fn decide(
    view: &View<'_>,
    id: &str,
    expected: StreamExpectation,
    worker: &Claimant,
    work: &AgentAction,
    stamp: &Stamp,
) -> Result<Vec<NewEvent>> {
    let found = find_expected(view, id, expected)?;
    let task = Task::new(&found);
    let by_agent =
        || Stamp { by: worker.agent_id.clone().or(holder(&task)).unwrap_or(stamp.by.clone()), ..stamp.clone() };
    let act = Act::Agent(work.verb());
    if let Some(message) = work.message() {
        check_message(&task, message)?;
    }
    let new_event = match work {
        AgentAction::Claim { seconds, instance } => {
            return claimed(view, &task, worker, *seconds, instance.as_deref(), stamp);
        }
        AgentAction::Message { message } => message_event(view, &task, worker, message, stamp)?,
        AgentAction::Artifact { drafts } => {
            let next = held(&task, act, Circumstances::default(), worker)?;
            let artifacts = versions(view, &task, drafts, &by_agent())?;
            let mut fields = Object::from_iter([(field::ARTIFACTS, artifacts)]);
            add_deliverers(&mut fields, Some(&task), stamp)?;
            event(&task, TaskEvent::Artifact, next, fields)
        }
        AgentAction::Complete { drafts, message, unreviewed } => {
            let circumstances = Circumstances { unreviewed: *unreviewed, ..Circumstances::default() };
            let next = held(&task, act, circumstances, worker)?;
            if *unreviewed {
                check_unreviewed(&task, act, drafts)?;
            }
            completed(view, &task, next, drafts, message.as_ref(), &by_agent())?
        }
        AgentAction::RequestInput { message, schema } => {
            let next = held(&task, act, Circumstances::default(), worker)?;
            let entry = message.entry(AuthorRole::Agent, &by_agent());
            let mut input_request = Object::from_iter([("message", entry.get("text").cloned().unwrap_or_default())]);
            input_request.push("schema", schema.clone());
            let fields = [
                (field::MESSAGES, Value::from(vec![entry])),
                (field::INPUT_REQUEST, input_request.into()),
                (field::UNREAD, true.into()),
            ];
            event(&task, TaskEvent::InputRequested, next, Object::from_iter(fields))
        }
        AgentAction::Fail { error, retryable } => {
            let circumstances = Circumstances { retryable: *retryable, ..Circumstances::default() };
            let next = held(&task, act, circumstances, worker)?;
            let by = by_agent().by;
            let mut event = again_or_failed(&task, TaskEvent::Released, next, &by, stamp.at_ms, error);
            event.metadata.push("error", error.as_str());
            event
        }
        AgentAction::Release => {
            let next = held(&task, act, Circumstances::default(), worker)?;
            event(&task, TaskEvent::Released, next, Object::from_iter([(field::UNREAD, true)]))
        }
        AgentAction::Cancel { reason } => {
            if !worker.is_owner && task.text(field::CREATED_BY) != Some(&stamp.by) {
                let message = "only the task's creator or an owner of the workspace may cancel the task".to_owned();
                return Err(Error::Forbidden { code: ErrorCode::NotCreator, message });
            }
            let next = advance(&task, act, Circumstances::default())?;
            let resolution = resolution("cancel", &stamp.by, stamp.at_ms, ("reason", reason.as_deref()));
            let fields = [(field::RESOLUTION, resolution), (field::UNREAD, false.into())];
            event(&task, TaskEvent::Canceled, next, Object::from_iter(fields))
        }
    };
    // The caller is the author of a cancellation, and of a message without an agent.
    let author = match work {
        AgentAction::Cancel { .. } => None,
        AgentAction::Message { .. } => worker.agent_id.clone(),
        _ => worker.agent_id.clone().or(holder(&task)),
    };
    Ok(vec![signed(new_event, stamp, author.as_deref())])
}

/// Returns the id of the agent that holds a task. If no agent holds the task, returns the id of the agent that the task
/// is assigned to.
fn holder(task: &Task<'_>) -> Option<String> {
    task.text(field::CLAIMED_BY).or(task.assigned_agent()).map(str::to_owned)
}

/// Returns the status after an action that requires the lease. Fails if no worker holds a lease on the task, or if the
/// request names another agent or another claim than the lease.
fn held(task: &Task<'_>, act: Act, circumstances: Circumstances, worker: &Claimant) -> Result<Status> {
    let next = advance(task, act, circumstances)?;
    let lease = task.lease();
    let is_holder = lease.is_some_and(|lease| {
        worker.agent_id.as_ref().is_none_or(|id| id == lease.agent_id)
            && worker.claim.is_none_or(|claim| claim == lease.claim)
    });
    if !is_holder {
        return Err(not_holder(task, act));
    }
    Ok(next)
}

/// Rejects an action if the worker names a claim other than the current claim of the task.
fn check_claim(task: &Task<'_>, act: Act, worker: &Claimant) -> Result<()> {
    let is_of_lease = |claim: u64| task.lease().is_some_and(|lease| lease.claim == claim);
    if worker.claim.is_none_or(is_of_lease) { Ok(()) } else { Err(not_holder(task, act)) }
}

/// Rejects a completion without a review if the task requires a review, or if the output has an effect.
fn check_unreviewed(task: &Task<'_>, act: Act, drafts: &[ArtifactDraft]) -> Result<()> {
    let why = if task.review().is_required() {
        "the task requires a review (metadata.review)"
    } else if drafts.iter().any(ArtifactDraft::has_effect) || task.has_effects() {
        "the output has an effect, which only an approval appends"
    } else {
        return Ok(());
    };
    Err(conflict(ErrorCode::ReviewRequired, format!("{why}; complete the task without \"review\": false"), task, act))
}

fn not_holder(task: &Task<'_>, act: Act) -> Error {
    let message =
        if task.lease().is_some() { "the task is held under another claim" } else { "the task is not claimed" };
    let error = conflict(ErrorCode::NotLeaseHolder, message.into(), task, act);
    error.with_detail("claimed_by", task.text(field::CLAIMED_BY).map(Value::from))
}

fn not_assignee(task: &Task<'_>, act: Act, message: &str) -> Error {
    conflict(ErrorCode::NotAssignee, message.to_owned(), task, act)
        .with_detail("assignee_type", task.text(field::ASSIGNEE_TYPE).map(Value::from))
        .with_detail("assignee_id", task.text(field::ASSIGNEE_ID).map(Value::from))
}

fn claimed(
    view: &View<'_>,
    task: &Task<'_>,
    worker: &Claimant,
    seconds: i64,
    instance: Option<&str>,
    stamp: &Stamp,
) -> Result<Vec<NewEvent>> {
    let act = Act::Agent(Verb::Claim);
    let agent_id = worker.agent_id.as_deref().ok_or_else(|| Error::invalid_at("/agent_id", "required string"))?;
    let agent = view.live(AGENT, agent_id)?;
    check_claim(task, act, worker)?;
    if let Some(lease) = task.lease() {
        // If the same worker claims the task again, the claim only renews the lease, and a renewal is not an event.
        let is_same = lease.agent_id == agent_id && lease.instance == instance;
        return if is_same { Ok(Vec::new()) } else { Err(state_conflict(task, act)) };
    }
    check_gets_work(view.plugins(), &agent)?;
    let next = advance(task, act, Circumstances::default())?;
    let is_assigned = task.text(field::ASSIGNEE_TYPE).is_some();
    if is_assigned && task.assigned_agent() != Some(agent_id) {
        return Err(not_assignee(task, act, "the task is assigned to another agent or user"));
    }
    if !is_assigned && !may_replace_all(task, stamp) {
        let message = "a key that is bound to agents may claim only tasks of its agents, and unassigned tasks that \
                       have no output of other authors";
        return Err(Error::forbidden(ErrorCode::OthersOutput, message));
    }
    let until = stamp.at_ms.saturating_add(seconds.saturating_mul(1_000));
    let mut fields = Object::from_iter([
        (field::CLAIMED_BY, Value::from(agent_id)),
        (field::CLAIM, Value::Int(task.aggregate.version as i64 + 1)),
        (field::LEASE_SECONDS, seconds.into()),
        (field::LEASE_UNTIL, format_date(until).into()),
        (field::TAKEN_FROM, task.status().name().into()),
        (field::UNREAD, false.into()),
    ]);
    fields.push_some(field::INSTANCE, instance);
    fields.push_some(field::CLAIMED_WITH, stamp.sender.as_ref().and_then(|sender| sender.origin()).cloned());
    let version = |subject: &str| view.aggregate(subject).map_or(0, |about| about.version) as i64;
    fields.push_some(field::SOURCE_VERSION, task.subject().map(version));
    if !is_assigned {
        fields.push(field::ASSIGNEE_TYPE, "agent");
        fields.push(field::ASSIGNEE_ID, agent_id);
    }
    Ok(vec![signed(event(task, TaskEvent::Claimed, next, fields), stamp, Some(agent_id))])
}

/// Returns the event that adds a message to a task. If `worker` names an agent, the agent is the author of the message,
/// and the task's status may change. Otherwise the sender of the request is the author, and the status stays the same.
fn message_event(
    view: &View<'_>,
    task: &Task<'_>,
    worker: &Claimant,
    message: &Message,
    stamp: &Stamp,
) -> Result<NewEvent> {
    let act = Act::Agent(Verb::Message);
    let next = advance(task, act, Circumstances::default())?;
    check_claim(task, act, worker)?;
    let Some(agent_id) = worker.agent_id.as_deref() else {
        let entry = message.entry(AuthorRole::User, stamp);
        let fields = [(field::MESSAGES, Value::from(vec![entry])), (field::UNREAD, true.into())];
        return Ok(event(task, TaskEvent::Message, task.status(), Object::from_iter(fields)));
    };
    view.live(AGENT, agent_id)?;
    if holder(task).as_deref() != Some(agent_id) {
        let message = "the task is held by another agent, or is not assigned to the sending agent";
        return Err(not_assignee(task, act, message));
    }
    let entry = message.entry(AuthorRole::Agent, &Stamp { by: agent_id.to_owned(), ..stamp.clone() });
    let fields = [(field::MESSAGES, Value::from(vec![entry])), (field::UNREAD, true.into())];
    Ok(event(task, TaskEvent::Message, next, Object::from_iter(fields)))
}

fn completed(
    view: &View<'_>,
    task: &Task<'_>,
    next: Status,
    drafts: &[ArtifactDraft],
    message: Option<&Message>,
    stamp: &Stamp,
) -> Result<NewEvent> {
    let mut fields = Object::from_iter([(field::UNREAD, true)]);
    add_deliverers(&mut fields, Some(task), stamp)?;
    if !drafts.is_empty() {
        fields.push(field::ARTIFACTS, versions(view, task, drafts, stamp)?);
    }
    fields.push_some(field::MESSAGES, message.map(|message| vec![message.entry(AuthorRole::Agent, stamp)]));
    let kind = match next {
        Status::Completed => {
            fields.push(field::RESOLUTION, resolution("complete", &stamp.by, stamp.at_ms, ("", None)));
            TaskEvent::Completed
        }
        _ => TaskEvent::Delivered,
    };
    Ok(event(task, kind, next, fields))
}

/// Returns the event that makes a task available for another attempt, or, if `next` is [`Status::Failed`], the event
/// that fails the task.
pub(super) fn again_or_failed(
    task: &Task<'_>,
    back: TaskEvent,
    next: Status,
    by: &str,
    at_ms: i64,
    error: &str,
) -> NewEvent {
    let mut fields = Object::from_iter([(field::UNREAD, true)]);
    if next == Status::Failed {
        fields.push(field::RESOLUTION, resolution("fail", by, at_ms, ("error", Some(error))));
        return event(task, TaskEvent::Failed, next, fields);
    }
    fields.push(field::ATTEMPT, task.attempt() + 1);
    event(task, back, next, fields)
}
