//! Checks the actions that people request on tasks, and returns the resulting events.

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use super::command::{ApprovalOverrides, TaskCommand};
use super::decision::{
    advance, check_version, conflict, event, find_enabled_agent, find_expected, has_delivered, resolution, signed,
};
use super::limits::check_message;
use super::{effect, offboarding, superseded_output};
use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::Aggregate;
use crate::model::date::format_date;
use crate::model::event::{NewEvent, StreamExpectation};
use crate::model::excerpt::excerpt;
use crate::model::facts::Assignee;
use crate::model::task::content::{AuthorRole, Message, Stamp, TaskSender};
use crate::model::task::edit::{self, Edit, EditRefusal, EffectConflict};
use crate::model::task::record::field;
use crate::model::task::transition::Circumstances;
use crate::model::task::{Act, Action, Status, Task, TaskEvent, question};
use crate::model::value::{Object, Value};

/// The artifacts that an edit produces. The artifacts are computed before the decision about the edit, because a
/// decision blocks other appends and the computation takes too long for a decision.
#[derive(Debug, Clone)]
pub struct ArtifactEdit {
    artifacts: Vec<Object>,
    /// The number of artifact versions that the task had when the edit was computed. This number never decreases, so an
    /// unchanged number means unchanged artifacts.
    based_on: usize,
}

/// The inputs of a decision that are not in the log, or that take too long to compute during the decision.
#[derive(Debug, Clone, Default)]
pub struct DecisionInputs {
    pub edited: Option<ArtifactEdit>,
    /// The agent's question against which a message was checked.
    pub question: Option<Value>,
    /// The user that the task was assigned to, if this user is no longer a member.
    pub left: Option<Assignee>,
}

/// Checks an answer against the schema of the agent's question. Returns the question, or `None` if the agent has not
/// asked a question. Called before the decision about the task, because a decision blocks other appends and the check
/// may be slow.
pub fn answered(found: &Aggregate, answer: &Message) -> Result<Option<Value>> {
    let question = Task::new(found).get(field::INPUT_REQUEST).cloned();
    let wrong = question.as_ref().map(|question| question::violations(question, answer)).unwrap_or_default();
    if wrong.is_empty() { Ok(question) } else { Err(wrong.into()) }
}

/// Computes the artifacts that an edit of a task produces. Fails if the task does not meet `expected` or does not allow
/// the edit, if the edit is invalid, or if an effect cannot be adapted to the edit.
pub fn edited(found: &Aggregate, expected: StreamExpectation, edit: &Edit, stamp: &Stamp) -> Result<ArtifactEdit> {
    check_version(found, expected)?;
    let task = &Task::new(found);
    permit(task, Action::Edit, Circumstances::default())?;
    let artifacts = edit::edited(task, edit, stamp).map_err(|refusal| match refusal {
        EditRefusal::Invalid(violations) => Error::from(violations),
        EditRefusal::EffectUnchanged { name, why } => effect_unchanged(&name, &why),
    })?;
    Ok(ArtifactEdit { artifacts, based_on: task.artifacts().len() })
}

