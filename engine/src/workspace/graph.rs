//! The knowledge graph around an aggregate.

use std::sync::Arc;

use crate::model::aggregate::Aggregate;
use crate::model::graph::{Edge, EnrichmentFacts};
pub use crate::resident::graph::PastMoment as GraphMoment;

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
