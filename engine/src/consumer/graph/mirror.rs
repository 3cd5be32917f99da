//! Applies the changes that another server has written to the graph, while that server processes the log.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::checkpointer::show;
use super::settling::Basis;
use crate::consumer::event_context::FollowerView;
use crate::consumer::plugins::circuits::Circuits;
use crate::consumer::worker::{readable, restored};
use crate::error::Result;
use crate::model::id::AggregateId;
use crate::state::State;
use crate::state::plugins::PluginMap;
use crate::state::releases::AdoptedVersion;
use crate::store::workspace::graph::GraphCheckpoint;
use crate::store::workspace::graph_changes::{ChangedKeys, EdgeKey};

/// The interval at which the checkpoint is read while the leader reports no new writes. The checkpoint is not read if
/// the graph includes all events and its edges match the definitions and plugins.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of keys that one query reads.
const KEYS: usize = 512;
/// The maximum number of missed writes of the leader whose changed keys are read and applied. If this server has missed
/// more writes, the whole graph is read.
const WRITES: u64 = 256;

/// The mirror of the graph that another server writes. Stores the checkpoint up to which this server has applied the
/// writes.
#[derive(Default)]
pub struct Mirror {
    /// The checkpoint up to which the writes are applied. `None` if the whole graph has to be read.
    applied: Mutex<Option<MirrorCheckpoint>>,
}

/// The checkpoint that the graph in memory matches, and the time at which the checkpoint was read.
struct MirrorCheckpoint {
    checkpoint: GraphCheckpoint,
    read_at: Instant,
}

impl Mirror {
    /// Applies the leader's writes since the last call.
    pub async fn step(&self, state: &Arc<State>) -> Result<()> {
        let mut applied = self.applied.lock().await;
        state.folded.follower.clear();
        let reported = *state.reported.borrow();
        if let Some(MirrorCheckpoint { checkpoint, read_at }) = &*applied
            && checkpoint.writes == reported.writes
        {
            // The leader may have processed events that changed nothing.
            state.graph_progress.advance(reported.consumed);
            let is_settled = state.settled.redefinitions.position() >= state.types.redefined.position();
            let is_behind = state.graph_progress.position() < state.folded.position();
            if (is_settled && !is_behind) || read_at.elapsed() < READ_INTERVAL {
                return Ok(());
            }
        }
        self.apply_newest(state, &mut applied).await
    }

    /// Applies the leader's stored writes, unless this server has already applied the first `writes` writes. Does not
    /// wait until the leader reports these writes.
    pub async fn apply_newest_changes(&self, state: &Arc<State>, writes: u64) -> Result<()> {
        let mut applied = self.applied.lock().await;
        // On the leader, the graph in memory already includes all writes.
        if state.leadership.is_own() {
            return Ok(());
        }
        if applied.as_ref().is_some_and(|applied| applied.checkpoint.writes >= writes) {
            return Ok(());
        }
        self.apply_newest(state, &mut applied).await
    }

