//! The plugins of this workspace: their status, dry runs and replays.

use std::sync::Arc;

use super::call_context::{CallContext, Operation};
use super::rights::{Reader, Writer};
use crate::consumer::circuit::Circuit;
use crate::consumer::event_context::{EventContext, recall};
use crate::consumer::replay;
use crate::core::meter::Measures;
use crate::core::plugins::PluginIndex;
use crate::error::{Error, Result};
use crate::hook::About;
use crate::model::aggregate::Aggregate;
use crate::model::event::{Event, NewEvent};
use crate::model::id::AggregateId;

pub use crate::consumer::dry_run::{HookResult, Trial};
pub use crate::consumer::replay::Tally;

/// The maximum number of events in one dry run.
pub const MAX_TRIALS: usize = 200;
/// The maximum number of events that a dry run reads to find events for the plugin.
const MAX_EXAMINED_EVENTS: usize = 20_000;

/// A plugin and its status in this workspace.
pub struct PluginStatus {
    pub about: About,
    pub measures: Measures,
    pub parked: u64,
    /// The id of the event whose failure opened the plugin's circuit.
    pub stopped_by: Option<Arc<str>>,
}

/// The events of a dry run.
pub enum DryRunInput {
    Event(String),
    From {
        position: u64,
        limit: usize,
    },
    /// An event that is not in the log.
    New(Box<NewEvent>),
}

impl Reader {
    /// Returns the plugins, in the order of execution.
    pub async fn plugins(&self) -> Result<Vec<PluginStatus>> {
        let state = self.context.state();
        let parked = state.db.count_parked().await?;
        let checkpoint = state.db.read_graph_checkpoint().await?;
        let status = |plugin| {
            let about = state.plugins.about(plugin);
            PluginStatus {
                measures: state.plugins.measures(plugin),
                parked: parked.iter().find(|(name, _)| *name == about.name).map_or(0, |(_, steps)| *steps),
                stopped_by: Circuit::restore(checkpoint.circuits.get(&about.name)).opened_by().cloned(),
                about: about.clone(),
            }
        };
        Ok(state.plugins.indexes().map(status).collect())
    }

    pub async fn plugin(&self, name: &str) -> Result<PluginStatus> {
        let found = self.plugins().await?.into_iter().find(|status| &*status.about.name == name);
        found.ok_or_else(|| Error::not_found("plugin", name))
    }
}

impl Writer {
    /// Runs a plugin's enrichment again for all events after a position.
    pub async fn replay_plugin(&self, name: &str, from_position: u64) -> Result<Tally> {
        let plugin = self.context.plugin_index(name)?;
        Operation::perform(self, move |operation| async move {
            let mut turn = operation.worker().await?;
            let tally = replay::replay_plugin(&mut turn, plugin, from_position).await?;
            turn.keep();
            Ok(tally)
        })
        .await
    }

    /// Closes the circuit of a plugin. Returns whether the circuit was open.
    pub async fn resume_plugin(&self, name: &str) -> Result<bool> {
        let plugin = self.context.plugin_index(name)?;
        Operation::perform(self, move |operation| async move {
            let mut turn = operation.worker().await?;
            let was_open = turn.close_circuit(plugin).await?;
            turn.keep();
            Ok(was_open)
        })
        .await
    }

    /// Returns what a plugin would do with events, without writing anything.
    pub async fn dry_run(&self, name: &str, input: DryRunInput) -> Result<Vec<Trial>> {
        let plugin = self.context.plugin_index(name)?;
        let state = self.context.state();
        let mut trials = Vec::new();
        for context in self.context.dry_run_contexts(plugin, input).await? {
            trials.extend(crate::consumer::dry_run::dry_run(state, plugin, Arc::new(context)).await?);
        }
        Ok(trials)
    }
}

impl CallContext {
    fn plugin_index(&self, name: &str) -> Result<PluginIndex> {
        self.state().plugins.find(name).ok_or_else(|| Error::not_found("plugin", name))
    }

    async fn dry_run_contexts(&self, plugin: PluginIndex, input: DryRunInput) -> Result<Vec<EventContext>> {
        let state = self.state();
        match input {
            DryRunInput::Event(event_id) => {
                let id: Arc<str> = event_id.as_str().into();
                let mut found = state.db.find_events(std::slice::from_ref(&id), state.folded.position()).await?;
                let event = found.remove(&id).ok_or_else(|| Error::not_found("event", &event_id))?;
                Ok(recall(state, Arc::new(event)).await?.into_iter().collect())
            }
            DryRunInput::New(new) => Ok(vec![self.hypothetical_context(*new)?]),
            DryRunInput::From { position, limit } => {
                let (mut contexts, mut position, mut examined) = (Vec::new(), position, 0);
                while examined < MAX_EXAMINED_EVENTS && contexts.len() < limit {
                    let events = state.events_after(position, 256).await?;
                    let Some(last) = events.last() else { break };
                    (position, examined) = (last.position, examined + events.len());
                    for event in events {
                        if contexts.len() < limit && self.is_called(plugin, &event) {
                            contexts.extend(recall(state, event).await?);
                        }
                    }
                }
                Ok(contexts)
            }
        }
    }

    fn is_called(&self, plugin: PluginIndex, event: &Event) -> bool {
        let state = self.state();
        let Some(definition) = state.types.get(&event.aggregate_type) else { return false };
        state.plugins.about(plugin).on.admits(&event.event_type, &definition.traits)
    }

    /// Returns the context of an event that is not appended, based on the current state of its aggregate.
    fn hypothetical_context(&self, new: NewEvent) -> Result<EventContext> {
        let state = self.state();
        let definition = state.types.get(&new.aggregate_type).ok_or_else(|| {
            let shown: String = new.aggregate_type.chars().take(64).collect();
            Error::invalid_at("/event/aggregate_type", format!("unknown aggregate type '{shown}'"))
        })?;
        let aggregate_id = AggregateId::parse(&new.aggregate_id)
            .ok_or_else(|| Error::invalid_at("/event/aggregate_id", "expected a valid aggregate id"))?;
        let before = state.folded.get(aggregate_id.as_str());
        let now = state.clock.now_ms();
        let event = Arc::new(Event {
            event_id: "dry-run".into(),
            aggregate_id,
            aggregate_type: new.aggregate_type.into(),
            event_type: new.event_type.into(),
            project_id: before.as_ref().and_then(|before| before.project_id.clone()),
            version: before.as_ref().map_or(1, |before| before.version + 1),
            position: state.folded.position() + 1,
            payload: Arc::new(new.payload),
            metadata: Arc::new(new.metadata),
            actor: self.actor(),
            occurred_at: new.occurred_at.unwrap_or(now),
            recorded_at: now,
            sent: Default::default(),
        });
        let after = Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
        Ok(EventContext { event, before, after, definition })
    }
}
