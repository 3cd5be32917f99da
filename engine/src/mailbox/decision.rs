//! What all decisions about a task have in common: finding it, asking the table, and the event that tells what was decided.

use std::sync::Arc;

use crate::core::staging::View;
use crate::error::{Error, Result};
use crate::model::agent::is_disabled;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, TASK};
use crate::model::date::format_date;
use crate::model::event::{Expected, NewEvent};
use crate::model::task::record::field;
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, Status, Task, TaskEvent};
use crate::model::value::{Object, Value};

/// The code of an act that does not go where the task stands.
pub const TASK_STATE_CONFLICT: &str = "task_state_conflict";
/// The code of work on a task that another agent holds, or that nobody holds any more.
pub const NOT_LEASE_HOLDER: &str = "not_lease_holder";

/// A task that is not deleted.
pub fn find(found: Option<Arc<Aggregate>>, id: &str) -> Result<Arc<Aggregate>> {
    let task = found.filter(|found| &*found.aggregate_type == TASK && !found.deleted);
    task.ok_or_else(|| Error::not_found("task", id))
}

/// The task at the log's end, at the version that the client expects.
pub(super) fn find_expected(view: &View<'_>, id: &str, expected: Expected) -> Result<Arc<Aggregate>> {
    let task = find(view.aggregate(id), id)?;
    check_version(&task, expected)?;
    Ok(task)
}

pub(super) fn check_version(task: &Aggregate, expected: Expected) -> Result<()> {
    if expected.allows(task.version) { Ok(()) } else { Err(Error::version_conflict(task.version)) }
}

/// The agent at the log's end; one of another workspace is not there.
pub(super) fn find_agent(view: &View<'_>, id: &str) -> Result<Arc<Aggregate>> {
    let agent = view.aggregate(id).filter(|found| &*found.aggregate_type == AGENT && !found.deleted);
    agent.ok_or_else(|| Error::not_found("agent", id))
}

/// The agent at the log's end, if it gets work.
pub(super) fn find_enabled_agent(view: &View<'_>, id: &str) -> Result<Arc<Aggregate>> {
    let agent = find_agent(view, id)?;
    if is_disabled(&agent) {
        return Err(Error::conflict("agent_disabled", "the agent is disabled: it gets no work"));
    }
    Ok(agent)
}

/// The status after an act, or why it does not go.
pub(super) fn advance(task: &Task<'_>, act: Act, circumstances: Circumstances) -> Result<Status> {
    transition::next(task, act, circumstances).ok_or_else(|| state_conflict(task, act))
}

pub(super) fn state_conflict(task: &Task<'_>, act: Act) -> Error {
    let status = task.status().name();
    conflict(TASK_STATE_CONFLICT, format!("cannot {} a task that is {status}", act.name()), task, act)
}

/// A conflict that says where the task stands and what a person may do with it.
pub(super) fn conflict(code: &'static str, message: String, task: &Task<'_>, act: Act) -> Error {
    let allowed = transition::allowed_actions(task).into_iter().map(|action| Value::from(action.name()));
    let details = Object::from_iter([
        ("status", Value::from(task.status().name())),
        ("action", act.name().into()),
        ("allowed_actions", allowed.collect::<Vec<_>>().into()),
    ]);
    Error::Conflict { code, message, details: Box::new(details) }
}

/// The event that takes a task to a status. What belonged to the status that it leaves is cleared.
pub(super) fn event(task: &Task<'_>, kind: TaskEvent, next: Status, told: Object) -> NewEvent {
    let mut payload = Object::from_iter([(field::STATUS, Value::from(next.name()))]);
    let is_left = |status: Status| task.status() == status && next != status;
    let mut clear = |names: &[&str]| names.iter().for_each(|name| drop(payload.insert(*name, Value::Null)));
    if is_left(Status::InProgress) {
        clear(&[field::CLAIMED_BY, field::CLAIM, field::LEASE_SECONDS, field::LEASE_UNTIL, field::TAKEN_FROM]);
    }
    if is_left(Status::Deferred) {
        clear(&[field::DEFERRED_UNTIL, field::TAKEN_FROM]);
    }
    // A task that is deferred while it waits for an answer is still to be answered when it wakes.
    if task.get(field::INPUT_REQUEST).is_some() && !matches!(next, Status::InputRequired | Status::Deferred) {
        clear(&[field::INPUT_REQUEST]);
    }
    told.into_iter().for_each(|(name, value)| drop(payload.insert(name, value)));
    NewEvent {
        aggregate_id: task.aggregate.id.to_string(),
        aggregate_type: TASK.into(),
        event_type: kind.name().into(),
        payload,
        ..NewEvent::default()
    }
}

/// How a task ended, and by whom.
pub(super) fn resolution(action: &str, by: &str, at_ms: i64, said: (&str, Option<&str>)) -> Value {
    let mut resolution =
        Object::from_iter([("action", Value::from(action)), ("by", by.into()), ("at", format_date(at_ms).into())]);
    if let (name, Some(text)) = said {
        resolution.push(name, text);
    }
    resolution.into()
}