/// Returns the events of an action. Returns no events if the action changes nothing.
pub fn decide(
    view: &View<'_>,
    id: &str,
    expected: StreamExpectation,
    command: &TaskCommand,
    prepared: &DecisionInputs,
    stamp: &Stamp,
) -> Result<Vec<NewEvent>> {
    let found = find_expected(view, id, expected)?;
    let task = Task::new(&found);
    let other_time = matches!(command, TaskCommand::Defer { until, .. } if *until != task.wakes_at());
    let sender = stamp.sender.as_deref();
    let permitted = permit(&task, command.action(), Circumstances { other_time, ..Circumstances::default() });
    let next = permitted.map_err(|error| with_own_actions(error, &task, sender))?;
    check_role(&task, command.action(), sender)?;
    check_deliverer(&task, command.action(), sender)?;
    let resolved = |name, text: &Option<String>| {
        let resolution = resolution(command.action().name(), &stamp.by, stamp.at_ms, (name, text.as_deref()));
        Object::from_iter([(field::RESOLUTION, resolution), (field::UNREAD, false.into())])
    };
    let done = |kind, fields: Object| vec![event(&task, kind, next, fields)];
    let approved =
        |kind, fields: Object, artifacts: &[&Object], accepted: ApprovalOverrides| -> Result<Vec<NewEvent>> {
            superseded_output::check(&task, artifacts, accepted)?;
            let mut events = done(kind, fields);
            events.extend(effect::events(view, &task, artifacts, accepted.stale)?);
            Ok(events)
        };
    let noted = |kind, fields: Object, name: &str, text: Option<&str>| {
        let mut event = event(&task, kind, next, fields);
        text.into_iter().for_each(|text| event.metadata.push(name, text));
        vec![event]
    };
    let events = match command {
        TaskCommand::Approve { comment, accepted } => {
            approved(TaskEvent::Approved, resolved("comment", comment), &task.current_artifacts(), *accepted)?
        }
        TaskCommand::Edit { comment, accepted, .. } => {
            let current = prepared.edited.as_ref().filter(|edit| edit.based_on == task.artifacts().len());
            let ArtifactEdit { artifacts, .. } = current.ok_or_else(artifacts_changed)?;
            let kept: Value = artifacts.iter().cloned().collect();
            let mut fields = resolved("comment", comment);
            fields.push(field::ARTIFACTS, kept);
            approved(TaskEvent::Edited, fields, &artifacts_after(&task, artifacts), *accepted)?
        }
        TaskCommand::Reject { reason } => done(TaskEvent::Rejected, resolved("reason", reason)),
        TaskCommand::Defer { until, reason } => {
            let mut fields = Object::from_iter([
                (field::DEFERRED_UNTIL, Value::from(until.map(format_date))),
                (field::UNREAD, false.into()),
            ]);
            if task.status() != Status::Deferred {
                fields.push(field::TAKEN_FROM, task.status().name());
            }
            noted(TaskEvent::Deferred, fields, "reason", reason.as_deref())
        }
        TaskCommand::Ask { .. } | TaskCommand::Answer { .. }
            if task.get(field::INPUT_REQUEST) != prepared.question.as_ref() =>
        {
            return Err(Error::conflict(
                ErrorCode::QuestionChanged,
                "the agent's question has changed since the request began",
            ));
        }
        TaskCommand::Ask { message } | TaskCommand::RequestChanges { message } | TaskCommand::Answer { message } => {
            check_message(&task, message)?;
            let mut fields = Object::from_iter([
                (field::MESSAGES, Value::from(vec![message.entry(AuthorRole::User, stamp)])),
                (field::UNREAD, true.into()),
            ]);
            let kind = match command {
                TaskCommand::RequestChanges { .. } => {
                    fields.push(field::SUPERSEDED, task.artifacts().len() as i64);
                    TaskEvent::ChangesRequested
                }
                TaskCommand::Answer { .. } => TaskEvent::Answered,
                _ => TaskEvent::Asked,
            };
            noted(kind, fields, "action", Some(command.action().name()))
        }
        TaskCommand::Assign { assignee, due_at } => {
            assigned(view, &task, assignee.as_ref(), *due_at, next)?.into_iter().collect()
        }
        TaskCommand::Retry { comment } => {
            let fields = [(field::RESOLUTION, Value::Null), (field::ATTEMPT, 1.into()), (field::UNREAD, true.into())];
            let mut fields = Object::from_iter(fields);
            // The task must not wait for an assignee who has left, or for an agent whose plugin is not enabled.
            let assignee = task.assignee();
            let is_without_plugin =
                |agent: &str| view.aggregate(agent).is_some_and(|agent| !view.plugins().gives_work_to(&agent));
            let has_left = assignee == prepared.left
                || offboarding::agent_left(view, &task).is_some()
                || task.assigned_agent().is_some_and(is_without_plugin);
            if assignee.is_some() && has_left {
                fields.push(field::ASSIGNEE_TYPE, Value::Null);
                fields.push(field::ASSIGNEE_ID, Value::Null);
            }
            noted(TaskEvent::Retried, fields, "comment", comment.as_deref())
        }
        TaskCommand::Read if !task.is_unread() => Vec::new(),
        TaskCommand::Unread if task.is_unread() => Vec::new(),
        TaskCommand::Read => done(TaskEvent::Read, Object::from_iter([(field::UNREAD, false)])),
        TaskCommand::Unread => done(TaskEvent::Unread, Object::from_iter([(field::UNREAD, true)])),
    };
    let edited = prepared.edited.as_ref().map_or(&[][..], |edit| edit.artifacts.as_slice());
    let authors = events.get(1).map(|_| effect::authors(view, &task, edited));
    let author = |event: &NewEvent| {
        let artifact = event.metadata.text("artifact_id")?;
        authors.as_ref()?.get(artifact).copied()
    };
    let sign = |event: NewEvent| {
        let agent_id = author(&event);
        signed(event, stamp, agent_id)
    };
    Ok(events.into_iter().map(sign).collect())
}

