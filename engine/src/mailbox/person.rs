//! Decisions about the actions of people on tasks.

use std::sync::Arc;

use super::decision::{advance, check_version, conflict, event, find_enabled_agent, find_expected, resolution, signed};
use super::effect;
use crate::core::view::View;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::date::format_date;
use crate::model::event::{Expected, NewEvent};
use crate::model::excerpt::excerpt;
use crate::model::facts::Assignee;
use crate::model::task::content::{Message, Role, Stamp};
use crate::model::task::edit::{self, Edit, Refusal};
use crate::model::task::record::field;
use crate::model::task::transition::Circumstances;
use crate::model::task::{Act, Action, Status, Task, TaskEvent};
use crate::model::value::{Object, Value};

/// The error code for an action that the task's review excludes.
const ACTION_NOT_ALLOWED: &str = "action_not_allowed";
/// The error code for an edit that is based on outdated artifacts.
pub const ARTIFACTS_CHANGED: &str = "artifacts_changed";
/// The error code for a decision of a key or session on its own output.
const OWN_DELIVERY: &str = "own_delivery";
/// The error code for an edit that changes the content of an artifact, but not the artifact's effect.
const EFFECT_UNCHANGED: &str = "effect_unchanged";

/// An action of a person on a task, with the action's content.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCommand {
    Approve {
        comment: Option<String>,
        /// Whether effects may overwrite what their authors have not read.
        accept_stale: bool,
    },
    Edit {
        edit: Edit,
        comment: Option<String>,
        /// The same as for `Approve`.
        accept_stale: bool,
    },
    Reject {
        reason: Option<String>,
    },
    Defer {
        /// The time when the task wakes, in milliseconds since the epoch. If `None`, the task wakes when somebody acts
        /// on it.
        until: Option<i64>,
        reason: Option<String>,
    },
    Ask {
        message: Message,
    },
    RequestChanges {
        message: Message,
    },
    Answer {
        message: Message,
    },
    Assign {
        /// The new assignee. `None` leaves the task without an assignee.
        assignee: Option<Assignee>,
        /// The new due date, in milliseconds since the epoch. `None` leaves the due date unchanged.
        due_at: Option<i64>,
    },
    Retry {
        comment: Option<String>,
    },
    Read,
    Unread,
}

impl TaskCommand {
    pub fn action(&self) -> Action {
        match self {
            TaskCommand::Approve { .. } => Action::Approve,
            TaskCommand::Edit { .. } => Action::Edit,
            TaskCommand::Reject { .. } => Action::Reject,
            TaskCommand::Defer { .. } => Action::Defer,
            TaskCommand::Ask { .. } => Action::Ask,
            TaskCommand::RequestChanges { .. } => Action::RequestChanges,
            TaskCommand::Answer { .. } => Action::Answer,
            TaskCommand::Assign { .. } => Action::Assign,
            TaskCommand::Retry { .. } => Action::Retry,
            TaskCommand::Read => Action::Read,
            TaskCommand::Unread => Action::Unread,
        }
    }

    /// Returns the approximate size of the action's content, in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            TaskCommand::Edit { edit, .. } => edit.size_bytes(),
            TaskCommand::Ask { message }
            | TaskCommand::RequestChanges { message }
            | TaskCommand::Answer { message } => message.size_bytes(),
            TaskCommand::Approve { comment: text, .. }
            | TaskCommand::Retry { comment: text }
            | TaskCommand::Reject { reason: text }
            | TaskCommand::Defer { reason: text, .. } => text.as_ref().map_or(0, String::len),
            TaskCommand::Assign { .. } | TaskCommand::Read | TaskCommand::Unread => 0,
        }
    }
}

/// The artifacts that an edit produces. They are computed before the decision to apply the edit, because a decision
/// blocks other appends and must not take that long.
#[derive(Debug, Clone)]
pub struct Edited {
    artifacts: Vec<Object>,
    /// The number of artifact versions that the task had when the edit was computed. The number of a task's versions
    /// only grows.
    based_on: usize,
}

/// Computes an edit of the current task.
pub fn edited(found: &Aggregate, expected: Expected, edit: &Edit, stamp: &Stamp) -> Result<Edited> {
    check_version(found, expected)?;
    let task = &Task::new(found);
    permit(task, Action::Edit, Circumstances::default())?;
    let artifacts = edit::edited(task, edit, stamp).map_err(|refusal| match refusal {
        Refusal::Invalid(violations) => Error::from(violations),
        Refusal::EffectUnchanged { name } => effect_unchanged(&name),
    })?;
    Ok(Edited { artifacts, based_on: task.artifacts().len() })
}

