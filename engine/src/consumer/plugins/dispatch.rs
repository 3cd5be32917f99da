//! Appends the events that plugins request: derived events and tasks.
//!
//! The id of a derived event is computed from the causing event, the plugin and a number. The id of an event that
//! creates a task is computed from the causing event, the plugin, the reason and, for an assigned task, the assignee. A
//! step that runs several times therefore appends its events only once.

use std::sync::Arc;

use strum::IntoStaticStr;
use uuid::Uuid;

use super::attempt::refused_result;
use crate::append::appender::Appender;
use crate::append::request::Append;
use crate::append::view::View;
use crate::consumer::event_context::EventContext;
use crate::error::{Error, ErrorCode, Result};
use crate::hook::Failure;
use crate::mailbox::deliver::{self, ScriptedOutput};
use crate::mailbox::effect;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::closed_set::named;
use crate::model::derivation::{MAX_DEPTH, caused_by, depth_of};
use crate::model::event::{Event, NewEvent, StreamExpectation};
use crate::model::facts::{Assignee, Assignment, EventFact, Priority};
use crate::model::task::{SourceType, Status, TaskEvent, title};
use crate::model::value::{Object, Value};
use crate::state::leadership::Lead;

/// The prefix of the actor of events that plugins request. Clients cannot choose an actor with this prefix.
const ACTOR: &str = "plugin:";

/// Returns the id of an event that a plugin derives from another event. `maker` begins with the name of the plugin, and
/// `number` distinguishes the events of one maker.
pub fn derived_id(event_id: &str, maker: &str, number: usize) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{event_id}/{maker}/{number}").as_bytes()).to_string()
}

