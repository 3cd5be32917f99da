//! Rebuild: the graph once more from the log's first event, beside the one that serves, and then in its place.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::circuit::Circuit;
use super::worker::{Worker, show};
use super::world::Seen;
use super::{Working, enrich};
use crate::error::Result;
use crate::hook::Hook;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::resident::graph::{Changes, Edges, Turn, World};
use crate::store;
use crate::store::graph::Effects;
use crate::workspace::state::Open;

const PAGE: usize = 512;
/// Whoever is this close to the follower of the log catches up with it while it waits.
const CLOSE: u64 = 2_048;

/// What a rebuild made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub events: u64,
    /// Aggregates about which something was found.
    pub nodes: u64,
    /// Open edges.
    pub edges: u64,
    /// Steps that failed and are parked.
    pub parked: u64,
}

/// The log's aggregates as a rebuild has folded them so far.
struct Past<'a> {
    open: &'a Open,
    states: FxHashMap<AggregateId, Arc<Aggregate>>,
}

impl World for Past<'_> {
    fn aggregate(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.states.get(id).cloned()
    }

    fn definition(&self, type_name: &str) -> Option<Arc<Definition>> {
        self.open.definition(type_name)
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
    /// Steps that failed, by place and event.
    failed: Vec<(usize, Arc<Event>, crate::hook::Failure)>,
}

/// Rebuilds the graph of a workspace. The old one serves until the new one is whole.
pub async fn rebuild(open: &Arc<Open>, working: &Working) -> Result<Rebuilt> {
    let stand = open.log.read_stand().await?;
    let generation = stand.generation + 1;
    // What a rebuild that was interrupted left behind.
    open.log.drop_generation(generation).await?;
    let past = Past { open, states: FxHashMap::default() };
    let rebuilt = Rebuilt::default();
    let mut rebuild = Rebuild { past, edges: Edges::default(), position: 0, generation, rebuilt, failed: Vec::new() };
    loop {
        let target = *open.worked.borrow();
        if target.saturating_sub(rebuild.position) <= CLOSE {
            break;
        }
        rebuild.advance(target).await?;
    }
    let mut working = working.lock().await;
    let Some(worker) = working.as_mut() else { return Err(store::Error::Closing.into()) };
    rebuild.advance(worker.stand.position).await?;
    let Rebuild { edges, mut rebuilt, failed, .. } = rebuild;
    for (place, event, failure) in failed {
        rebuilt.parked += 1;
        worker.park(place, Hook::Enrich, &event, failure, 1);
    }
    (rebuilt.nodes, rebuilt.edges) = edges.size();
    worker.swap(edges, generation).await?;
    drop(working);
    open.log.drop_generation(stand.generation).await?;
    Ok(rebuilt)
}

impl Rebuild<'_> {
    async fn advance(&mut self, target: u64) -> Result<()> {
        let open = self.past.open;
        let mut circuits: Vec<Circuit> = open.plugins.about().map(|_| Circuit::bridged()).collect();
        while self.position < target {
            let events = open.events_after(self.position, PAGE).await?;
            let Some(last) = events.last() else { break };
            self.position = last.position.min(target);
            let seen = self.observe(events.into_iter().filter(|event| event.position <= target));
            let enriched = enrich::enrich(open, &open.plugins, &mut circuits, &seen).await;
            let mut changes = Changes::default();
            for (seen, enriched) in seen.iter().zip(enriched) {
                self.take(seen, enriched, &mut changes);
            }
            self.write(changes).await?;
        }
        Ok(())
    }

    fn observe(&self, events: impl Iterator<Item = Arc<Event>>) -> Vec<Arc<Seen>> {
        let open = self.past.open;
        let mut changed: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
        let mut seen = Vec::new();
        for event in events {
            let Some(definition) = open.definition(&event.aggregate_type) else { continue };
            let id = event.aggregate_id.clone();
            let before = changed.get(&id).or_else(|| self.past.states.get(&id)).cloned();
            // Shared with the resident state wherever that stands at the same event.
            let resident = open.resident.get(id.as_str()).filter(|known| known.version == event.version);
            let fold = || Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
            let after = resident.unwrap_or_else(fold);
            changed.insert(id, after.clone());
            seen.push(Arc::new(Seen { event, before, after, definition }));
        }
        seen
    }

    fn take(&mut self, seen: &Seen, enriched: Vec<enrich::Enriched>, changes: &mut Changes) {
        self.rebuilt.events += 1;
        let mut found = Vec::new();
        for enrich::Enriched { place, attempt } in enriched {
            match attempt {
                super::attempt::Attempt::Done(facts) => found.push((self.past.open.plugins.name(place), facts)),
                super::attempt::Attempt::Failed { failure, .. } => {
                    self.failed.push((place, seen.event.clone(), failure));
                }
                super::attempt::Attempt::Refused | super::attempt::Attempt::Skipped => {}
            }
        }
        self.past.states.insert(seen.after.id.clone(), seen.after.clone());
        let turn = Turn { event: &seen.event, before: seen.before.as_deref(), after: &seen.after, found };
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
        Ok(self.past.open.log.prepare_effects(&effects, self.generation).await?)
    }
}

impl Worker {
    /// Puts a rebuilt graph in the place of the one that serves.
    async fn swap(&mut self, edges: Edges, generation: u64) -> Result<()> {
        // Findings and edges that are not written yet belong to the old graph; the new one has its own.
        self.unwritten.findings.clear();
        self.unwritten.edges.clear();
        self.stand.generation = generation;
        self.commit_now(self.stand.position).await?;
        let before = self.open.graph.replace(edges);
        show(&self.open, before.iter().map(|id| (id, None)));
        let found = self.open.graph.all_findings();
        show(&self.open, found.iter().map(|(id, findings)| (id, Some(&**findings))));
        Ok(())
    }
}
