//! Rebuild: the graph once more from the log's first event, beside the one that serves, and then in its plugin.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::circuit::Circuit;
use super::event_context::EventContext;
use super::worker::{Worker, show};
use super::{Working, enrich};
use crate::core::State;
use crate::core::plugins::{PluginIndex, PluginMap};
use crate::error::Result;
use crate::hook::Hook;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::resident::graph::{Changes, Edges, EnrichedEvent, StateView};
use crate::store;
use crate::store::graph::Effects;

const PAGE: usize = 512;
/// Whoever is this close to the follower of the log catches up with it while it waits.
const CLOSE: u64 = 2_048;

/// What a rebuild made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub events: u64,
    /// Aggregates about which something was found.
    pub nodes: u64,
    /// State edges.
    pub edges: u64,
    /// Steps that failed and are parked.
    pub parked: u64,
}

/// The log's aggregates as a rebuild has folded them so far.
struct Past<'a> {
    state: &'a State,
    states: FxHashMap<AggregateId, Arc<Aggregate>>,
}

impl StateView for Past<'_> {
    fn aggregate(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.states.get(id).cloned()
    }

    fn definition(&self, type_name: &str) -> Option<Arc<Definition>> {
        self.state.types.get(type_name)
    }

    fn aggregates(&self) -> Box<dyn Iterator<Item = Arc<Aggregate>> + '_> {
        Box::new(self.states.values().cloned())
    }
}

struct Rebuild<'a> {
    past: Past<'a>,
    edges: Edges,
    position: u64,
    generation: u64,
    rebuilt: Rebuilt,
    /// Steps that failed, by plugin and event.
    failed: Vec<(PluginIndex, Arc<Event>, crate::hook::Failure)>,
}

/// Rebuilds the graph of a workspace. The old one serves until the new one is whole.
pub async fn rebuild(state: &Arc<State>, working: &Working) -> Result<Rebuilt> {
    let stand = state.log.read_graph_checkpoint().await?;
    let generation = stand.generation + 1;
    // What a rebuild that was interrupted left behind.
    state.log.drop_generation(generation).await?;
    let past = Past { state, states: FxHashMap::default() };
    let rebuilt = Rebuilt::default();
    let mut rebuild = Rebuild { past, edges: Edges::default(), position: 0, generation, rebuilt, failed: Vec::new() };
    loop {
        let target = state.graph_progress.position();
        if target.saturating_sub(rebuild.position) <= CLOSE {
            break;
        }
        rebuild.advance(target).await?;
    }
    let mut working = working.lock().await;
    let Some(worker) = working.as_mut() else { return Err(store::Error::Closing.into()) };
    rebuild.advance(worker.stand.position).await?;
    let Rebuild { edges, mut rebuilt, failed, .. } = rebuild;
    for (plugin, event, failure) in failed {
        rebuilt.parked += 1;
        worker.park(plugin, Hook::Enrich, &event, failure, 1);
    }
    (rebuilt.nodes, rebuilt.edges) = edges.size();
    worker.swap(edges, generation).await?;
    drop(working);
    state.log.drop_generation(stand.generation).await?;
    Ok(rebuilt)
}

impl Rebuild<'_> {
    async fn advance(&mut self, target: u64) -> Result<()> {
        let state = self.past.state;
        let mut circuits = PluginMap::new(&state.plugins, |_| Circuit::forced_closed());
        while self.position < target {
            let events = state.events_after(self.position, PAGE).await?;
            let Some(last) = events.last() else { break };
            self.position = last.position.min(target);
            let seen = self.observe(events.into_iter().filter(|event| event.position <= target));
            let enriched = enrich::enrich(state, &mut circuits, &seen).await;
            let mut changes = Changes::default();
            for (seen, enriched) in seen.iter().zip(enriched) {
                self.take(seen, enriched, &mut changes);
            }
            self.write(changes).await?;
        }
        Ok(())
    }

    fn observe(&self, events: impl Iterator<Item = Arc<Event>>) -> Vec<Arc<EventContext>> {
        let state = self.past.state;
        let mut changed: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
        let mut seen = Vec::new();
        for event in events {
            let Some(definition) = state.types.get(&event.aggregate_type) else { continue };
            let id = event.aggregate_id.clone();
            let before = changed.get(&id).or_else(|| self.past.states.get(&id)).cloned();
            // Shared with the resident state wherever that stands at the same event.
            let resident = state.folded.get(id.as_str()).filter(|known| known.version == event.version);
            let fold = || Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
            let after = resident.unwrap_or_else(fold);
            changed.insert(id, after.clone());
            seen.push(Arc::new(EventContext { event, before, after, definition }));
        }
        seen
    }

    fn take(&mut self, seen: &EventContext, enriched: Vec<enrich::Enriched>, changes: &mut Changes) {
        self.rebuilt.events += 1;
        let mut found = Vec::new();
        for enrich::Enriched { plugin, attempt } in enriched {
            match attempt {
                super::attempt::Attempt::Done(facts) => {
                    found.push((self.past.state.plugins.name(plugin).clone(), facts))
                }
                super::attempt::Attempt::Failed { failure, .. } => {
                    self.failed.push((plugin, seen.event.clone(), failure));
                }
                super::attempt::Attempt::Refused | super::attempt::Attempt::Skipped => {}
            }
        }
        self.past.states.insert(seen.after.id.clone(), seen.after.clone());
        let turn = EnrichedEvent { event: &seen.event, before: seen.before.as_deref(), after: &seen.after, found };
        let made = self.edges.take(&self.past, turn);
        changes.nodes.extend(made.nodes);
        changes.edges.extend(made.edges);
    }

    async fn write(&mut self, changes: Changes) -> Result<()> {
        let findings = changes.nodes.into_iter().map(|id| {
            let findings = self.edges.findings(id.as_str());
            (id, findings)
        });
        let effects = Effects { findings: findings.collect(), edges: changes.edges, ..Effects::default() };
        Ok(self.past.state.log.prepare_effects(&effects, self.generation).await?)
    }
}

impl Worker {
    /// Puts a rebuilt graph in the plugin of the one that serves.
    async fn swap(&mut self, edges: Edges, generation: u64) -> Result<()> {
        // EnrichmentFacts and edges that are not written yet belong to the old graph; the new one has its own.
        self.unwritten.findings.clear();
        self.unwritten.edges.clear();
        self.stand.generation = generation;
        self.commit_now(self.stand.position).await?;
        let before = self.state.graph.replace(edges);
        show(&self.state, before.iter().map(|id| (id, None)));
        let found = self.state.graph.all_findings();
        show(&self.state, found.iter().map(|(id, findings)| (id, Some(&**findings))));
        Ok(())
    }
}