/// Returns whether a sender may take an action that the task's status and review allow.
pub fn may_act(task: &Task<'_>, action: Action, sender: &TaskSender) -> bool {
    check_role(task, action, Some(sender)).is_ok() && check_deliverer(task, action, Some(sender)).is_ok()
}

/// Reduces the list of allowed actions in an error to the actions that are allowed for the sender.
fn with_own_actions(mut error: Error, task: &Task<'_>, sender: Option<&TaskSender>) -> Error {
    if let (Error::Conflict { details, .. }, Some(sender)) = (&mut error, sender)
        && let Some(Value::Array(actions)) = details.get_mut("allowed_actions")
    {
        let may =
            |name: &Value| name.as_str().and_then(Action::parse).is_some_and(|action| may_act(task, action, sender));
        Arc::make_mut(actions).retain(may);
    }
    error
}

/// Rejects a decision by a member whose role is below the role that the task's review requires.
fn check_role(task: &Task<'_>, action: Action, sender: Option<&TaskSender>) -> Result<()> {
    let Some(sender) = sender.filter(|_| action.is_decision()) else { return Ok(()) };
    match task.review().required_role() {
        Some(required) if sender.role < required => {
            let message = format!("only members with at least the role {} may decide on this task", required.name());
            Err(Error::forbidden(ErrorCode::InsufficientRole, message))
        }
        _ => Ok(()),
    }
}

/// Rejects an approval, an edit or a rejection if the sender has delivered output of the task ([`has_delivered`]).
/// Accepts every action if the sender may decide on the sender's own deliveries.
fn check_deliverer(task: &Task<'_>, action: Action, sender: Option<&TaskSender>) -> Result<()> {
    let is_final = matches!(action, Action::Approve | Action::Edit | Action::Reject);
    let sender = sender.filter(|sender| is_final && !sender.decides_on_own);
    if sender.is_some_and(|sender| has_delivered(task, sender)) {
        let message = "the caller's user, or a key or session of this user, has delivered the output; another \
                       user must decide on the output";
        return Err(Error::forbidden(ErrorCode::OwnDelivery, message));
    }
    Ok(())
}

/// Returns the error for an approval of output that has been sent back. Returns `None` if the output has not been sent
/// back, or if the task does not allow an approval.
pub fn sent_back(task: &Aggregate) -> Option<Error> {
    let task = Task::new(task);
    permit(&task, Action::Approve, Circumstances::default()).ok()?;
    superseded_output::check(&task, &task.current_artifacts(), ApprovalOverrides::default()).err()
}

/// Returns the events of an approval of the current output. The events serve only as a preview, because their ids are
/// unique only within the result. Returns no events if the transition table does not allow an approval, or if the
/// task's output has no effects. Does not check whether the task's review allows an approval.
pub fn approval(view: &View<'_>, id: &str, expected: StreamExpectation) -> Result<Vec<NewEvent>> {
    let found = find_expected(view, id, expected)?;
    let task = Task::new(&found);
    let Ok(next) = advance(&task, Act::Person(Action::Approve), Circumstances::default()) else {
        return Ok(Vec::new());
    };
    let effects = effect::events(view, &task, &task.current_artifacts(), true)?;
    if effects.is_empty() {
        return Ok(Vec::new());
    }
    let approved = event(&task, TaskEvent::Approved, next, Object::new());
    let numbered = |(number, event)| NewEvent { event_id: Some(format!("preview-{number}")), ..event };
    Ok(std::iter::once(approved).chain(effects).enumerate().map(numbered).collect())
}

/// Returns the status after an action. Fails if the transition table or the task's review does not allow the action.
fn permit(task: &Task<'_>, action: Action, circumstances: Circumstances) -> Result<Status> {
    let act = Act::Person(action);
    let next = advance(task, act, circumstances)?;
    if !task.review().allows(action) {
        let message = format!("the task's review does not allow the action '{}'", action.name());
        return Err(conflict(ErrorCode::ActionNotAllowed, message, task, act));
    }
    Ok(next)
}

