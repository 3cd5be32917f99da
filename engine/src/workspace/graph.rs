//! The knowledge graph around an aggregate.

use std::sync::Arc;

use super::rights::Reader;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::graph::{Direction, Edge, EnrichmentFacts};
use crate::model::id::AggregateId;
use crate::resident::graph::{Kinds, Neighbourhood, Walk};

/// The maximum number of edges between a returned node and the requested one.
pub const MAX_DEPTH: u32 = 3;
/// The maximum number of nodes returned.
const MAX_NODES: usize = 1_000;

/// A node of the graph.
pub struct Node {
    pub aggregate: Arc<Aggregate>,
    pub label: Option<Arc<str>>,
    /// The facts that plugins derived for the aggregate.
    pub facts: Arc<EnrichmentFacts>,
    /// The number of edges between this node and the requested one.
    pub distance: u32,
}

/// The neighbourhood of an aggregate.
pub struct Around {
    /// The nodes, nearest first. The aggregate itself is the first node.
    pub nodes: Vec<Node>,
    pub edges: Vec<Arc<Edge>>,
    /// Whether there are more nodes than returned.
    pub truncated: bool,
}

impl Reader {
    /// Returns the nodes around an aggregate and the edges between them. `kinds` restricts the kinds of edges; an empty
    /// list allows all. With `closed`, also returns outgoing edges of the aggregate that have been closed.
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
        let state = self.context.state();
        state.refresh().await?;
        let from = state.folded.get(id).ok_or_else(|| Error::not_found("aggregate", id))?;
        let walk = Walk { kinds: Kinds::from_iter(kinds), direction, depth, most: MAX_NODES };
        let Neighbourhood { nodes, mut edges, truncated } = state.graph.walk(&from.id, &walk);
        if closed && direction != Direction::In {
            let checkpoint = state.db.read_graph_checkpoint().await?;
            let all = state.db.read_edges(checkpoint.generation, &from.id).await?;
            let is_closed = |edge: &Edge| edge.valid_to.is_some() && walk.kinds.contains(&edge.kind);
            edges.extend(all.into_iter().filter(is_closed).map(Arc::new));
        }
        let nodes = nodes.into_iter().filter_map(|(id, distance)| self.node(&id, distance)).collect();
        Ok(Around { nodes, edges, truncated })
    }

    fn node(&self, id: &AggregateId, distance: u32) -> Option<Node> {
        let state = self.context.state();
        let aggregate = state.folded.get(id.as_str())?;
        let definition = state.types.get(&aggregate.aggregate_type)?;
        let label = definition.label_of(&aggregate.state);
        let facts = state.graph.facts(id.as_str()).unwrap_or_default();
        Some(Node { aggregate, label, facts, distance })
    }
}
