//! Dispatch: what plugins want appended, as events of the log: derived events, and tasks for whoever gets work.
//!
//! Their ids follow from the event, the plugin and a number: however often a step runs, it appends once.

use std::sync::Arc;

use uuid::Uuid;

use super::event_context::EventContext;
use super::roster::Roster;
use crate::core::append::{Append, Appender};
use crate::error::{AGGREGATE_DELETED, Error, Result};
use crate::hook::{Failure, FailureKind};
use crate::mailbox::deliver::{self, Delivery};
use crate::mailbox::{TASK_STATE_CONFLICT, effect};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::event::{Event, NewEvent};
use crate::model::facts::{Assignee, Assignment, EventFact, Priority};
use crate::model::task::{Status, TaskEvent};
use crate::model::value::{Object, Value};

/// How long a chain of events that cause events may grow.
const MAX_DEPTH: i64 = 8;
/// Events made here are told by their actor: it cannot be chosen by a client.
const ACTOR: &str = "plugin:";

/// The id of what a plugin makes of an event.
pub fn derived_id(event_id: &str, maker: &str, number: usize) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{event_id}/{maker}/{number}").as_bytes()).to_string()
}

/// The events that a plugin's facts about an event ask for; none where the chain is long enough.
pub fn derived_events(context: &EventContext, plugin: &Arc<str>, facts: Vec<EventFact>) -> Vec<NewEvent> {
    let depth = depth_of(&context.event) + 1;
    if depth > MAX_DEPTH && !facts.is_empty() {
        tracing::warn!(%plugin, event = %context.event.event_id, "a chain of derived events was cut");
        return Vec::new();
    }
    let derive = |(number, fact): (usize, EventFact)| NewEvent {
        metadata: caused_by(&context.event, plugin, depth),
        event_id: Some(derived_id(&context.event.event_id, plugin, number)),
        derived: true,
        ..of_stream(&context.after, fact, context.event.occurred_at)
    };
    facts.into_iter().enumerate().map(derive).collect()
}

fn of_stream(aggregate: &Aggregate, fact: EventFact, occurred_at: i64) -> NewEvent {
    NewEvent {
        aggregate_id: aggregate.id.to_string(),
        aggregate_type: aggregate.aggregate_type.to_string(),
        event_type: fact.event_type,
        payload: fact.payload,
        occurred_at: Some(occurred_at),
        ..NewEvent::default()
    }
}

/// How long the chain of events is that an event ends.
pub fn depth_of(event: &Event) -> i64 {
    let said = event.metadata.get("depth").and_then(Value::as_int).unwrap_or(0);
    if event.actor.starts_with(ACTOR) { said } else { 0 }
}

/// The metadata of what a plugin makes of an event.
pub fn caused_by(event: &Event, plugin: &Arc<str>, depth: i64) -> Object {
    Object::from_iter([
        ("source", Value::from("plugin")),
        ("plugin", plugin.clone().into()),
        ("caused_by", event.event_id.clone().into()),
        ("depth", depth.into()),
    ])
}

/// The task events of a plugin's assignments. One of an unknown or disabled agent fails them all.
pub fn tasks(
    context: &EventContext,
    plugin: &Arc<str>,
    roster: &Roster,
    assigned: Vec<Assignment>,
) -> Result<Vec<NewEvent>, Failure> {
    let mut tasks: Vec<NewEvent> = Vec::with_capacity(assigned.len());
    for assignment in assigned {
        if let Assignee::Agent(id) = &assignment.assignee
            && roster.agent(id).is_none()
        {
            let message = format!("agent '{id}' is not registered, or disabled");
            return Err(Failure { kind: FailureKind::Result, message, line: None, column: None });
        }
        let task = task(context, plugin, assignment);
        // Assigned twice for one event, it is still one task.
        if !tasks.iter().any(|known| known.event_id == task.event_id) {
            tasks.push(task);
        }
    }
    Ok(tasks)
}

fn task(context: &EventContext, plugin: &Arc<str>, assignment: Assignment) -> NewEvent {
    let label = context.definition.label_of(&context.after.state).unwrap_or_else(|| context.after.id.text());
    let title = assignment.title.unwrap_or_else(|| format!("{}: {label}", context.event.event_type));
    let due_at = assignment.due_in_s.map(|seconds| {
        let ms = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        Value::Date(context.event.occurred_at.saturating_add(ms))
    });
    let given = Given { title, assignee: assignment.assignee, priority: assignment.priority, due_at };
    new_task(&context.event, Some(&context.after), plugin, given, assignment.metadata)
}

/// What a task is about, apart from its cause.
pub struct Given {
    pub title: String,
    pub assignee: Assignee,
    pub priority: Priority,
    pub due_at: Option<Value>,
}

