//! The knowledge graph around an aggregate.

use std::sync::Arc;

use super::rights::Reader;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::graph::{Direction, Edge, EnrichmentFacts};
pub use crate::resident::graph::PastMoment as GraphMoment;
use crate::resident::graph::{Kinds, Traversal};

/// The maximum number of edges between a returned node and the requested node.
pub const MAX_DEPTH: u32 = 3;
/// The maximum number of nodes returned.
const MAX_NODES: usize = 1_000;

/// A node of the graph.
pub struct GraphNode {
    pub aggregate: Arc<Aggregate>,
    pub label: Option<Arc<str>>,
    /// The facts that plugins derived for the aggregate. Empty in the graph of an earlier moment.
    pub facts: Arc<EnrichmentFacts>,
    /// The number of edges between this node and the requested node.
    pub distance: u32,
}

/// The neighborhood of an aggregate.
pub struct GraphNeighborhood {
    /// The nodes, nearest first. The aggregate itself is the first node.
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<Arc<Edge>>,
    /// Whether there are more nodes or closed edges than returned.
    pub truncated: bool,
}

impl Reader {
    /// Returns the nodes around an aggregate and the edges between them. `kinds` restricts the kinds of edges; an empty
    /// list allows all. With `closed`, also returns outgoing edges of the aggregate that have been closed, unless
    /// `direction` selects only incoming edges. With `then`, returns the graph of an earlier moment.
    pub async fn graph(
        &self,
        id: &str,
        depth: u32,
        kinds: Vec<Arc<str>>,
        direction: Direction,
        closed: bool,
        then: Option<GraphMoment>,
    ) -> Result<GraphNeighborhood> {
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(Error::invalid(format!("`depth` is {depth}; expected 1 to {MAX_DEPTH}")));
        }
        self.context.refresh_graph().await?;
        let walk = Traversal { kinds: Kinds::from_iter(kinds.iter().cloned()), direction, depth, most: MAX_NODES };
        if let Some(GraphMoment::Position(position)) = then {
            self.context.check_position(position).await?;
        }
        if closed && then.is_some() {
            return Err(Error::invalid("`closed` cannot be combined with `at` or `position`"));
        }
        self.neighborhood(id, walk, closed.then_some(kinds), then).await
    }
}
