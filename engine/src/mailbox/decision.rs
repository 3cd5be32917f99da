//! The common parts of all decisions about a task: finding the task, checking the transition, and building the event.

use std::sync::Arc;

use crate::append::view::View;
use crate::error::{Error, ErrorCode, Result};
use crate::model::agent::is_disabled;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::{AGENT, TASK};
use crate::model::date::format_date;
use crate::model::event::{NewEvent, StreamExpectation};
use crate::model::task::content::{Stamp, TaskSender};
use crate::model::task::record::field;
use crate::model::task::transition::{self, Circumstances};
use crate::model::task::{Act, Action, Status, Task, TaskEvent, Verb};
use crate::model::value::{Object, Value};
use crate::state::plugin_host::PluginHost;

/// The maximum number of keys and sessions that a task keeps as its deliverers.
const MAX_DELIVERERS: usize = 100;

/// Returns the found aggregate if it is a task and not deleted. Fails otherwise.
pub fn find(found: Option<Arc<Aggregate>>, id: &str) -> Result<Arc<Aggregate>> {
    let task = found.filter(|found| &*found.aggregate_type == TASK && !found.deleted);
    task.ok_or_else(|| Error::not_found("task", id))
}

/// Returns the task's state at the log's end. Fails if the client expects another version.
pub(super) fn find_expected(view: &View<'_>, id: &str, expected: StreamExpectation) -> Result<Arc<Aggregate>> {
    let task = find(view.aggregate(id), id)?;
    check_version(&task, expected)?;
    Ok(task)
}

pub(super) fn check_version(task: &Aggregate, expected: StreamExpectation) -> Result<()> {
    if expected.allows(task.version) { Ok(()) } else { Err(Error::version_conflict(task.version)) }
}

/// Returns the agent's state at the log's end. Fails if the agent gets no work.
pub(super) fn find_enabled_agent(view: &View<'_>, id: &str) -> Result<Arc<Aggregate>> {
    let agent = view.live(AGENT, id)?;
    check_gets_work(view.plugins(), &agent)?;
    Ok(agent)
}

/// Fails if an agent gets no work, because the agent is disabled or its plugin is not enabled.
pub fn check_gets_work(plugins: &PluginHost, agent: &Aggregate) -> Result<()> {
    match reason_for_no_work(plugins, agent) {
        None => Ok(()),
        Some(reason) => Err(Error::conflict(ErrorCode::AgentDisabled, reason)),
    }
}

/// Returns the reason why an agent gets no work, or `None` if the agent gets work.
pub fn reason_for_no_work(plugins: &PluginHost, agent: &Aggregate) -> Option<&'static str> {
    match is_disabled(agent) {
        true => Some("the agent is disabled and gets no work"),
        false if plugins.gives_work_to(agent) => None,
        false => Some("the plugin that does the agent's work is not enabled, so the agent gets no work"),
    }
}

/// Returns the status after an action. Fails if the action is not possible.
pub(super) fn advance(task: &Task<'_>, act: Act, circumstances: Circumstances) -> Result<Status> {
    transition::next(task, act, circumstances).ok_or_else(|| state_conflict(task, act))
}

pub(super) fn state_conflict(task: &Task<'_>, act: Act) -> Error {
    let status = task.status().name();
    conflict(ErrorCode::TaskStateConflict, format!("cannot {} a task that is {status}", phrase(act)), task, act)
}

/// Returns the words for an act that complete the sentence "cannot … a task".
fn phrase(act: Act) -> &'static str {
    match act {
        Act::Agent(Verb::Message) => "add a message to",
        Act::Agent(Verb::Artifact) => "add an artifact to",
        Act::Agent(Verb::RequestInput) => "request input for",
        Act::Agent(Verb::GiveUp) => "end",
        Act::Person(Action::RequestChanges) => "request changes to the output of",
        Act::Person(Action::Ask) => "ask about",
        other => other.name(),
    }
}

/// Returns a conflict error that contains the task's status and the actions that a person may take.
pub(super) fn conflict(code: ErrorCode, message: String, task: &Task<'_>, act: Act) -> Error {
    let allowed = transition::allowed_actions(task).into_iter().map(|action| Value::from(action.name()));
    let details = Object::from_iter([
        ("status", Value::from(task.status().name())),
        ("action", act.name().into()),
        ("allowed_actions", allowed.collect::<Vec<_>>().into()),
    ]);
    Error::conflict_with(code, message, details)
}