fn effect_unchanged(name: &str, why: &EffectConflict) -> Error {
    let (name, reason) = (excerpt(&name.into()), why.explain());
    let message = format!(
        "the effect of the artifact {name} {reason}, so the effect cannot be adapted to the edit; send the \
         artifact together with its effect"
    );
    let error = Error::conflict(ErrorCode::EffectUnchanged, message);
    let EffectConflict::Several(pointers) = why else { return error };
    let pointers = pointers.iter().map(|pointer| Value::from(format!("/effect/payload{pointer}")));
    error.with_detail("fields", pointers.collect::<Vec<_>>())
}

fn artifacts_changed() -> Error {
    Error::conflict(ErrorCode::ArtifactsChanged, "the task's output has changed since the edit began")
}

/// Returns the task's artifacts as they are after an edit. An edited artifact takes the place of the version that it
/// supersedes, and new artifacts follow at the end. The order of the effects is therefore the same as in the preview.
fn artifacts_after<'a>(task: &Task<'a>, edited: &'a [Object]) -> Vec<&'a Object> {
    let successors: FxHashMap<&str, &Object> =
        edited.iter().filter_map(|artifact| Some((artifact.text("supersedes")?, artifact))).collect();
    let successor = |artifact: &Object| successors.get(artifact.text("id")?).copied();
    let current = task.current_artifacts().into_iter();
    let replaced = current.map(|artifact| successor(artifact).unwrap_or(artifact));
    replaced.chain(edited.iter().filter(|artifact| artifact.text("supersedes").is_none())).collect()
}

/// Returns the event of an assignment, or `None` if the task already has this assignee, this due date and the status
/// `next`. Without `due_at`, the task keeps its due date.
fn assigned(
    view: &View<'_>,
    task: &Task<'_>,
    assignee: Option<&Assignee>,
    due_at: Option<i64>,
    next: Status,
) -> Result<Option<NewEvent>> {
    check_assignee(view, assignee)?;
    let (kind, id) = parts(assignee);
    let (had_kind, had_id) = (task.text(field::ASSIGNEE_TYPE), task.text(field::ASSIGNEE_ID));
    let due_at = due_at.filter(|due_at| task.date(field::DUE_AT) != Some(*due_at));
    if task.status() == next && kind == had_kind && id.as_deref() == had_id && due_at.is_none() {
        return Ok(None);
    }
    let mut event = given_to(task, assignee, next);
    event.payload.push_some(field::DUE_AT, due_at.map(format_date));
    Ok(Some(event))
}

/// Returns the event that gives a task to another assignee, or that leaves the task unassigned. The metadata of the
/// event contains the previous assignee.
pub(super) fn given_to(task: &Task<'_>, assignee: Option<&Assignee>, next: Status) -> NewEvent {
    let (kind, id) = parts(assignee);
    let fields = Object::from_iter([
        (field::ASSIGNEE_TYPE, Value::from(kind)),
        (field::ASSIGNEE_ID, id.into()),
        (field::ATTEMPT, 1.into()),
        (field::UNREAD, true.into()),
    ]);
    let event_kind = if assignee.is_some() { TaskEvent::Assigned } else { TaskEvent::Unassigned };
    let metadata = Object::from_iter([
        ("previous_assignee_type", Value::from(task.text(field::ASSIGNEE_TYPE))),
        ("previous_assignee_id", task.text(field::ASSIGNEE_ID).into()),
    ]);
    NewEvent { metadata, ..event(task, event_kind, next, fields) }
}

/// Returns the type and id of an assignee in the form that a task stores.
pub fn parts(assignee: Option<&Assignee>) -> (Option<&'static str>, Option<Arc<str>>) {
    match assignee {
        None => (None, None),
        Some(Assignee::Agent(id)) => (Some("agent"), Some(id.clone())),
        Some(Assignee::User(id)) => (Some("user"), Some(id.clone())),
    }
}

/// Checks an assignee. Rejects an agent that does not exist or gets no work.
pub fn check_assignee(view: &View<'_>, assignee: Option<&Assignee>) -> Result<()> {
    match assignee {
        Some(Assignee::Agent(id)) => find_enabled_agent(view, id).map(drop),
        Some(Assignee::User(_)) | None => Ok(()),
    }
}
