//! The public form of a task, in responses and in the agents' feeds.

use super::record::Task;
use super::record::field::{self, *};
use super::status::Status;
use super::transition::allowed_actions;
use crate::model::aggregate::Aggregate;
use crate::model::date::format_date;
use crate::model::event::Event;
use crate::model::value::{Object, Value};

/// Returns the task without its messages and artifacts.
pub fn shown(aggregate: &Aggregate) -> Object {
    let task = Task::new(aggregate);
    let get = |name: &str| task.get(name).cloned().unwrap_or_default();
    let or_empty = |name: &str| task.get(name).cloned().unwrap_or_else(|| Object::new().into());
    let date = |name: &str| Value::from(task.date(name).map(format_date));
    let actions = allowed_actions(&task).into_iter().map(|action| Value::from(action.name()));
    Object::from_iter([
        ("id", Value::from(aggregate.id.text())),
        (TITLE, get(TITLE)),
        (STATUS, task.status().name().into()),
        (PRIORITY, task.text(PRIORITY).unwrap_or("normal").into()),
        (ASSIGNEE_TYPE, get(ASSIGNEE_TYPE)),
        (ASSIGNEE_ID, get(ASSIGNEE_ID)),
        ("project_id", aggregate.project_id.clone().into()),
        (SOURCE_TYPE, get(SOURCE_TYPE)),
        (SOURCE, or_empty(SOURCE)),
        (METADATA, or_empty(METADATA)),
        (UNREAD, task.is_unread().into()),
        ("waiting_on", waiting_on(&task).into()),
        (RESOLUTION, get(RESOLUTION)),
        ("allowed_actions", actions.collect::<Vec<_>>().into()),
        (ATTEMPT, task.attempt().into()),
        (CLAIMED_BY, get(CLAIMED_BY)),
        (INPUT_REQUEST, get(INPUT_REQUEST)),
        (DEFERRED_UNTIL, date(DEFERRED_UNTIL)),
        (DUE_AT, date(DUE_AT)),
        ("overdue", task.is_overdue().into()),
        (ESCALATED, Value::Int(task.escalated() as i64)),
        (CREATED_BY, get(CREATED_BY)),
        ("created_at", format_date(aggregate.created_at).into()),
        ("updated_at", format_date(aggregate.last_event_at).into()),
        ("version", Value::Int(aggregate.version as i64)),
    ])
}

/// Returns the task with its messages, its artifacts, and its timeline, which has one entry per event, in order.
pub fn shown_whole(aggregate: &Aggregate, timeline: Vec<Value>) -> Object {
    let task = Task::new(aggregate);
    let mut whole = shown(aggregate);
    whole.push(MESSAGES, task.messages().to_vec());
    whole.push(ARTIFACTS, task.artifacts().to_vec());
    whole.push("timeline", timeline);
    whole
}

/// Returns the timeline entry of an event. The entry contains only the ids of messages and artifacts, because the task
/// lists their contents separately.
pub fn timeline_entry(event: &Event) -> Value {
    let ids = |name: &str| -> Vec<Value> {
        let items = event.payload.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(|item| item.get("id").cloned()).collect()
    };
    let is_detail = |name: &str| !matches!(name, field::MESSAGES | field::ARTIFACTS | field::STATUS);
    let detail =
        event.payload.iter().filter(|(name, _)| is_detail(name)).map(|(name, value)| (name.clone(), value.clone()));
    Object::from_iter([
        ("position", Value::Int(event.position as i64)),
        ("version", Value::Int(event.version as i64)),
        ("event_id", event.event_id.clone().into()),
        ("event_type", event.event_type.clone().into()),
        ("occurred_at", format_date(event.occurred_at).into()),
        ("actor", event.actor.clone().into()),
        ("status", event.payload.get(STATUS).cloned().unwrap_or_default()),
        ("messages", ids(MESSAGES).into()),
        ("artifacts", ids(ARTIFACTS).into()),
        ("detail", detail.collect::<Object>().into()),
    ])
    .into()
}

/// Returns who must act next: `human`, `agent` or `none`.
pub fn waiting_on(task: &Task<'_>) -> &'static str {
    let assignee = || if task.assigned_agent().is_some() { "agent" } else { "human" };
    match task.status() {
        Status::Pending | Status::AwaitingReply => assignee(),
        Status::InProgress => "agent",
        Status::InputRequired | Status::Review => "human",
        Status::Deferred => "none",
        Status::Approved | Status::Rejected | Status::Completed | Status::Failed | Status::Canceled => "none",
    }
}
