//! Decisions about the actions of people on tasks.

use std::sync::Arc;

use super::decision::{advance, check_version, conflict, event, find_enabled_agent, find_expected, resolution};
use super::effect;
use crate::core::view::View;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::date::format_date;
use crate::model::event::{Expected, NewEvent};
use crate::model::facts::Assignee;
use crate::model::task::content::{Message, Role, Stamp};
use crate::model::task::edit::{self, Edit};
use crate::model::task::record::field;
use crate::model::task::transition::Circumstances;
use crate::model::task::{Act, Action, Status, Task, TaskEvent};
use crate::model::value::{Object, Value};

/// The error code for an action that the task's review excludes.
const ACTION_NOT_ALLOWED: &str = "action_not_allowed";
/// The error code for an edit that is based on outdated artifacts.
pub const ARTIFACTS_CHANGED: &str = "artifacts_changed";

/// An action of a person on a task, with the action's content.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCommand {
    Approve {
        comment: Option<String>,
    },
    Edit {
        edit: Edit,
        comment: Option<String>,
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
    Assign {
        /// The new assignee. `None` leaves the task without an assignee.
        assignee: Option<Assignee>,
        /// The new due date, in milliseconds since the epoch. `None` leaves the due date unchanged.
        due_at: Option<i64>,
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
            TaskCommand::Assign { .. } => Action::Assign,
            TaskCommand::Read => Action::Read,
            TaskCommand::Unread => Action::Unread,
        }
    }

    /// Returns the approximate size of the action's content, in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            TaskCommand::Edit { edit, .. } => edit.size_bytes(),
            TaskCommand::Ask { message } => message.size_bytes(),
            TaskCommand::Approve { comment: text }
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
    let artifacts = edit::edited(task, edit, stamp)?;
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
    let resolved = |name, text: &Option<String>| {
        resolution(command.action().name(), &stamp.by, stamp.at_ms, (name, text.as_deref()))
    };
    let done = |kind, fields: Object| vec![event(&task, kind, next, fields)];
    Ok(match command {
        TaskCommand::Approve { comment } => {
            let fields = [(field::RESOLUTION, resolved("comment", comment)), (field::UNREAD, false.into())];
            let mut events = done(TaskEvent::Approved, Object::from_iter(fields));
            events.extend(effect::events(view, &task, &task.current_artifacts())?);
            events
        }
        TaskCommand::Edit { comment, .. } => {
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
            events.extend(effect::events(view, &task, &artifacts_after(&task, artifacts))?);
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
        TaskCommand::Ask { message } => {
            let fields =
                [(field::MESSAGES, Value::from(vec![message.entry(Role::User, stamp)])), (field::UNREAD, true.into())];
            done(TaskEvent::Asked, Object::from_iter(fields))
        }
        TaskCommand::Assign { assignee, due_at } => {
            assigned(view, &task, assignee.as_ref(), *due_at, next)?.into_iter().collect()
        }
        TaskCommand::Read if !task.is_unread() => Vec::new(),
        TaskCommand::Unread if task.is_unread() => Vec::new(),
        TaskCommand::Read => done(TaskEvent::Read, Object::from_iter([(field::UNREAD, false)])),
        TaskCommand::Unread => done(TaskEvent::Unread, Object::from_iter([(field::UNREAD, true)])),
    })
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
