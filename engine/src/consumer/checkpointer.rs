//! What is to be written of the graph, and the checkpoint that says so: both are one transaction.

use std::sync::Arc;

use indexmap::IndexMap;

use super::parking::Parking;
use crate::core::State;
use crate::error::Result;
use crate::model::aggregate::no_facts;
use crate::model::graph::{Edge, EnrichmentFacts, facts_of};
use crate::model::id::AggregateId;
use crate::model::value::Object;
use crate::resident::graph::Changes;
use crate::store::graph::{Effects, GraphCheckpoint};

/// Events that changed nothing are passed without writing that down, up to so many and so many bytes: after a crash they
/// are taken through the plugins again.
const UNSTORED: u64 = 4_096;
const UNSTORED_BYTES: usize = 16 << 20;

/// Effects that are in the graph already and not yet stored, and where the follower stands.
pub struct Checkpointer {
    state: Arc<State>,
    /// Where it stands; what is stored may be behind, by events that changed nothing.
    checkpoint: GraphCheckpoint,
    stored: u64,
    /// Bytes of the events since then.
    unstored_bytes: usize,
    facts: IndexMap<AggregateId, Option<Arc<EnrichmentFacts>>>,
    edges: Vec<Arc<Edge>>,
}

impl Checkpointer {
    pub fn new(state: &Arc<State>, checkpoint: GraphCheckpoint) -> Checkpointer {
        let stored = checkpoint.position;
        let (unstored_bytes, facts, edges) = Default::default();
        Checkpointer { state: state.clone(), checkpoint, stored, unstored_bytes, facts, edges }
    }

    /// The last event that was taken in.
    pub fn position(&self) -> u64 {
        self.checkpoint.position
    }

    /// Notes that events of so many bytes were taken in.
    pub fn pass(&mut self, bytes: usize) {
        self.unstored_bytes += bytes;
    }

    /// Notes what is to be written.
    pub fn note(&mut self, changes: Changes) {
        for id in changes.nodes {
            let facts = self.state.graph.facts(id.as_str());
            self.facts.insert(id, facts);
        }
        self.edges.extend(changes.edges);
    }

    /// Writes what changed, with the checkpoint that says so, and shows it. Where nothing changed, it is written down
    /// now and then.
    pub async fn commit(&mut self, position: u64, circuits: Object, parking: &mut Parking) -> Result<()> {
        let unchanged = self.facts.is_empty() && self.edges.is_empty() && parking.is_empty();
        let unchanged = unchanged && circuits == self.checkpoint.circuits;
        let is_near = position.saturating_sub(self.stored) < UNSTORED && self.unstored_bytes < UNSTORED_BYTES;
        if unchanged && is_near {
            self.checkpoint.position = position;
            self.state.graph_progress.set(position);
            return Ok(());
        }
        let after = GraphCheckpoint { position, generation: self.checkpoint.generation, circuits };
        self.write(after, parking).await
    }

    /// Writes where the follower stands, if it passed events since that was written last.
    pub async fn settle(&mut self, circuits: Object, parking: &mut Parking) -> Result<()> {
        if self.checkpoint.position == self.stored {
            return Ok(());
        }
        let after = GraphCheckpoint { circuits, ..self.checkpoint.clone() };
        self.write(after, parking).await
    }

    /// Writes that another generation serves. What is not written yet belongs to the one before.
    pub async fn swap(&mut self, generation: u64, circuits: Object, parking: &mut Parking) -> Result<()> {
        self.facts.clear();
        self.edges.clear();
        let after = GraphCheckpoint { position: self.checkpoint.position, generation, circuits };
        self.write(after, parking).await
    }

    /// After a failure it is not known what is stored: whoever failed has to be loaded again.
    async fn write(&mut self, after: GraphCheckpoint, parking: &mut Parking) -> Result<()> {
        let (parked, released) = parking.take();
        let edges = std::mem::take(&mut self.edges);
        let facts: Vec<_> = std::mem::take(&mut self.facts).into_iter().collect();
        let effects = Effects { facts, edges, parked, released };
        let before = GraphCheckpoint { position: self.stored, ..self.checkpoint.clone() };
        self.state.log.write_effects(&effects, &before, &after).await?;
        show(&self.state, effects.facts.iter().map(|(id, facts)| (id, facts.as_deref())));
        self.stored = after.position;
        self.unstored_bytes = 0;
        self.state.graph_progress.set(after.position);
        self.checkpoint = after;
        Ok(())
    }
}

/// Lets pipelines and search see what was found about aggregates, or that nothing is any more.
pub fn show<'a>(state: &State, found: impl Iterator<Item = (&'a AggregateId, Option<&'a EnrichmentFacts>)> + Clone) {
    let derived = found.clone().map(|(id, facts)| (id.clone(), facts.map_or_else(no_facts, facts_of)));
    state.folded.set_facts(derived);
    for (id, facts) in found {
        let labels = facts.into_iter().flat_map(|facts| facts.values()).flat_map(|facts| &facts.labels);
        state.search.labels.set_further(id, labels.cloned().collect());
    }
}