/// Returns the events of an action. Returns no events if the action changes nothing.
pub fn decide(
    view: &View<'_>,
    id: &str,
    expected: Expected,
    command: &TaskCommand,
    edited: Option<&Edited>,
    stamp: &Stamp,
) -> Result<Vec<NewEvent>> {
    let found = find_expected(view, id, expected)?;
    let task = Task::new(&found);
    let other_time = matches!(command, TaskCommand::Defer { until, .. } if *until != task.wakes_at());
    let next = permit(&task, command.action(), Circumstances { other_time, ..Circumstances::default() })?;
    check_role(&task, command.action(), stamp)?;
    check_deliverer(&task, command.action(), stamp)?;
    let resolved = |name, text: &Option<String>| {
        resolution(command.action().name(), &stamp.by, stamp.at_ms, (name, text.as_deref()))
    };
    let done = |kind, fields: Object| vec![event(&task, kind, next, fields)];
    let events = match command {
        TaskCommand::Approve { comment, accept_stale } => {
            let fields = [(field::RESOLUTION, resolved("comment", comment)), (field::UNREAD, false.into())];
            let mut events = done(TaskEvent::Approved, Object::from_iter(fields));
            events.extend(effect::events(view, &task, &task.current_artifacts(), *accept_stale)?);
            events
        }
        TaskCommand::Edit { comment, accept_stale, .. } => {
            let Some(Edited { artifacts, based_on }) = edited else { return Err(artifacts_changed()) };
            if *based_on != task.artifacts().len() {
                return Err(artifacts_changed());
            }
            let kept: Vec<Value> = artifacts.iter().cloned().map(Value::from).collect();
            let fields = [
                (field::RESOLUTION, resolved("comment", comment)),
                (field::UNREAD, false.into()),
                (field::ARTIFACTS, kept.into()),
            ];
            let mut events = done(TaskEvent::Edited, Object::from_iter(fields));
            events.extend(effect::events(view, &task, &artifacts_after(&task, artifacts), *accept_stale)?);
            events
        }
        TaskCommand::Reject { reason } => {
            let fields = [(field::RESOLUTION, resolved("reason", reason)), (field::UNREAD, false.into())];
            done(TaskEvent::Rejected, Object::from_iter(fields))
        }
        TaskCommand::Defer { until, reason } => {
            let mut fields = Object::from_iter([
                (field::DEFERRED_UNTIL, Value::from(until.map(format_date))),
                (field::UNREAD, false.into()),
            ]);
            if task.status() != Status::Deferred {
                fields.push(field::TAKEN_FROM, task.status().name());
            }
            let mut events = done(TaskEvent::Deferred, fields);
            for (event, reason) in events.iter_mut().zip(reason) {
                event.metadata.push("reason", reason.as_str());
            }
            events
        }
        TaskCommand::Ask { message } | TaskCommand::RequestChanges { message } | TaskCommand::Answer { message } => {
            let fields =
                [(field::MESSAGES, Value::from(vec![message.entry(Role::User, stamp)])), (field::UNREAD, true.into())];
            let mut events = done(TaskEvent::Asked, Object::from_iter(fields));
            events.iter_mut().for_each(|event| event.metadata.push("action", command.action().name()));
            events
        }
        TaskCommand::Assign { assignee, due_at } => {
            assigned(view, &task, assignee.as_ref(), *due_at, next)?.into_iter().collect()
        }
        TaskCommand::Retry { comment } => {
            let fields = [(field::RESOLUTION, Value::Null), (field::ATTEMPT, 1.into()), (field::UNREAD, true.into())];
            let mut events = done(TaskEvent::Retried, Object::from_iter(fields));
            for (event, comment) in events.iter_mut().zip(comment) {
                event.metadata.push("comment", comment.as_str());
            }
            events
        }
        TaskCommand::Read if !task.is_unread() => Vec::new(),
        TaskCommand::Unread if task.is_unread() => Vec::new(),
        TaskCommand::Read => done(TaskEvent::Read, Object::from_iter([(field::UNREAD, false)])),
        TaskCommand::Unread => done(TaskEvent::Unread, Object::from_iter([(field::UNREAD, true)])),
    };
    let author = |event: &NewEvent| {
        let artifact = event.metadata.get("artifact_id").and_then(Value::as_str)?;
        effect::author(view, &task, artifact)
    };
    Ok(events.into_iter().map(|event| signed_by(event, author, stamp)).collect())
}

/// Returns an event that names the person and the key, and the agent that `author` finds.
fn signed_by(event: NewEvent, author: impl Fn(&NewEvent) -> Option<String>, stamp: &Stamp) -> NewEvent {
    let agent_id = author(&event);
    signed(event, stamp, agent_id.as_deref())
}

/// Rejects a decision by somebody whose role is below the one that the task's review requires.
fn check_role(task: &Task<'_>, action: Action, stamp: &Stamp) -> Result<()> {
    let Some(sender) = stamp.sender.as_ref().filter(|_| action.is_decision()) else { return Ok(()) };
    match task.review().required_role() {
        Some(required) if sender.role < required => {
            let message = format!("only members with at least the role {} may decide on this task", required.name());
            Err(Error::forbidden("insufficient_role", message))
        }
        _ => Ok(()),
    }
}

