//! The knowledge graph around an aggregate.

use std::sync::Arc;

use indexmap::IndexMap;

use super::edges::ENTRY_BYTES;
use super::past_graph;
use super::reader::QueryReader;
use crate::error::{Error, Result};
use crate::model::graph::{Direction, Edge};
use crate::model::id::AggregateId;
use crate::resident::graph::{Kinds, Neighborhood, Traversal};
use crate::workspace::graph::{GraphMoment, GraphNeighborhood, GraphNode};
use crate::workspace::rights::Reader;

/// The maximum number of edges between a returned node and the requested node.
const MAX_DEPTH: u32 = 3;
/// The maximum number of nodes returned.
const MAX_NODES: usize = 1_000;
/// The maximum number of closed edges returned.
const MAX_CLOSED: usize = 1_000;

impl Reader {
    /// Returns the nodes around an aggregate, up to the distance `depth`, and the edges between these nodes. Leaves out
    /// the edges between two nodes at the distance `depth`. `kinds` restricts the kinds of edges; an empty list allows
    /// all. With `closed`, also returns outgoing edges of the aggregate that have been closed, unless `direction`
    /// selects only incoming edges. With `then`, returns the graph of an earlier moment.
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
        let (id, closed) = (id.to_owned(), closed.then_some(kinds));
        self.read_offloaded(move |reader| match then {
            Some(then) => past_graph::neighborhood(reader, &id, &walk, then),
            None => neighborhood(reader, &id, &walk, closed),
        })
        .await
    }
}

/// Returns the current neighborhood of an aggregate. If `closed` is not `None`, also returns closed edges that start at
/// the aggregate, unless `walk` follows only incoming edges. `closed` lists the kinds of these edges. If the list is
/// empty, returns closed edges of all kinds.
fn neighborhood(
    reader: &QueryReader<'_>,
    id: &str,
    walk: &Traversal,
    closed: Option<Vec<Arc<str>>>,
) -> Result<GraphNeighborhood> {
    let (state, context) = (reader.state, reader.context);
    let from = reader.state(id).ok_or_else(|| Error::not_found("aggregate", id))?.id.clone();
    let recent = state.graph.read_closed();
    let found = state.graph.walk_while(std::slice::from_ref(&from), walk, || context.tick())?;
    let Neighborhood { nodes: reached, mut edges, mut truncated } = found;
    context.charge((reached.len() + edges.len()).saturating_mul(ENTRY_BYTES))?;
    if let Some(kinds) = closed.filter(|_| walk.direction != Direction::In) {
        let generation = reader.handle.block_on(state.db.read_graph_checkpoint())?.generation;
        let read = state.db.read_closed_edges(generation, &from, &kinds, MAX_CLOSED + 1);
        let key = |edge: &Edge| (edge.kind.clone(), edge.to.clone(), edge.opened);
        let stored = reader.handle.block_on(read)?.into_iter();
        let mut closed: IndexMap<_, _> = stored.map(|edge| (key(&edge), Arc::new(edge))).collect();
        // Edges that were closed recently may not be stored as closed yet.
        recent.visit(|edge| {
            // An edge that opened and closed at one position may have opened again at this position.
            let was_open = edge.closed.is_none_or(|closed| closed > edge.opened);
            if was_open && edge.from == from && (kinds.is_empty() || kinds.contains(&edge.kind)) {
                closed.entry(key(edge)).or_insert_with(|| edge.clone());
            }
            context.tick()
        })?;
        context.charge(closed.len().saturating_mul(size_of::<Edge>() + ENTRY_BYTES))?;
        truncated = truncated || closed.len() > MAX_CLOSED;
        closed.truncate(MAX_CLOSED);
        // An edge may have been closed after the walk.
        edges.retain(|edge| edge.from != from || !closed.contains_key(&key(edge)));
        edges.extend(closed.into_values());
    }
    let mut nodes = Vec::with_capacity(reached.len());
    for (id, distance) in reached {
        context.tick()?;
        nodes.extend(node(reader, &id, distance));
    }
    Ok(GraphNeighborhood { nodes, edges, truncated })
}

fn node(reader: &QueryReader<'_>, id: &AggregateId, distance: u32) -> Option<GraphNode> {
    let aggregate = reader.state(id.as_str())?;
    let definition = reader.definitions.get(&aggregate.aggregate_type)?;
    let label = definition.shown_label_of(&aggregate.state);
    let facts = reader.state.graph.facts(id.as_str()).unwrap_or_default();
    Some(GraphNode { aggregate, label, facts, distance })
}
