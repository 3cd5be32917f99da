//! The knowledge graph around an aggregate.

use std::sync::Arc;

use super::rights::Reader;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::graph::{Direction, Edge, EnrichmentFacts};
use crate::model::id::AggregateId;
use crate::resident::graph::{Kinds, Neighbourhood, Walk};

/// The farthest that a walk goes.
pub const MAX_DEPTH: u32 = 3;
/// Nodes that are answered at most.
const MAX_NODES: usize = 1_000;

/// A node of the graph.
pub struct Node {
    pub aggregate: Arc<Aggregate>,
    pub label: Option<Arc<str>>,
    /// What plugins found.
    pub facts: Arc<EnrichmentFacts>,
    /// Edges between it and the node that was asked for.
    pub distance: u32,
}

/// What is around an aggregate.
pub struct Around {
    /// The nearest first; the aggregate itself before all.
    pub nodes: Vec<Node>,
    pub edges: Vec<Arc<Edge>>,
    /// There are more nodes than are answered.
    pub truncated: bool,
}

impl Reader {
    /// The nodes around an aggregate, along edges of some kinds (all, where none is named), and these edges; with
    /// `closed`, also those that went out from it and are no more.
    pub async fn graph(
        &self,
        id: &str,
        depth: u32,
        kinds: Vec<Arc<str>>,
        direction: Direction,
        closed: bool,
    ) -> Result<Around> {
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(Error::invalid(format!("depth is {depth}; allowed is 1 to {MAX_DEPTH}")));
        }
        let state = self.entered.state();
        state.refresh().await?;
        let from = state.folded.get(id).ok_or_else(|| Error::not_found("aggregate", id))?;
        let walk = Walk { kinds: Kinds::from_iter(kinds), direction, depth, most: MAX_NODES };
        let Neighbourhood { nodes, mut edges, truncated } = state.graph.walk(&from.id, &walk);
        if closed && direction != Direction::In {
            let checkpoint = state.log.read_graph_checkpoint().await?;
            let all = state.log.read_edges(checkpoint.generation, &from.id).await?;
            let wanted = |edge: &Edge| edge.valid_to.is_some() && walk.kinds.contains(&edge.kind);
            edges.extend(all.into_iter().filter(wanted).map(Arc::new));
        }
        let nodes = nodes.into_iter().filter_map(|(id, distance)| self.node(&id, distance)).collect();
        Ok(Around { nodes, edges, truncated })
    }

    fn node(&self, id: &AggregateId, distance: u32) -> Option<Node> {
        let state = self.entered.state();
        let aggregate = state.folded.get(id.as_str())?;
        let definition = state.types.get(&aggregate.aggregate_type)?;
        let label = definition.label_of(&aggregate.state);
        let facts = state.graph.facts(id.as_str()).unwrap_or_default();
        Some(Node { aggregate, label, facts, distance })
    }
}
