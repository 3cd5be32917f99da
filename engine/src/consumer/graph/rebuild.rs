//! Rebuild: builds a new graph from the log's first event while the old graph stays in use, then replaces the old
//! graph.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::settling::Basis;
use crate::append::appender::Appender;
use crate::consumer::event_context::{EventContext, observe};
use crate::consumer::plugins::attempt::{Attempt, RetryPolicy};
use crate::consumer::plugins::circuits::Circuits;
use crate::consumer::plugins::enrich::{EnrichOutcome, Enricher};
use crate::consumer::worker_slot::WorkerSlot;
use crate::error::{Error, ErrorCode, Result};
use crate::hook::{Failure, Hook};
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::resident::graph::{Changes, Edges, EnrichedEvent, StateView};
use crate::state::State;
use crate::state::batches::BATCH;
use crate::state::plugins::PluginIndex;
use crate::store::workspace::graph::{Claim, FollowerWrites};
use crate::store::{self, Database, retry};

/// The maximum number of unprocessed events for which the rebuild pauses the follower. While more events remain, the
/// follower keeps running.
const MAX_BLOCKING_LAG: u64 = 2_048;

/// The result of a rebuild.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebuildOutcome {
    pub events: u64,
    /// The number of aggregates that have facts.
    pub nodes: u64,
    /// The number of open edges.
    pub edges: u64,
    /// The number of steps that failed and were parked.
    pub parked: u64,
}

/// The aggregates of the log, folded up to the position of the rebuild.
struct PastStates<'a> {
    state: &'a State,
    states: FxHashMap<AggregateId, Arc<Aggregate>>,
}

impl StateView for PastStates<'_> {
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
    state: &'a Arc<State>,
    db: &'a Database,
    past: PastStates<'a>,
    edges: Edges,
    position: u64,
    generation: u64,
    rebuilt: RebuildOutcome,
    /// The failed steps, each with its plugin, event and failure.
    failed: Vec<(PluginIndex, Arc<Event>, Failure)>,
}

/// Rebuilds the graph of a workspace. The old graph stays in use until the new graph is complete.
///
/// Each rebuild writes to its own new generation. If two servers rebuild the graph at the same time, the first rebuild
/// to complete replaces the graph, and the other rebuild fails.
pub async fn rebuild(state: &Arc<State>, appender: &Appender, slot: &WorkerSlot) -> Result<RebuildOutcome> {
    let _one = slot.begin_rebuild()?;
    let claim = {
        // The generation is claimed between two steps of the worker, because a step writes the same checkpoint.
        let _paused = slot.pause().await;
        appender.database().claim_generation().await?
    };
    let result = build(state, appender, slot, &claim).await;
    // Drops all older generations after a success, and the generation of this rebuild after a failure. Generations are
    // claimed in order. If another rebuild still builds an older generation, that rebuild fails and drops its own data,
    // because the generation that it would replace no longer exists.
    let unused = if result.is_ok() { 0..claim.generation } else { claim.generation..claim.generation + 1 };
    let dropped = appender.database().drop_generations(unused).await;
    let rebuilt = result?;
    if let Err(error) = dropped {
        let workspace = &*state.record.id;
        tracing::warn!(%error, workspace, "failed to delete the replaced graph; the next rebuild deletes it");
    }
    Ok(rebuilt)
}

