//! Finds the cause and the consequences of an event.
//!
//! The ids of derived events and of scripted agents' answers are computed from the id of the causing event, the plugin
//! and a number. These events are therefore looked up by id. A task contains the id of the event that caused the task.
//! The effects of an approval directly follow the approval in the log.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::call_context::CallContext;
use super::rights::Reader;
use crate::consumer::{ANSWERS, derived_id};
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::derivation::Derivation;
use crate::model::event::Event;
use crate::model::graph::Edge;
use crate::model::value::Value;

/// The maximum number of derived events of one plugin that are looked up. A hook of a scripted plugin returns at most
/// 20 events.
const MAX_DERIVED: usize = 20;
/// The maximum number of caused events that are returned. The same limit applies to edges.
const MAX_CAUSED: usize = 200;

/// An event, with its known cause and its known consequences.
pub struct EventCausality {
    pub event: Arc<Event>,
    /// The cause: the event from which a plugin derived `event`.
    pub by: Option<Arc<Event>>,
    /// The plugin that derived `event`.
    pub plugin: Option<Arc<str>>,
    /// The events that `event` caused, in the order of the log. If a plugin derived an event, the second element is the
    /// name of the plugin.
    pub events: Vec<(Arc<Event>, Option<Arc<str>>)>,
    /// The edges that plugins found in `event`, including closed edges.
    pub edges: Vec<Edge>,
    /// Whether `event` caused more events or edges than are returned.
    pub more: bool,
}

impl Reader {
    /// Returns the event with this id, its cause and its consequences.
    pub async fn event(&self, event_id: &str) -> Result<EventCausality> {
        let state = self.context.state();
        self.context.refresh().await?;
        let event = self.context.find_event(event_id).await?.ok_or_else(|| Error::not_found("event", event_id))?;
        let plugin = Derivation::of(&event.metadata).map(|derivation| derivation.plugin.into());
        let by = match Derivation::of(&event.metadata) {
            Some(derivation) => self.context.find_event(derivation.caused_by).await?,
            None => None,
        };
        let mut ids = self.derived_ids(event_id);
        ids.extend(self.task_event_ids(event_id).await);
        let mut events: Vec<Arc<Event>> = state.db.find_chosen(&ids).await?.into_values().map(Arc::new).collect();
        // Removes events for which a client chose an id that a derived event could have.
        events.retain(|found| Derivation::of(&found.metadata).is_some_and(|mark| mark.caused_by == event_id));
        events.extend(self.effects(&event).await?);
        events.sort_unstable_by_key(|event| event.position);
        events.dedup_by_key(|event| event.position);
        let more = events.len() > MAX_CAUSED;
        events.truncate(MAX_CAUSED);
        let by_plugin = |event: Arc<Event>| {
            let plugin = Derivation::of(&event.metadata).map(|derivation| Arc::from(derivation.plugin));
            (event, plugin)
        };
        let events = events.into_iter().map(by_plugin).collect();
        let checkpoint = state.db.read_graph_checkpoint().await?;
        let edges = state.db.read_edges_of_event(checkpoint.generation, &event.aggregate_id, event_id, MAX_CAUSED + 1);
        let mut edges = edges.await?;
        let more = more || edges.len() > MAX_CAUSED;
        edges.truncate(MAX_CAUSED);
        edges.sort_by_key(|edge| edge.opened);
        Ok(EventCausality { event, by, plugin, events, edges, more })
    }

    /// Returns the ids of all events that the enabled plugins could have derived from the event, including the answers
    /// of scripted agents. Events derived by plugins that are no longer enabled are not found.
    fn derived_ids(&self, event_id: &str) -> Vec<Arc<str>> {
        let plugins = &self.context.state().plugins;
        let mut ids: Vec<Arc<str>> = Vec::new();
        for name in plugins.indexes().map(|plugin| plugins.name(plugin)) {
            ids.extend((0..MAX_DERIVED).map(|number| Arc::<str>::from(derived_id(event_id, name, number))));
            ids.extend(ANSWERS.iter().map(|what| Arc::<str>::from(derived_id(event_id, &format!("{name}/{what}"), 0))));
        }
        ids
    }

    /// Returns the ids of the events that created the tasks whose source names the event. Stops after
    /// [`MAX_CAUSED`] + 1 tasks, newest first. The source alone does not prove that the event caused the task, because
    /// clients choose the sources of the tasks that they create.
    async fn task_event_ids(&self, event_id: &str) -> Vec<Arc<str>> {
        let mut ids = Vec::new();
        let visit = |task: &Arc<Aggregate>| {
            if is_about(task, event_id)
                && let Some(id) = task.id.as_str().strip_prefix("task-")
            {
                ids.push(Arc::from(id));
            }
            if ids.len() > MAX_CAUSED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.context.visit_newest(Some(TASK), None, visit).await;
        ids
    }

    /// If `event` approved the output of a task, returns the events that the approval appended directly after `event`.
    async fn effects(&self, event: &Event) -> Result<Vec<Arc<Event>>> {
        if &*event.aggregate_type != TASK {
            return Ok(Vec::new());
        }
        let following = self.context.state().events_after(event.position, MAX_CAUSED + 1).await?;
        let text = |event: &Event, name: &str| event.metadata.get(name).and_then(Value::as_str).map(str::to_owned);
        let is_effect = |next: &Arc<Event>| {
            text(next, "task_id").as_deref() == Some(event.aggregate_id.as_str()) && text(next, "artifact_id").is_some()
        };
        Ok(following.into_iter().take_while(is_effect).collect())
    }
}

impl CallContext {
    /// Returns the event with this id, if the log has such an event.
    pub(super) async fn find_event(&self, event_id: &str) -> Result<Option<Arc<Event>>> {
        let (state, id) = (self.state(), Arc::from(event_id));
        let mut found = state.db.find_events(std::slice::from_ref(&id), state.folded.position()).await?;
        Ok(found.remove(&id).map(Arc::new))
    }
}

/// Returns whether the source of the task names the event.
fn is_about(task: &Aggregate, event_id: &str) -> bool {
    let source = task.state.get("source").and_then(|source| source.get("event_id"));
    source.and_then(Value::as_str) == Some(event_id)
}
