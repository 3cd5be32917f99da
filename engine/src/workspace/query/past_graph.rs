//! The knowledge graph around an aggregate as it was at a position or a time.

use std::sync::Arc;

use super::edges::read_past;
use super::reader::QueryReader;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::id::AggregateId;
use crate::resident::graph::{Neighborhood, PastGraph, PastMoment, Traversal};
use crate::workspace::graph::{GraphNeighborhood, GraphNode};

/// Returns the neighborhood of an aggregate at an earlier moment: the states at that moment, and the edges that were
/// open at that moment. The nodes have no facts, because past facts are not stored.
pub fn neighborhood(
    reader: &QueryReader<'_>,
    id: &str,
    walk: &Traversal,
    then: PastMoment,
) -> Result<GraphNeighborhood> {
    let not_found = || Error::not_found("aggregate", id);
    let now = reader.state(id).ok_or_else(not_found)?;
    let from = now.id.clone();
    state_then(reader, &now, then)?.ok_or_else(not_found)?;
    let past = read_past(reader, PastGraph::begin(&reader.state.graph, then), &walk.kinds)?;
    let context = reader.context;
    let found = past.walk_while(std::slice::from_ref(&from), walk, || context.tick())?;
    let Neighborhood { nodes: reached, edges, truncated } = found;
    let mut nodes = Vec::with_capacity(reached.len());
    for (id, distance) in reached {
        nodes.extend(node(reader, &id, distance, then)?);
    }
    Ok(GraphNeighborhood { nodes, edges, truncated })
}

fn node(reader: &QueryReader<'_>, id: &AggregateId, distance: u32, then: PastMoment) -> Result<Option<GraphNode>> {
    let Some(now) = reader.state(id.as_str()) else { return Ok(None) };
    let Some(definition) = reader.definitions.get(&now.aggregate_type) else { return Ok(None) };
    // An imported edge may have opened before the first event of the node at its end.
    let Some(aggregate) = state_then(reader, &now, then)? else { return Ok(None) };
    let label = definition.shown_label_of(&aggregate.state);
    Ok(Some(GraphNode { aggregate, label, facts: Arc::default(), distance }))
}

/// Returns the state of an aggregate at a moment, or `None` if the moment is before the aggregate's first event.
fn state_then(reader: &QueryReader<'_>, now: &Arc<Aggregate>, then: PastMoment) -> Result<Option<Arc<Aggregate>>> {
    let (version, until) = match then {
        PastMoment::Position(position) if now.position <= position => return Ok(Some(now.clone())),
        PastMoment::Position(position) => (reader.handle.block_on(reader.state.version_at(now, position))?, None),
        PastMoment::Time(time) => (now.version, Some(time)),
    };
    Ok(reader.fold(now, version, until)?.map(Arc::new))
}
