//! Writes changes of the graph together with the follower's checkpoint, in one transaction.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::consumer::plugins::parking::ParkingBuffer;
use crate::error::Result;
use crate::model::aggregate::no_facts;
use crate::model::graph::{Edge, EnrichmentFacts, facts_of};
use crate::model::id::AggregateId;
use crate::model::value::Object;
use crate::resident::graph::Changes;
use crate::state::State;
use crate::state::leadership::Lead;
use crate::store::Database;
use crate::store::control::servers::WorkspaceProgress;
use crate::store::workspace::graph::{FollowerWrites, GraphCheckpoint};

/// The number of processed events after which the checkpoint is written even if these events changed nothing. After a
/// crash, the plugins process these events again.
const MAX_UNSTORED_EVENTS: u64 = 4_096;
/// The size of processed events and of the states folded for them, in bytes, after which the checkpoint is written even
/// if these events changed nothing.
const MAX_UNSTORED_BYTES: usize = 16 << 20;

/// The writer of the graph's changes and of the follower's checkpoint. Gathers the changes until the next write.
pub struct Checkpointer {
    state: Arc<State>,
    db: Database,
    /// The right to process the log, under which the changes are written.
    pub lead: Lead,
    /// The follower's current checkpoint. The stored checkpoint may be older, if the events since then changed nothing.
    checkpoint: GraphCheckpoint,
    stored: u64,
    /// Whether the basis of the edges has changed since the checkpoint was stored.
    has_new_basis: bool,
    /// The plugin versions that the next write stores. `None` leaves the stored versions unchanged.
    new_versions: Option<Object>,
    /// The size of the events after the stored position and of the states folded for these events, in bytes.
    unstored_bytes: usize,
    facts: IndexMap<AggregateId, Option<Arc<EnrichmentFacts>>>,
    edges: Vec<Arc<Edge>>,
}

impl Checkpointer {
    pub fn new(state: &Arc<State>, db: &Database, lead: Lead, checkpoint: GraphCheckpoint) -> Checkpointer {
        let stored = checkpoint.position;
        let (has_new_basis, new_versions, unstored_bytes, facts, edges) = Default::default();
        let (state, db) = (state.clone(), db.clone());
        Checkpointer { state, db, lead, checkpoint, stored, has_new_basis, new_versions, unstored_bytes, facts, edges }
    }

    /// Returns the follower's current checkpoint. The stored checkpoint may be older.
    pub fn checkpoint(&self) -> &GraphCheckpoint {
        &self.checkpoint
    }

    /// Sets the basis of the edges: the digest of the definitions and plugins that the edges match.
    pub fn set_basis(&mut self, basis: Arc<str>) {
        self.checkpoint.basis = Some(basis);
        self.has_new_basis = true;
    }

    /// Sets the plugin versions that the next write stores. These versions process the events after the current
    /// position.
    pub fn set_versions(&mut self, versions: Object) {
        self.new_versions = Some(versions);
    }

    /// Adds `bytes`, the size of processed events and of the states folded for them, to the size after the stored
    /// position.
    pub fn pass(&mut self, bytes: usize) {
        self.unstored_bytes += bytes;
    }

    /// Adds changes of the graph to the next write.
    pub fn record(&mut self, changes: Changes) {
        for id in changes.nodes {
            let facts = self.state.graph.stored_facts(id.as_str());
            self.facts.insert(id, facts);
        }
        self.edges.extend(changes.edges);
    }

    /// Writes the changes together with the checkpoint, and makes the changes visible to pipelines and search. If no
    /// other server shares the store, a checkpoint without changes is written only occasionally. If other servers share
    /// the store, every checkpoint is written, because the next leader continues at the stored checkpoint.
    pub async fn commit(&mut self, position: u64, circuits: Object, parking: &mut ParkingBuffer) -> Result<()> {
        let unchanged = self.facts.is_empty() && self.edges.is_empty() && parking.is_empty();
        let unchanged = unchanged && circuits == self.checkpoint.circuits && !self.has_new_basis;
        let unchanged = unchanged && self.new_versions.is_none();
        let most = if self.lead.epoch.is_none() { MAX_UNSTORED_EVENTS } else { 1 };
        let is_near = position.saturating_sub(self.stored) < most && self.unstored_bytes < MAX_UNSTORED_BYTES;
        if unchanged && is_near {
            self.checkpoint.position = position;
            self.publish().await;
            return Ok(());
        }
        let after = GraphCheckpoint { position, circuits, ..self.checkpoint.clone() };
        self.write(after, parking).await
    }

