//! The feeds of agents. Derives notifications to agents from the events of tasks.

use std::sync::Arc;

use super::aggregate::{Aggregate, UNSET};
use super::builtin::{AGENT, TASK};
use super::event::Event;
use super::task::record::field;
use super::task::{Status, Task, TaskEvent};
use super::value::Value;

/// The maximum size of a delivered payload, in bytes. A larger payload is sent without the long fields of the task and
/// without the payload of the event.
pub const MAX_BYTES: usize = 256 << 10;

/// Returns the news that an event of a task causes for the task's agent, or `None` if the agent gets no notification.
/// If the event gave the task to another agent, [`deliveries`] ignores all news except `task.created`.
fn news_of(event: &Event, after: &Task<'_>) -> Option<TaskEvent> {
    use TaskEvent::*;
    match TaskEvent::parse(&event.event_type)? {
        Assigned | Retried => Some(Assigned),
        Message => is_from_another(event).then_some(Message),
        // If the task is still open, the agent gets the task again, as work or as the question that awaits a reply.
        Released | Expired | Failed => match after.status() {
            Status::Pending => Some(Assigned),
            Status::AwaitingReply => Some(Asked),
            _ => None,
        },
        // Only the former agent gets this news.
        Unassigned => None,
        // These events are acts of the agent, or marks that only persons see.
        Claimed | Artifact | Delivered | Completed | InputRequested | Read | Unread => None,
        // The other events are news under their own names.
        news => Some(news),
    }
}

/// Returns whether an event has a message that was not written by an agent. Also returns `true` if the event has no
/// messages.
fn is_from_another(event: &Event) -> bool {
    let messages = event.payload.get(field::MESSAGES).and_then(Value::as_array).unwrap_or_default();
    let role = |message: &Value| message.get("role").and_then(Value::as_str) == Some("agent");
    messages.is_empty() || !messages.iter().all(role)
}

/// A notification to an agent.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub agent_id: Arc<str>,
    /// The kind of the change of the task, as reported to the agent.
    pub news: TaskEvent,
    pub event: Arc<Event>,
    /// The task after the event.
    pub task: Arc<Aggregate>,
}

/// Returns whether an event may have replaced or removed the task's agent. If the result is `false`,
/// [`affected_agents`] and [`deliveries`] do not need the state before the event.
pub fn may_reassign(event: &Event) -> bool {
    const NAMES: [&str; 3] = [field::ASSIGNEE_TYPE, field::ASSIGNEE_ID, UNSET];
    event.version > 1 && NAMES.iter().any(|name| event.payload.contains(name))
}

/// Returns the agents whose feeds may need an entry for an event. `before` and `after` are the states of the event's
/// aggregate.
pub fn affected_agents(
    event: &Event,
    before: Option<&Aggregate>,
    after: &Aggregate,
) -> impl Iterator<Item = Arc<str>> + use<> {
    let assigned = |task: &Aggregate| Task::new(task).assigned_agent().map(Arc::from);
    let (former, now): (Option<Arc<str>>, Option<Arc<str>>) = match &*event.aggregate_type {
        TASK => (before.and_then(assigned), assigned(after)),
        AGENT => (None, (event.verb() == "deleted").then(|| event.aggregate_id.text())),
        _ => (None, None),
    };
    former.filter(|former| Some(former) != now.as_ref()).into_iter().chain(now)
}

/// Returns the notifications for an event of a task. `before` is the state of the task before the event, and is only
/// needed if [`may_reassign`] returns `true`.
pub fn deliveries(event: &Arc<Event>, before: Option<&Aggregate>, after: &Arc<Aggregate>) -> Vec<Delivery> {
    let now = Task::new(after).assigned_agent();
    let former = match before {
        Some(before) => Task::new(before).assigned_agent(),
        None if event.version == 1 => None,
        None => now,
    };
    let deliver =
        |agent: &str, news| Delivery { agent_id: agent.into(), news, event: event.clone(), task: after.clone() };
    let mut deliveries = Vec::new();
    if former != now
        && let Some(former) = former
    {
        deliveries.push(deliver(former, TaskEvent::Unassigned));
    }
    if let Some(now) = now {
        let news = match news_of(event, &Task::new(after)) {
            // The agent that claimed the task needs no notification of the claim.
            _ if TaskEvent::parse(&event.event_type) == Some(TaskEvent::Claimed) => None,
            // The task is new to this agent, regardless of the type of the event.
            news if former != Some(now) => {
                Some(news.filter(|news| *news == TaskEvent::Created).unwrap_or(TaskEvent::Assigned))
            }
            news => news,
        };
        deliveries.extend(news.map(|news| deliver(now, news)));
    }
    deliveries
}