/// Returns the event that sets the status and fields of a task. If the status changes, clears the fields that belong to
/// the previous status.
pub(super) fn event(task: &Task<'_>, kind: TaskEvent, next: Status, fields: Object) -> NewEvent {
    let mut payload = Object::from_iter([(field::STATUS, Value::from(next.name()))]);
    let is_left = |status: Status| task.status() == status && next != status;
    let mut clear = |names: &[&str]| names.iter().for_each(|name| drop(payload.insert(*name, Value::Null)));
    if is_left(Status::InProgress) {
        clear(&[field::CLAIMED_BY, field::CLAIM, field::LEASE_SECONDS, field::LEASE_UNTIL, field::TAKEN_FROM]);
        for name in [field::INSTANCE, field::CLAIMED_WITH, field::SOURCE_VERSION] {
            if task.get(name).is_some() {
                clear(&[name]);
            }
        }
    }
    if is_left(Status::Deferred) {
        clear(&[field::DEFERRED_UNTIL, field::TAKEN_FROM]);
    }
    // A task that is deferred while it waits for an answer still waits for this answer after the deferral.
    if task.get(field::INPUT_REQUEST).is_some() && !matches!(next, Status::InputRequired | Status::Deferred) {
        clear(&[field::INPUT_REQUEST]);
    }
    fields.into_iter().for_each(|(name, value)| drop(payload.insert(name, value)));
    NewEvent {
        aggregate_id: task.aggregate.id.to_string(),
        aggregate_type: TASK.into(),
        event_type: kind.name().into(),
        payload,
        ..NewEvent::default()
    }
}

/// Adds the caller of the request to the metadata of an event: the user, the key and the agent.
pub fn signed(mut event: NewEvent, stamp: &Stamp, agent_id: Option<&str>) -> NewEvent {
    if let Some(sender) = &stamp.sender {
        event.metadata.push("user_id", sender.user_id.clone());
        event.metadata.push("key_id", sender.key_id.clone().map(Value::from));
        event.metadata.push("agent_id", agent_id.map(Value::from));
    }
    event
}

/// Adds the deliverers of a task to the fields of an event. The first field lists the keys and sessions that have
/// delivered output of the task, and the sender's key or session. The second field lists the keys and sessions from
/// which the delivering keys were derived, and the users who delivered. Keys that are bound to agents add nothing to
/// the second field. Deliverers are never removed, because a removed deliverer could decide on its own output. Fails if
/// there are too many deliverers.
pub fn add_deliverers(fields: &mut Object, task: Option<&Task<'_>>, stamp: &Stamp) -> Result<()> {
    let Some(sender) = &stamp.sender else { return Ok(()) };
    let with = |known: &[Value], new: &[Arc<str>]| {
        let mut all = known.to_vec();
        for one in new.iter().cloned().map(Value::from) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    };
    let known = task.map_or(&[][..], Task::deliverers);
    let by = with(known, sender.origin().map(std::slice::from_ref).unwrap_or_default());
    if by.len() > MAX_DELIVERERS.max(known.len()) {
        let message = format!(
            "{MAX_DELIVERERS} keys and sessions have delivered output of the task, and only these may deliver more"
        );
        return Err(Error::conflict(ErrorCode::TooManyDeliverers, message));
    }
    fields.push(field::DELIVERED_BY, by);
    let below = with(task.map_or(&[][..], Task::delivered_below), sender.above());
    if !below.is_empty() {
        fields.push(field::DELIVERED_BELOW, below);
    }
    Ok(())
}

/// Returns whether the sender has delivered output of a task. A delivery counts if the sender's user made the delivery.
/// A delivery also counts if it was made with the sender's key or session, or with an ancestor or descendant of this
/// key or session. A delivery with a key that is bound to agents does not count for the key's user, or for the
/// credentials from which the key was derived. The comparison of users also covers keys that were revoked after the
/// delivery. Keys and sessions are compared as well, because some deliveries record no user.
pub(super) fn has_delivered(task: &Task<'_>, sender: &TaskSender) -> bool {
    let is_in = |known: &[Value], one: &Arc<str>| known.iter().any(|known| known.as_str() == Some(&**one));
    sender.lineage.iter().any(|one| is_in(task.deliverers(), one))
        || sender.origin().into_iter().chain(sender.user()).any(|one| is_in(task.delivered_below(), one))
}

/// Returns the record of a task's end: the action, the actor, the time and one detail.
pub(super) fn resolution(action: &str, by: &str, at_ms: i64, detail: (&str, Option<&str>)) -> Value {
    let mut resolution =
        Object::from_iter([("action", Value::from(action)), ("by", by.into()), ("at", format_date(at_ms).into())]);
    if let (name, Some(text)) = detail {
        resolution.push(name, text);
    }
    resolution.into()
}