    /// Writes the checkpoint if events were processed since the last write.
    pub async fn settle(&mut self, circuits: Object, parking: &mut ParkingBuffer) -> Result<()> {
        if self.checkpoint.position == self.stored {
            return Ok(());
        }
        let after = GraphCheckpoint { circuits, ..self.checkpoint.clone() };
        self.write(after, parking).await
    }

    /// Stores that another generation of the graph is in use. Drops unwritten changes, because they belong to the old
    /// generation.
    pub async fn swap(
        &mut self,
        generation: u64,
        basis: Arc<str>,
        circuits: Object,
        parking: &mut ParkingBuffer,
    ) -> Result<()> {
        self.facts.clear();
        self.edges.clear();
        let (position, basis) = (self.checkpoint.position, Some(basis));
        let after = GraphCheckpoint { position, generation, circuits, basis, ..self.checkpoint.clone() };
        self.write(after, parking).await
    }

    /// Writes the changes and the checkpoint. After an error, the stored state is unknown, so the caller must load the
    /// worker again.
    async fn write(&mut self, mut after: GraphCheckpoint, parking: &mut ParkingBuffer) -> Result<()> {
        if let Some(versions) = &self.new_versions {
            after.versions = versions.clone();
        }
        let (parked, released) = parking.drain();
        let edges = std::mem::take(&mut self.edges);
        let facts: Vec<_> = std::mem::take(&mut self.facts).into_iter().collect();
        let effects = FollowerWrites { facts, edges, parked, released };
        let before = GraphCheckpoint { position: self.stored, ..self.checkpoint.clone() };
        after.writes += 1;
        self.db.write_effects(&effects, &before, &after, self.lead.epoch).await?;
        self.state.graph.set_stored(&effects.edges);
        if !effects.parked.is_empty() || !effects.released.is_empty() {
            self.state.plugins.note_parking();
        }
        // Reads the facts from the graph, because the stored facts include facts of plugins that are not enabled.
        let shown: Vec<_> = effects.facts.iter().map(|(id, _)| (id, self.state.graph.facts(id.as_str()))).collect();
        show(&self.state, shown.iter().map(|(id, facts)| (*id, facts.as_deref())));
        self.stored = after.position;
        self.has_new_basis = false;
        self.new_versions = None;
        self.unstored_bytes = 0;
        self.checkpoint = after;
        self.publish().await;
        Ok(())
    }

    /// Stores the counts of plugin calls, then publishes the position to waiting tasks and other servers. The published
    /// position never goes back: a worker that resumes at an earlier position repeats only events that changed nothing.
    async fn publish(&self) {
        self.state.call_counts.store(&self.state.record.id, &self.state.plugins).await;
        let (position, writes) = (self.checkpoint.position, self.checkpoint.writes);
        self.state.graph_progress.advance(position);
        self.state.report(WorkspaceProgress { writes, consumed: position, ..WorkspaceProgress::default() });
    }
}

/// Makes the facts about aggregates visible to pipelines and search. `None` removes the facts of an aggregate.
pub fn show<'a>(state: &State, found: impl Iterator<Item = (&'a AggregateId, Option<&'a EnrichmentFacts>)> + Clone) {
    let derived = found.clone().map(|(id, facts)| (id.clone(), facts.map_or_else(no_facts, facts_of)));
    state.folded.set_facts(derived);
    for (id, facts) in found {
        let labels = facts.into_iter().flat_map(|facts| facts.values()).flat_map(|facts| &facts.labels);
        state.search.labels.set_further(id, labels.cloned().collect());
    }
}