impl Delivery {
    /// Returns the id of the notification, which is unique in the agent's feed.
    pub fn id(&self) -> &Arc<str> {
        &self.event.event_id
    }

    pub fn position(&self) -> u64 {
        self.event.position
    }

    /// Returns the approximate size of the sent payload, in bytes.
    pub fn size_bytes(&self) -> usize {
        (self.task.size_bytes() + self.event.size_bytes()).min(MAX_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::definition::Definition;
    use crate::model::value::Object;

    fn event(version: u64, verb: &str, payload: Object) -> Arc<Event> {
        Arc::new(Event {
            version,
            payload: Arc::new(payload),
            ..Event::sample("t", &format!("task.{verb}"), version * 10)
        })
    }

    fn assigned(kind: &str, id: &str) -> Object {
        Object::from_iter([(field::ASSIGNEE_TYPE, kind), (field::ASSIGNEE_ID, id)])
    }

    fn message_payload(role: &str) -> Object {
        let message = Object::from_iter([("role", role)]);
        Object::from_iter([(field::MESSAGES, vec![Value::from(message)])])
    }

    fn status(status: &str) -> Object {
        Object::from_iter([(field::STATUS, status)])
    }

    /// Returns the notifications for each event of a stream, in order.
    fn notifications_of(events: &[Arc<Event>]) -> Vec<Vec<(String, &'static str)>> {
        let definition = Definition::new(TASK, "Task", Vec::new(), Vec::new());
        let mut before: Option<Arc<Aggregate>> = None;
        let mut notifications = Vec::new();
        for event in events {
            let after = Arc::new(Aggregate::fold(before.as_deref(), event, &definition));
            let known = before.as_deref().filter(|_| may_reassign(event));
            let delivered = deliveries(event, known, &after);
            let affected_agents: Vec<Arc<str>> = affected_agents(event, before.as_deref(), &after).collect();
            assert!(
                delivered.iter().all(|delivery| affected_agents.contains(&delivery.agent_id)),
                "{affected_agents:?} {event:?}"
            );
            assert_eq!(delivered.len(), deliveries(event, before.as_deref(), &after).len(), "{event:?}");
            notifications.push(
                delivered.into_iter().map(|delivery| (delivery.agent_id.to_string(), delivery.news.name())).collect(),
            );
            before = Some(after);
        }
        notifications
    }

    #[test]
    fn agents_are_notified_about_assignments_messages_decisions_and_deadlines() {
        let notification = |agent: &str, name: &'static str| (agent.to_owned(), name);
        let events = [
            event(1, "created", assigned("agent", "a")),
            event(2, "approved", Object::new()),
            event(3, "assigned", assigned("agent", "b")),
            event(4, "read", Object::new()),
            event(5, "assigned", assigned("user", "u")),
            event(6, "asked", Object::new()),
            event(7, "assigned", assigned("agent", "a")),
            event(8, "assigned", assigned("agent", "a")),
            event(9, "message", message_payload("agent")),
            event(10, "message", message_payload("user")),
            event(11, "claimed", status("in_progress")),
            event(12, "expired", status("pending")),
            event(13, "failed", status("failed")),
            event(14, "expired", status("awaiting_reply")),
            event(15, "overdue", Object::new()),
            event(16, "escalated", Object::new()),
            event(17, "escalated", assigned("agent", "b")),
            event(18, "changes_requested", Object::new()),
            event(19, "answered", Object::new()),
            event(20, "unassigned", Object::from_iter([(field::ASSIGNEE_ID, Value::Null)])),
        ];
        let expected = [
            vec![notification("a", "task.created")],
            vec![notification("a", "task.approved")],
            vec![notification("a", "task.unassigned"), notification("b", "task.assigned")],
            vec![],
            vec![notification("b", "task.unassigned")],
            vec![],
            vec![notification("a", "task.assigned")],
            vec![notification("a", "task.assigned")],
            vec![],
            vec![notification("a", "task.message")],
            vec![],
            vec![notification("a", "task.assigned")],
            vec![],
            vec![notification("a", "task.asked")],
            vec![notification("a", "task.overdue")],
            vec![notification("a", "task.escalated")],
            vec![notification("a", "task.unassigned"), notification("b", "task.assigned")],
            vec![notification("b", "task.changes_requested")],
            vec![notification("b", "task.answered")],
            vec![notification("b", "task.unassigned")],
        ];
        assert_eq!(notifications_of(&events), expected);
    }
}