/// The event that makes a task. There is one per event and assignee, ever.
pub fn new_task(
    event: &Event,
    about: Option<&Aggregate>,
    plugin: &Arc<str>,
    given: Given,
    metadata: Object,
) -> NewEvent {
    let (assignee_type, assignee_id) = match given.assignee {
        Assignee::Agent(id) => ("agent", id),
        Assignee::User(id) => ("user", id),
    };
    let id = derived_id(&event.event_id, &format!("{assignee_type}/{assignee_id}"), 0);
    let source = Object::from_iter([
        ("event_id", Value::from(event.event_id.clone())),
        ("event_type", event.event_type.clone().into()),
        ("aggregate_id", event.aggregate_id.text().into()),
        ("plugin", plugin.clone().into()),
    ]);
    let mut payload = Object::from_iter([
        ("title", Value::from(given.title)),
        ("status", Status::Pending.name().into()),
        ("priority", given.priority.name().into()),
        ("assignee_type", assignee_type.into()),
        ("assignee_id", assignee_id.into()),
        ("source_type", "event".into()),
        ("source", source.into()),
        ("metadata", metadata.into()),
        ("unread", true.into()),
        ("attempt", 1.into()),
        ("created_by", format!("{ACTOR}{plugin}").into()),
    ]);
    if let Some(due_at) = given.due_at {
        payload.push("due_at", due_at);
    }
    NewEvent {
        aggregate_id: format!("task-{id}"),
        aggregate_type: TASK.into(),
        event_type: TaskEvent::Created.name().into(),
        project: about.and_then(|about| about.project_id.as_deref()).map(str::to_owned),
        payload,
        metadata: caused_by(event, plugin, depth_of(event) + 1),
        event_id: Some(id),
        occurred_at: Some(event.occurred_at),
        derived: true,
        ..NewEvent::default()
    }
}

/// Appends what plugins make.
pub struct Dispatcher {
    appender: Appender,
}

impl Dispatcher {
    pub fn new(appender: Appender) -> Dispatcher {
        Dispatcher { appender }
    }

    /// Appends what a plugin made of one event, all of it or nothing. Returns why it is refused, where it is.
    ///
    /// What is there already is passed over, and what belongs to a deleted aggregate is dropped: nobody asked for that to
    /// come back.
    pub async fn append(&self, plugin: &Arc<str>, events: Vec<NewEvent>) -> Result<Result<(), Failure>> {
        // Of several, the first may have deleted the aggregate of the others.
        let several = if events.len() > 1 { events.clone() } else { Vec::new() };
        let mut result = self.append_together(plugin, events).await;
        if is_deleted(&result) {
            for event in several {
                result = self.append_together(plugin, vec![event]).await;
                if result.is_err() && !is_deleted(&result) {
                    break;
                }
            }
        }
        match result {
            Err(Error::Conflict { code: AGGREGATE_DELETED, .. }) => {
                tracing::debug!(%plugin, "what it made of a deleted aggregate is dropped");
                Ok(Ok(()))
            }
            Err(error) => refusal(&error).map(Err).ok_or(error),
            Ok(()) => Ok(Ok(())),
        }
    }

    async fn append_together(&self, plugin: &Arc<str>, events: Vec<NewEvent>) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let append = Append {
            event_ids: events.iter().filter_map(|event| event.event_id.as_deref().map(Arc::from)).collect(),
            request: None,
            size_bytes: events.iter().map(NewEvent::size_bytes).sum(),
            managed: events.iter().any(|event| event.aggregate_type == TASK),
            decide: Box::new(move |_| Ok(events.clone())),
            actor: format!("{ACTOR}{plugin}").into(),
        };
        self.appender.append(append).await.map(drop)
    }

    /// Appends what a scripted agent made of a task, decided as everything else about tasks is. What comes too late is
    /// dropped: the task went on without it. Returns why anything else is refused.
    pub async fn deliver(&self, plugin: &Arc<str>, delivery: Delivery) -> Result<Result<(), Failure>> {
        let (event_id, size_bytes) = (Arc::from(delivery.event_id.as_str()), delivery.size_bytes());
        let append = Append {
            event_ids: vec![event_id],
            request: None,
            size_bytes,
            managed: true,
            decide: Box::new(move |view| deliver::decide(view, &delivery)),
            actor: format!("{ACTOR}{plugin}").into(),
        };
        match self.appender.append(append).await.map_err(effect::explain) {
            Ok(_) => Ok(Ok(())),
            Err(error @ (Error::Conflict { code: TASK_STATE_CONFLICT, .. } | Error::NotFound { .. })) => {
                tracing::info!(%plugin, reason = %error, "what it made of a task is dropped");
                Ok(Ok(()))
            }
            Err(error) => refusal(&error).map(Err).ok_or(error),
        }
    }

    /// Appends events one by one. Returns why the first that is refused is so; the others are appended all the same.
    pub async fn append_each(&self, plugin: &Arc<str>, events: Vec<NewEvent>) -> Result<Result<(), Failure>> {
        let mut outcome = Ok(());
        for event in events {
            outcome = outcome.and(self.append(plugin, vec![event]).await?);
        }
        Ok(outcome)
    }
}

fn is_deleted(result: &Result<()>) -> bool {
    matches!(result, Err(Error::Conflict { code: AGGREGATE_DELETED, .. }))
}

/// Whether an append that failed would fail again: what the plugin wanted is wrong.
fn refusal(error: &Error) -> Option<Failure> {
    match error {
        Error::Invalid { .. } | Error::Conflict { .. } | Error::Forbidden { .. } | Error::NotFound { .. } => {
            let message = format!("what it wants appended is refused: {error}");
            Some(Failure { kind: FailureKind::Result, message, line: None, column: None })
        }
        _ => None,
    }
}
