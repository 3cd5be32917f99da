//! Replay: runs a plugin's enrichment again over the log.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::dispatch;
use super::enrich;
use super::event_context::{EventContext, recall};
use super::parking::step_id;
use super::worker::Worker;
use crate::core::State;
use crate::core::batches::BATCH;
use crate::core::plugins::PluginIndex;
use crate::error::Result;
use crate::hook::Hook;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::id::AggregateId;
use crate::store::parked::StepId;

/// The number of aggregates whose facts are applied in one commit.
const PAGE: usize = 512;

/// The numbers of calls and changes of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of events for which the plugin was called.
    pub events: u64,
    /// The number of failed calls. The step of each failed call stays parked.
    pub failed: u64,
    /// The number of aggregates for which the plugin's facts changed.
    pub changed: u64,
    pub edges_opened: u64,
    pub edges_closed: u64,
}

/// Runs a plugin's enrichment again for the events after a position. The new facts replace the earlier ones.
pub async fn replay_plugin(worker: &mut Worker, plugin: PluginIndex, from_position: u64) -> Result<Tally> {
    let mut replay = PluginReplay { worker, plugin, tally: Tally::default(), last: IndexMap::new() };
    let contexts = Contexts { state: replay.worker.state.clone(), plugin, end: replay.worker.position() };
    let mut states = FxHashMap::default();
    let mut position = from_position;
    while let Some(page) = contexts.page(&mut position, &mut states).await? {
        replay.call(page).await?;
    }
    replay.apply().await
}

/// The events for which a plugin is called again.
struct Contexts {
    state: Arc<State>,
    plugin: PluginIndex,
    /// The position of the last event that the follower has processed.
    end: u64,
}

impl Contexts {
    /// Returns the next events with the states after them. Continues folding from the states of the previous page.
    async fn page(
        &self,
        position: &mut u64,
        states: &mut FxHashMap<AggregateId, Arc<Aggregate>>,
    ) -> Result<Option<Vec<Arc<EventContext>>>> {
        if *position >= self.end {
            return Ok(None);
        }
        let events = self.state.batch_after(*position, BATCH).await?;
        let Some(last) = events.last() else { return Ok(None) };
        *position = last.position;
        let about = self.state.plugins.about(self.plugin);
        let mut contexts = Vec::new();
        for event in events.into_iter().filter(|event| event.position <= self.end) {
            if let Some(definition) = self.state.types.get(&event.aggregate_type)
                && about.on.admits(&event.event_type, &definition.traits)
            {
                contexts.extend(self.revisit(event, states).await?.map(Arc::new));
            }
        }
        Ok(Some(contexts))
    }

    async fn revisit(
        &self,
        event: Arc<Event>,
        states: &mut FxHashMap<AggregateId, Arc<Aggregate>>,
    ) -> Result<Option<EventContext>> {
        let known = states.get(&event.aggregate_id).filter(|known| known.version + 1 == event.version).cloned();
        let context = match (known, self.state.types.get(&event.aggregate_type)) {
            (Some(before), Some(definition)) => {
                let after = Arc::new(Aggregate::fold(Some(&before), &event, &definition));
                Some(EventContext { event, before: Some(before), after, definition })
            }
            _ => recall(&self.state, event).await?,
        };
        if let Some(context) = &context {
            states.insert(context.after.id.clone(), context.after.clone());
        }
        Ok(context)
    }
}

/// The result of a replay for one aggregate: the last facts, and the parked steps that are done after these facts are
/// applied.
struct Replayed {
    event: Arc<Event>,
    facts: Facts,
    done: Vec<StepId>,
}

struct PluginReplay<'a> {
    worker: &'a mut Worker,
    plugin: PluginIndex,
    tally: Tally,
    last: IndexMap<AggregateId, Replayed>,
}

impl PluginReplay<'_> {
    async fn call(&mut self, contexts: Vec<Arc<EventContext>>) -> Result<()> {
        let state = self.worker.state.clone();
        let name = state.plugins.name(self.plugin);
        let outcomes = state.plugins.call(self.plugin, contexts.clone(), enrich::call, usize::MAX).await;
        for (context, outcome) in contexts.into_iter().zip(outcomes) {
            self.tally.events += 1;
            let mut facts = match outcome {
                Ok(done) => done.value,
                Err(failure) => {
                    self.tally.failed += 1;
                    self.worker.parking.park(self.plugin, Hook::Enrich, &context.event, failure, 1);
                    continue;
                }
            };
            let events = dispatch::derived_events(&context, name, std::mem::take(&mut facts.events));
            let appended = self.worker.dispatcher.append(name, events).await?;
            let event = context.event.clone();
            let step = step_id(&event, Hook::Enrich, name);
            let done = match appended {
                Ok(()) => state.db.find_parked(&step).await?.map(|parked| parked.id),
                Err(failure) => {
                    self.worker.parking.park(self.plugin, Hook::Enrich, &event, failure, 1);
                    None
                }
            };
            let first = || Replayed { event: event.clone(), facts: Facts::default(), done: Vec::new() };
            let replayed = self.last.entry(context.after.id.clone()).or_insert_with(first);
            (replayed.event, replayed.facts) = (event.clone(), facts);
            replayed.done.extend(done);
        }
        Ok(())
    }

    /// Applies the facts page by page. A step is released in the same commit that writes its facts, so a crash between
    /// two pages loses neither.
    async fn apply(self) -> Result<Tally> {
        let PluginReplay { worker, plugin, mut tally, last } = self;
        let mut remaining = last.into_values().peekable();
        while remaining.peek().is_some() {
            for Replayed { event, facts, done } in remaining.by_ref().take(PAGE) {
                let (changed, opened, closed) = worker.amend(plugin, &event, facts);
                tally.changed += changed;
                tally.edges_opened += opened;
                tally.edges_closed += closed;
                done.into_iter().for_each(|step| worker.parking.release(step));
            }
            worker.commit(worker.position()).await?;
        }
        worker.commit(worker.position()).await?;
        Ok(tally)
    }
}