async fn build(state: &Arc<State>, appender: &Appender, slot: &WorkerSlot, claim: &Claim) -> Result<RebuildOutcome> {
    let basis = Basis::current(state);
    let versions = digests(state);
    let mut rebuild = Rebuild {
        state,
        db: appender.database(),
        past: PastStates { state, states: FxHashMap::default() },
        edges: Edges::default(),
        position: 0,
        generation: claim.generation,
        rebuilt: RebuildOutcome::default(),
        failed: Vec::new(),
    };
    loop {
        let target = state.graph_progress.position();
        if target.saturating_sub(rebuild.position) <= MAX_BLOCKING_LAG {
            break;
        }
        rebuild.advance(target).await?;
    }
    for _ in retry::delays() {
        let mut turn = slot.lock(state, appender).await?;
        rebuild.advance(turn.worker.position()).await?;
        if digests(state) != versions {
            let message = "a plugin was reloaded during the rebuild; rebuild the graph again";
            return Err(Error::conflict(ErrorCode::RebuildOvertaken, message));
        }
        for (plugin, event, failure) in &rebuild.failed {
            turn.worker.parking.park(*plugin, Hook::Enrich, event, failure.clone(), 1);
        }
        let (nodes, edges) = rebuild.edges.size();
        match turn.worker.swap(&mut rebuild.edges, claim.generation, basis.clone()).await {
            Ok(()) => {
                // Types may have been redefined during the rebuild. If the comparison fails, the worker is dropped, and
                // the next worker compares the edges again.
                match turn.worker.settle_edges().await {
                    Ok(()) => turn.keep(),
                    Err(error) => {
                        let workspace = &*state.record.id;
                        tracing::warn!(%error, workspace, "failed to compare the rebuilt edges with the definitions");
                    }
                }
                let parked = rebuild.failed.len() as u64;
                return Ok(RebuildOutcome { nodes, edges, parked, ..rebuild.rebuilt });
            }
            Err(Error::Unavailable(store::Error::Conflict)) if !state.is_exclusive() => {}
            Err(error) => return Err(error),
        }
        drop(turn);
        // A conflict means that another server wrote first: either events or a rebuild. A rebuild by another server
        // ends this rebuild.
        if state.db.read_graph_checkpoint().await?.generation != claim.serving {
            return Err(Error::conflict(
                ErrorCode::RebuildOvertaken,
                "another server has rebuilt the graph during this rebuild",
            ));
        }
    }
    Err(Error::Unavailable(store::Error::Conflict))
}

/// Returns the digests of the plugin versions that the workspace has adopted. A rebuild fails if these digests change,
/// because all events of a rebuild must be processed by the same versions.
fn digests(state: &State) -> Vec<Option<Arc<str>>> {
    state.plugins.indexes().map(|plugin| state.plugins.about(plugin).digest.clone()).collect()
}

impl Rebuild<'_> {
    async fn advance(&mut self, target: u64) -> Result<()> {
        let state = self.state;
        let mut circuits = Circuits::forced_closed(state);
        let enricher = Enricher::new(state, RetryPolicy::AtOnce);
        while self.position < target {
            let mut events = state.batch_after(self.position, BATCH).await?;
            let Some(position) = events.last().map(|last| last.position.min(target)) else { break };
            events.retain(|event| event.position <= target);
            let contexts = observe(state, &events, usize::MAX, |id| self.past.aggregate(id)).contexts;
            let gone = |_| Error::Unavailable(store::Error::Closing);
            let enriched = enricher.enrich(&mut circuits, &contexts).await.map_err(gone)?;
            let mut changes = Changes::default();
            for (context, enriched) in contexts.iter().zip(enriched) {
                self.take(context, enriched, &mut changes);
            }
            self.write(changes).await?;
            self.position = position;
        }
        Ok(())
    }

    fn take(&mut self, context: &EventContext, enriched: Vec<EnrichOutcome>, changes: &mut Changes) {
        self.rebuilt.events += 1;
        let mut found = Vec::new();
        for EnrichOutcome { plugin, attempt } in enriched {
            match attempt {
                Attempt::Done(facts) => found.push((self.state.plugins.name(plugin).clone(), facts)),
                Attempt::Failed { failure, .. } => self.failed.push((plugin, context.event.clone(), failure)),
                Attempt::Refused | Attempt::Postponed(_) | Attempt::Skipped(_) => {}
            }
        }
        self.past.states.insert(context.after.id.clone(), context.after.clone());
        let event =
            EnrichedEvent { event: &context.event, before: context.before.as_deref(), after: &context.after, found };
        let taken = self.edges.take(&self.past, event);
        changes.nodes.extend(taken.nodes);
        changes.edges.extend(taken.edges);
    }

    async fn write(&mut self, changes: Changes) -> Result<()> {
        let facts = changes.nodes.into_iter().map(|id| {
            let facts = self.edges.facts(id.as_str());
            (id, facts)
        });
        let effects = FollowerWrites { facts: facts.collect(), edges: changes.edges, ..FollowerWrites::default() };
        Ok(self.db.prepare_effects(&effects, self.generation).await?)
    }
}