    async fn apply_newest(&self, state: &Arc<State>, applied: &mut Option<MirrorCheckpoint>) -> Result<()> {
        let read_at = Instant::now();
        let mut checkpoint = state.db.read_graph_checkpoint().await?;
        let reported = *state.reported.borrow();
        // The graph refers to aggregates up to the checkpoint, so this server refreshes the states first.
        state.refresh().await?;
        // The applied checkpoint stays until the end. If the caller is canceled, the same changes are applied again.
        let before = applied.as_ref().map(|applied| applied.checkpoint.clone());
        let is_near = |known: &GraphCheckpoint| {
            known.generation == checkpoint.generation
                && known.writes <= checkpoint.writes
                && checkpoint.writes - known.writes <= WRITES
        };
        let changed = match &before {
            Some(known) if is_near(known) && known.writes == checkpoint.writes => Some(Vec::new()),
            Some(known) if is_near(known) => state.db.read_changed_keys(known.writes + 1..=checkpoint.writes).await?,
            _ => None,
        };
        match changed {
            Some(changed) => apply(state, checkpoint.generation, changed).await?,
            None => {
                let (replaced, position) = loop {
                    let replaced = restored(&FollowerView::new(state), checkpoint.generation).await?;
                    // A rebuild deletes the rows of the generation that it has replaced.
                    let newest = state.db.read_graph_checkpoint().await?;
                    if newest.generation == checkpoint.generation {
                        // The leader may have written since `checkpoint`, and the data read above may include these
                        // writes. The next call applies these writes again, so they do not count as applied.
                        break (replaced, newest.position);
                    }
                    checkpoint = newest;
                    state.refresh().await?;
                };
                let kept: FxHashSet<AggregateId> = replaced.all_facts().map(|(id, _)| id.clone()).collect();
                let before = state.graph.replace(replaced, position);
                show(state, before.iter().filter(|id| !kept.contains(*id)).map(|id| (id, None)));
            }
        }
        let has_adopted = adopt(state, &checkpoint, before.as_ref()).await;
        let consumed = if checkpoint.writes == reported.writes { reported.consumed } else { 0 };
        state.graph_progress.set(checkpoint.position.max(consumed));
        // If the versions could not be read, `applied` stays unchanged, so the next call tries again.
        if has_adopted {
            *applied = Some(MirrorCheckpoint { checkpoint, read_at });
        }
        Ok(())
    }

    /// Stops applying the writes of another server, because this server now processes the log itself. First waits for a
    /// running step, so that the step cannot replace newer facts with older facts.
    pub async fn end(&self) {
        *self.applied.lock().await = None;
    }
}

/// Applies changed facts and edges to the graph in memory.
async fn apply(state: &Arc<State>, generation: u64, changed: Vec<ChangedKeys>) -> Result<()> {
    let mut facts = FxHashSet::default();
    let mut edges: FxHashSet<EdgeKey> = FxHashSet::default();
    for changed in changed {
        facts.extend(changed.facts);
        edges.extend(changed.edges);
    }
    let facts: Vec<Arc<str>> = facts.into_iter().collect();
    let view = FollowerView::new(state);
    let is_enabled = |plugin: &str| state.plugins.find(plugin).is_some();
    for ids in facts.chunks(KEYS) {
        for (id, found) in state.db.read_facts_of(generation, ids).await? {
            if let Some(found) = readable(state, &id, found) {
                let (id, facts) = state.graph.set_facts(&view, &id, found, &is_enabled);
                show(state, std::iter::once((&id, Some(&*facts))));
            }
        }
    }
    let edges: Vec<EdgeKey> = edges.into_iter().collect();
    for keys in edges.chunks(KEYS) {
        state.graph.set_edges(state.db.read_edges_of(generation, keys).await?);
    }
    Ok(())
}

/// Adopts everything that the checkpoint contains other than the graph: which plugins are stopped, which versions the
/// plugins have, and whether the edges match the definitions. Adopts the versions only if they are the newest versions
/// that this server has loaded. Returns `false` if the versions cannot be read.
async fn adopt(state: &Arc<State>, checkpoint: &GraphCheckpoint, before: Option<&GraphCheckpoint>) -> bool {
    let mut has_adopted = true;
    if before.is_none_or(|before| before.circuits != checkpoint.circuits) {
        Circuits::restore(state, &checkpoint.circuits).publish();
    }
    if before.is_none_or(|before| before.versions != checkpoint.versions) {
        // A version that this server cannot load must not fail the reads of the graph.
        if let Err(error) = state.plugins.releases.refresh().await {
            tracing::warn!(%error, workspace = %state.record.id, "failed to read the versions of plugins");
            has_adopted = false;
        }
        let newest = PluginMap::new(&state.plugins, |plugin| state.plugins.newest(plugin));
        if AdoptedVersion::changed(&checkpoint.versions, &newest, checkpoint.position).is_none() {
            state.plugins.adopt(&newest);
        }
    }
    let basis = Basis::current(state);
    let is_settled = checkpoint.basis.as_ref() == Some(&basis.digest) || state.graph.is_empty();
    if is_settled {
        state.settled.remaining.set(0);
        state.settled.redefinitions.advance(basis.redefinitions);
    }
    has_adopted
}
