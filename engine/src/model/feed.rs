//! What agents are told of: from an event of a task to what it says to whom.

use std::sync::Arc;

use super::aggregate::Aggregate;
use super::event::Event;
use super::value::{Object, Value};

/// The most that what is told may take as JSON, in bytes. Beyond it, references stand instead of bodies.
pub const MAX_BYTES: usize = 256 << 10;

/// Fields of a task that tell who works at it.
pub const ASSIGNEE_TYPE: &str = "assignee_type";
pub const ASSIGNEE_ID: &str = "assignee_id";
const AGENT_ASSIGNEE: &str = "agent";

/// What happened to a task, as its agent is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum News {
    Created,
    Assigned,
    Message,
    Asked,
    Approved,
    Edited,
    Rejected,
    Deferred,
    Resumed,
    Unassigned,
    Canceled,
}

impl News {
    pub fn name(self) -> &'static str {
        match self {
            News::Created => "task.created",
            News::Assigned => "task.assigned",
            News::Message => "task.message",
            News::Asked => "task.asked",
            News::Approved => "task.approved",
            News::Edited => "task.edited",
            News::Rejected => "task.rejected",
            News::Deferred => "task.deferred",
            News::Resumed => "task.resumed",
            News::Unassigned => "task.unassigned",
            News::Canceled => "task.canceled",
        }
    }

    /// What an event of a task says to whoever works at it before and after it.
    fn of(event: &Event) -> Option<News> {
        match event.verb() {
            "created" => Some(News::Created),
            "assigned" => Some(News::Assigned),
            "message" | "messaged" => Some(News::Message),
            "asked" => Some(News::Asked),
            "approved" => Some(News::Approved),
            "edited" => Some(News::Edited),
            "rejected" => Some(News::Rejected),
            "deferred" => Some(News::Deferred),
            "resumed" => Some(News::Resumed),
            "canceled" => Some(News::Canceled),
            _ => None,
        }
    }
}

/// Something that an agent is told.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub agent_id: Arc<str>,
    pub news: News,
    pub event: Arc<Event>,
    /// The task as it is after the event.
    pub task: Arc<Aggregate>,
}

/// Whether the task's agent may have been another before the event. Where not, nobody need look what it was before.
pub fn may_reassign(event: &Event) -> bool {
    const NAMES: [&str; 3] = [ASSIGNEE_TYPE, ASSIGNEE_ID, "$unset"];
    event.version > 1 && NAMES.iter().any(|name| event.payload.contains(name))
}

/// The agent that a task waits for.
pub fn agent_of(task: &Aggregate) -> Option<&str> {
    let text = |name: &str| task.state.get(name).and_then(Value::as_str);
    text(ASSIGNEE_ID).filter(|_| text(ASSIGNEE_TYPE) == Some(AGENT_ASSIGNEE))
}

/// What an event of a task says to whom. `before` is the task before the event, where that may have been another agent's.
pub fn deliveries(event: &Arc<Event>, before: Option<&Aggregate>, after: &Arc<Aggregate>) -> Vec<Delivery> {
    let now = agent_of(after);
    let former = match before {
        Some(before) => agent_of(before),
        None if event.version == 1 => None,
        None => now,
    };
    let tell = |agent: &str, news| Delivery { agent_id: agent.into(), news, event: event.clone(), task: after.clone() };
    let mut told = Vec::new();
    if former != now
        && let Some(former) = former
    {
        told.push(tell(former, News::Unassigned));
    }
    if let Some(now) = now {
        let news = match News::of(event) {
            // Whatever else the event is called, the task is new to this agent.
            news if former != Some(now) => Some(news.filter(|news| *news == News::Created).unwrap_or(News::Assigned)),
            news => news,
        };
        told.extend(news.map(|news| tell(now, news)));
    }
    told
}

impl Delivery {
    /// `{task, event_id, position, cause}`, within the bound.
    pub fn payload(&self) -> Object {
        let whole = self.written(true);
        if whole.size_bytes() <= MAX_BYTES || json_bytes(&whole) <= MAX_BYTES {
            return whole;
        }
        self.written(false)
    }

    /// What tells this apart from everything else that is told.
    pub fn id(&self) -> &Arc<str> {
        &self.event.event_id
    }

    pub fn position(&self) -> u64 {
        self.event.position
    }

    /// Bytes that it takes when it is written, roughly.
    pub fn size_bytes(&self) -> usize {
        (self.task.size_bytes() + self.event.size_bytes()).min(MAX_BYTES)
    }