/// Returns the events that a plugin's facts request. Returns no events if the chain of derived events has reached its
/// maximum length. `workspace` is the id of the workspace, and is used only in the server's log messages.
pub fn derived_events(
    workspace: &str,
    context: &EventContext,
    plugin: &Arc<str>,
    facts: Vec<EventFact>,
) -> Vec<NewEvent> {
    if depth_of(&context.event) >= MAX_DEPTH && !facts.is_empty() {
        tracing::warn!(
            workspace, %plugin, event = %context.event.event_id,
            "dropped the plugin's events: the chain of derived events has the maximum length of {MAX_DEPTH}"
        );
        return Vec::new();
    }
    let derive = |(number, fact): (usize, EventFact)| NewEvent {
        metadata: caused_by(&context.event, plugin),
        event_id: Some(derived_id(&context.event.event_id, plugin, number)),
        derived: true,
        expected: StreamExpectation::Any,
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

/// Returns the events that create the tasks of a plugin's assignments.
pub fn tasks(context: &EventContext, plugin: &Arc<str>, assigned: Vec<Assignment>) -> Vec<NewEvent> {
    let mut tasks: Vec<NewEvent> = Vec::with_capacity(assigned.len());
    for assignment in assigned {
        let task = task(context, plugin, assignment);
        // Two assignments to the same assignee for one event create one task.
        if !tasks.iter().any(|known| known.event_id == task.event_id) {
            tasks.push(task);
        }
    }
    tasks
}

fn task(context: &EventContext, plugin: &Arc<str>, assignment: Assignment) -> NewEvent {
    let label = context.definition.label_of(&context.after.state).unwrap_or_else(|| context.after.id.text());
    let derived = || title::cut(&format!("{}: {label}", context.event.event_type).into());
    let title = assignment.title.map_or_else(derived, |title| title.trim().into());
    let due_at = assignment.due_in_s.map(|seconds| {
        let ms = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        Value::Date(context.event.occurred_at.saturating_add(ms))
    });
    let (reason, assignee, priority) = (TaskReason::Assigned, assignment.assignee, assignment.priority);
    let content = TaskContent { reason, title, assignee, priority, due_at };
    new_task(&context.event, Some(&context.after), plugin, content, assignment.metadata)
}

/// The type and id that represent the workspace's owner in the id of a task. The user id of the owner is not used,
/// because another user may become the owner.
const OWNER: (&str, &str) = ("user", "owner");

named!(TaskReason);

/// The reason for creating a task. The reason is part of the task's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TaskReason {
    /// The plugin's hook `route` assigned the task.
    Assigned,
    /// The plugin's circuit opened.
    Stopped,
}

/// The content of a new task, without the event that caused the task.
pub struct TaskContent {
    pub reason: TaskReason,
    pub title: Arc<str>,
    pub assignee: Assignee,
    pub priority: Priority,
    pub due_at: Option<Value>,
}

/// Returns the id of the task that informs the owner about a stopped plugin. The id does not depend on the owner,
/// because the workspace may get another owner.
pub fn stopped_task_id(event_id: &str, plugin: &str) -> String {
    format!("task-{}", task_event_id(event_id, plugin, TaskReason::Stopped, OWNER.0, OWNER.1))
}

fn task_event_id(event_id: &str, plugin: &str, reason: TaskReason, assignee_type: &str, assignee_id: &str) -> String {
    derived_id(event_id, &format!("{plugin}/{}/{assignee_type}/{assignee_id}", reason.name()), 0)
}

/// Returns the event that creates a task. The id of the event is derived from the causing event, the plugin, the reason
/// and, for an assigned task, the assignee. At most one task exists for each combination. The reason distinguishes a
/// task that the plugin's hook assigns from the task about the stopped plugin.
pub fn new_task(
    event: &Event,
    about: Option<&Aggregate>,
    plugin: &Arc<str>,
    content: TaskContent,
    metadata: Object,
) -> NewEvent {
    let (assignee_type, assignee_id) = match content.assignee {
        Assignee::Agent(id) => ("agent", id),
        Assignee::User(id) => ("user", id),
    };
    let (named_type, named_id) = match content.reason {
        TaskReason::Assigned => (assignee_type, &*assignee_id),
        TaskReason::Stopped => OWNER,
    };
    let id = task_event_id(&event.event_id, plugin, content.reason, named_type, named_id);
    let source = Object::from_iter([
        ("event_id", Value::from(event.event_id.clone())),
        ("event_type", event.event_type.clone().into()),
        ("aggregate_id", event.aggregate_id.text().into()),
        ("plugin", plugin.clone().into()),
    ]);
    let mut payload = Object::from_iter([
        ("title", Value::from(content.title)),
        ("status", Status::Pending.name().into()),
        ("priority", content.priority.name().into()),
        ("assignee_type", assignee_type.into()),
        ("assignee_id", assignee_id.into()),
        ("source_type", SourceType::Event.name().into()),
        ("source", source.into()),
        ("metadata", metadata.into()),
        ("unread", true.into()),
        ("attempt", 1.into()),
        ("created_by", format!("{ACTOR}{plugin}").into()),
    ]);
    payload.push_some("due_at", content.due_at);
    NewEvent {
        aggregate_id: format!("task-{id}"),
        aggregate_type: TASK.into(),
        event_type: TaskEvent::Created.name().into(),
        project: about.and_then(|about| about.project_id.as_deref()).map(str::to_owned),
        payload,
        metadata: caused_by(event, plugin),
        event_id: Some(id),
        occurred_at: Some(event.occurred_at),
        derived: true,
        ..NewEvent::default()
    }
}

/// The dispatcher, which appends the events that plugins request.
pub struct Dispatcher {
    pub appender: Appender,
    lead: Lead,
}

impl Dispatcher {
    /// Creates the dispatcher of a worker. `lead` is the worker's right to process the log. After another server has
    /// taken over, the dispatcher's appends fail.
    pub fn new(appender: Appender, lead: Lead) -> Dispatcher {
        Dispatcher { appender, lead }
    }

    /// Appends the events that a plugin derived from one event. Skips events that are already in the log. If an event
    /// is rejected, appends none of the events and returns the reason.
    ///
    /// Exception: if an event belongs to a deleted aggregate, appends the events one by one and drops the events of the
    /// deleted aggregate, because a plugin must not restore a deleted aggregate.
    pub async fn append(&self, plugin: &Arc<str>, events: Vec<NewEvent>) -> Result<Result<(), Failure>> {
        // The first of several events may delete the aggregate of the other events.
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
            Err(Error::Conflict { code: ErrorCode::AggregateDeleted, .. }) => {
                let workspace = self.appender.workspace_id();
                tracing::debug!(workspace, %plugin, "dropped the plugin's events for a deleted aggregate");
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
        let managed = events.iter().any(|event| event.aggregate_type == TASK);
        let append =
            Append { managed, epoch: self.lead.epoch, ..Append::given(format!("{ACTOR}{plugin}").into(), events) };
        self.appender.append(append).await.map(drop)
    }

    /// Appends the answer of a scripted agent. The answer is checked like any other action on a task. If the task no
    /// longer waits for the answer, the answer is dropped. Returns a failure if the answer is rejected for another
    /// reason.
    pub async fn deliver(&self, plugin: &Arc<str>, delivery: ScriptedOutput) -> Result<Result<(), Failure>> {
        let (event_id, size_bytes) = (Arc::from(delivery.event_id.as_str()), delivery.size_bytes());
        let decide = Box::new(move |view: &View<'_>| deliver::decide(view, &delivery));
        let append = Append::decided(format!("{ACTOR}{plugin}").into(), decide);
        let append = Append { event_ids: vec![event_id], size_bytes, epoch: self.lead.epoch, ..append };
        match self.appender.append(append).await.map_err(effect::explain) {
            Ok(_) => Ok(Ok(())),
            Err(error @ (Error::Conflict { code: ErrorCode::TaskStateConflict, .. } | Error::NotFound { .. })) => {
                let workspace = self.appender.workspace_id();
                tracing::info!(
                    workspace, %plugin, reason = %error, "dropped an answer that came too late for its task"
                );
                Ok(Ok(()))
            }
            Err(error) => refusal(&error).map(Err).ok_or(error),
        }
    }

    /// Appends events one by one, and continues after a rejected event. Returns the reason of the first rejection.
    pub async fn append_each(&self, plugin: &Arc<str>, events: Vec<NewEvent>) -> Result<Result<(), Failure>> {
        let mut outcome = Ok(());
        for event in events {
            outcome = outcome.and(self.append(plugin, vec![event]).await?);
        }
        Ok(outcome)
    }
}

fn is_deleted(result: &Result<()>) -> bool {
    matches!(result, Err(Error::Conflict { code: ErrorCode::AggregateDeleted, .. }))
}

/// Returns a failure if retrying the append cannot succeed, because the plugin's events are invalid.
fn refusal(error: &Error) -> Option<Failure> {
    match error {
        Error::Invalid { .. } | Error::Conflict { .. } | Error::Forbidden { .. } | Error::NotFound { .. } => {
            Some(refused_result(format!("the plugin's events were rejected: {error}")))
        }
        _ => None,
    }
}