/// Rejects a final decision by a key or session that has delivered the output, or by a key derived from it.
fn check_deliverer(task: &Task<'_>, action: Action, stamp: &Stamp) -> Result<()> {
    let is_final = matches!(action, Action::Approve | Action::Edit | Action::Reject);
    let Some(sender) = stamp.sender.as_ref().filter(|_| is_final) else { return Ok(()) };
    let is_own = |origin: &Value| sender.excluded.iter().any(|excluded| origin.as_str() == Some(&**excluded));
    if task.deliverers().iter().any(is_own) {
        let message = "the same key or session has delivered the output; somebody else must decide on it";
        return Err(Error::forbidden(OWN_DELIVERY, message));
    }
    Ok(())
}

/// Returns the events of an approval of the current output, with ids that are unique among them. The events are only
/// for a preview. Returns no events if the task cannot be approved now, or if its output has no effects.
pub fn approval(view: &View<'_>, id: &str, expected: Expected) -> Result<Vec<NewEvent>> {
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

/// Returns the status after an action. Fails if the transition table or the task's review excludes the action.
fn permit(task: &Task<'_>, action: Action, circumstances: Circumstances) -> Result<Status> {
    let act = Act::Person(action);
    let next = advance(task, act, circumstances)?;
    if !task.review().allows(action) {
        let message = format!("the task's review does not allow the action '{}'", action.name());
        return Err(conflict(ACTION_NOT_ALLOWED, message, task, act));
    }
    Ok(next)
}

fn effect_unchanged(name: &str) -> Error {
    let name = excerpt(&name.into());
    let message = format!(
        "the effect of the artifact {name} does not contain the content that the edit changes, so approval would \
         append the same event; send the artifact together with its effect"
    );
    Error::conflict(EFFECT_UNCHANGED, message)
}

fn artifacts_changed() -> Error {
    Error::conflict(ARTIFACTS_CHANGED, "the task's output has changed since the edit began")
}

/// Returns the task's artifacts as they are after an edit.
fn artifacts_after<'a>(task: &Task<'a>, edited: &'a [Object]) -> Vec<&'a Object> {
    let superseded: Vec<&Value> = edited.iter().filter_map(|artifact| artifact.get("supersedes")).collect();
    let is_kept = |artifact: &&Object| artifact.get("id").is_none_or(|id| !superseded.contains(&id));
    task.current_artifacts().into_iter().filter(is_kept).chain(edited).collect()
}

/// Returns the event of an assignment, or `None` if the task already has this assignee and due date.
fn assigned(
    view: &View<'_>,
    task: &Task<'_>,
    assignee: Option<&Assignee>,
    due_at: Option<i64>,
    next: Status,
) -> Result<Option<NewEvent>> {
    if let Some(Assignee::Agent(id)) = assignee {
        find_enabled_agent(view, id)?;
    }
    let (kind, id) = parts(assignee);
    let (had_kind, had_id) = (task.text(field::ASSIGNEE_TYPE), task.text(field::ASSIGNEE_ID));
    let due_at = due_at.filter(|due_at| task.date(field::DUE_AT) != Some(*due_at));
    if task.status() == next && kind == had_kind && id.as_deref() == had_id && due_at.is_none() {
        return Ok(None);
    }
    let mut fields = Object::from_iter([
        (field::ASSIGNEE_TYPE, Value::from(kind)),
        (field::ASSIGNEE_ID, id.into()),
        (field::ATTEMPT, 1.into()),
        (field::UNREAD, true.into()),
    ]);
    if let Some(due_at) = due_at {
        fields.push(field::DUE_AT, format_date(due_at));
    }
    let event_kind = if assignee.is_some() { TaskEvent::Assigned } else { TaskEvent::Unassigned };
    let mut event = event(task, event_kind, next, fields);
    event.metadata =
        Object::from_iter([("previous_assignee_type", Value::from(had_kind)), ("previous_assignee_id", had_id.into())]);
    Ok(Some(event))
}

/// Returns the type and id of an assignee in the form that a task stores.
pub fn parts(assignee: Option<&Assignee>) -> (Option<&'static str>, Option<Arc<str>>) {
    match assignee {
        None => (None, None),
        Some(Assignee::Agent(id)) => (Some("agent"), Some(id.clone())),
        Some(Assignee::User(id)) => (Some("user"), Some(id.clone())),
    }
}

/// Checks an assignee. Rejects an agent that is disabled or not in the workspace.
pub fn check_assignee(view: &View<'_>, assignee: Option<&Assignee>) -> Result<()> {
    match assignee {
        Some(Assignee::Agent(id)) => find_enabled_agent(view, id).map(drop),
        Some(Assignee::User(_)) | None => Ok(()),
    }
}