    fn written(&self, with_bodies: bool) -> Object {
        let mut cause = Object::from_iter([
            ("event_type", Value::from(self.event.event_type.clone())),
            ("version", Value::Int(self.event.version as i64)),
            ("actor", self.event.actor.clone().into()),
            ("occurred_at", Value::Date(self.event.occurred_at)),
        ]);
        let mut task = Object::from_iter([("id", Value::from(self.task.id.text()))]);
        if with_bodies {
            cause.push("payload", Value::Object(self.event.payload.clone()));
            task = shown(&self.task);
        } else {
            task.push("version", self.task.version as i64);
            task.push("truncated", true);
            for name in SHORT {
                if let Some(value) = self.task.state.get(name).filter(|value| value.size_bytes() <= SHORT_BYTES) {
                    task.push(name, value.clone());
                }
            }
            cause.push("truncated", true);
        }
        Object::from_iter([
            ("task", Value::from(task)),
            ("event_id", self.event.event_id.clone().into()),
            ("position", Value::Int(self.event.position as i64)),
            ("cause", cause.into()),
        ])
    }
}

/// Fields that are told of a task that is too large to be told whole, unless one of them is what is large.
const SHORT: [&str; 9] =
    ["title", "status", "priority", "assignee_type", "assignee_id", "source_type", "source", "due_at", "unread"];
const SHORT_BYTES: usize = 8 << 10;

fn shown(task: &Aggregate) -> Object {
    let mut shown = Object::from_iter([("id", Value::from(task.id.text()))]);
    task.state.iter().for_each(|(name, value)| shown.push(name.clone(), value.clone()));
    shown.push("project_id", task.project_id.clone());
    shown.push("created_at", Value::Date(task.created_at));
    shown.push("updated_at", Value::Date(task.last_event_at));
    shown.push("version", task.version as i64);
    shown
}

fn json_bytes(object: &Object) -> usize {
    serde_json::to_vec(object).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builtin::TASK;
    use crate::model::definition::Definition;
    use crate::model::id::AggregateId;

    fn event(version: u64, verb: &str, payload: Object) -> Arc<Event> {
        Arc::new(Event {
            event_id: format!("e-{version}").into(),
            aggregate_id: AggregateId::from(Arc::from("t")),
            aggregate_type: TASK.into(),
            event_type: format!("task.{verb}").into(),
            project_id: None,
            version,
            position: version * 10,
            payload: Arc::new(payload),
            metadata: Arc::default(),
            actor: "system".into(),
            occurred_at: 0,
            recorded_at: 0,
        })
    }

    fn assigned(kind: &str, id: &str) -> Object {
        Object::from_iter([(ASSIGNEE_TYPE, kind), (ASSIGNEE_ID, id)])
    }

    /// What a stream of events says, one after the other.
    fn told(events: &[Arc<Event>]) -> Vec<Vec<(String, &'static str)>> {
        let definition = Definition::new(TASK, "Task", Vec::new(), Vec::new());
        let mut before: Option<Arc<Aggregate>> = None;
        let mut told = Vec::new();
        for event in events {
            let after = Arc::new(Aggregate::fold(before.as_deref(), event, &definition));
            let known = before.as_deref().filter(|_| may_reassign(event));
            let said = deliveries(event, known, &after);
            assert_eq!(said.len(), deliveries(event, before.as_deref(), &after).len(), "{event:?}");
            told.push(said.into_iter().map(|said| (said.agent_id.to_string(), said.news.name())).collect());
            before = Some(after);
        }
        told
    }

    #[test]
    fn whoever_gets_or_loses_a_task_is_told() {
        let says = |agent: &str, name: &'static str| (agent.to_owned(), name);
        let events = [
            event(1, "created", assigned("agent", "a")),
            event(2, "approved", Object::new()),
            event(3, "assigned", assigned("agent", "b")),
            event(4, "read", Object::new()),
            event(5, "assigned", assigned("user", "u")),
            event(6, "asked", Object::new()),
            event(7, "assigned", assigned("agent", "a")),
            event(8, "assigned", assigned("agent", "a")),
        ];
        let expected = [
            vec![says("a", "task.created")],
            vec![says("a", "task.approved")],
            vec![says("a", "task.unassigned"), says("b", "task.assigned")],
            vec![],
            vec![says("b", "task.unassigned")],
            vec![],
            vec![says("a", "task.assigned")],
            vec![says("a", "task.assigned")],
        ];
        assert_eq!(told(&events), expected);
    }

    #[test]
    fn what_is_too_large_is_referred_to() {
        let mut payload = assigned("agent", "a");
        payload.push("title", "x".repeat(20_000));
        payload.push("status", "pending");
        payload.push("metadata", Value::from(Object::from_iter([("draft", "y".repeat(MAX_BYTES))])));
        let event = event(1, "created", payload);
        let after = Arc::new(Aggregate::fold(None, &event, &Definition::new(TASK, "Task", Vec::new(), Vec::new())));
        let said = deliveries(&event, None, &after).pop().expect("a delivery").payload();
        assert!(json_bytes(&said) < MAX_BYTES);
        let task = said.get("task").and_then(Value::as_object).expect("a task");
        assert_eq!(task.get("status").and_then(Value::as_str), Some("pending"));
        assert_eq!((task.get("truncated"), task.get("title")), (Some(&Value::Bool(true)), None));
    }
}
