//! The knowledge graph around an aggregate as it was at a position or a time.

use std::sync::Arc;

use super::edges::read_past;
use super::reader::QueryReader;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::fold::StreamFold;
use crate::model::id::AggregateId;
use crate::resident::graph::{Neighbourhood, PastGraph, Traversal};
use crate::state::stream_pages::StreamPages;
use crate::workspace::graph::{GraphMoment, GraphNeighbourhood, GraphNode};
use crate::workspace::rights::Reader;

impl Reader {
    /// Returns the neighbourhood of an aggregate at an earlier moment: the edges that were open then, between the
    /// states of that moment. The nodes have no facts, because past facts are not stored.
    pub(in crate::workspace) async fn graph_then(
        &self,
        id: &str,
        walk: Traversal,
        then: GraphMoment,
    ) -> Result<GraphNeighbourhood> {
        let id = id.to_owned();
        self.read_offloaded(move |reader| around(reader, &id, &walk, then)).await
    }
}

fn around(reader: &QueryReader<'_>, id: &str, walk: &Traversal, then: GraphMoment) -> Result<GraphNeighbourhood> {
    let not_found = || Error::not_found("aggregate", id);
    let now = reader.state(id).ok_or_else(not_found)?;
    let from = now.id.clone();
    state_then(reader, &now, then)?.ok_or_else(not_found)?;
    let past = match then {
        GraphMoment::Position(position) => PastGraph::at(position),
        GraphMoment::Time(time) => PastGraph::at_time(time),
    };
    let past = read_past(reader, past, &walk.kinds)?;
    let context = reader.context;
    let found = reader.state.graph.walk_while(std::slice::from_ref(&from), walk, Some(&past), || context.tick())?;
    let Neighbourhood { nodes: reached, edges, truncated } = found;
    let mut nodes = Vec::with_capacity(reached.len());
    for (id, distance) in reached {
        nodes.extend(node(reader, &id, distance, then)?);
    }
    Ok(GraphNeighbourhood { nodes, edges, truncated })
}

fn node(reader: &QueryReader<'_>, id: &AggregateId, distance: u32, then: GraphMoment) -> Result<Option<GraphNode>> {
    let Some(now) = reader.state(id.as_str()) else { return Ok(None) };
    let Some(definition) = reader.definitions.get(&now.aggregate_type) else { return Ok(None) };
    // An imported edge may have opened before the first event of the node at its end.
    let aggregate = match state_then(reader, &now, then)? {
        Some(aggregate) => aggregate,
        None => return Ok(None),
    };
    let label = definition.shown_label_of(&aggregate.state);
    Ok(Some(GraphNode { aggregate, label, facts: Arc::default(), distance }))
}

/// Returns the state of an aggregate at a moment, or `None` if the moment is before the aggregate's first event.
fn state_then(reader: &QueryReader<'_>, now: &Arc<Aggregate>, then: GraphMoment) -> Result<Option<Arc<Aggregate>>> {
    let version = match then {
        GraphMoment::Position(position) if now.position <= position => return Ok(Some(now.clone())),
        GraphMoment::Position(position) => reader.handle.block_on(reader.state.version_at(now, position))?,
        GraphMoment::Time(_) => now.version,
    };
    let Some(definition) = reader.definitions.get(&now.aggregate_type) else { return Ok(None) };
    let mut pages = StreamPages::new(now.id.clone(), 1..=version);
    let mut folding: Option<StreamFold> = None;
    while let Some(events) = reader.handle.block_on(pages.next(&reader.state.db))? {
        reader.context.check_time()?;
        for event in events.iter().filter(|event| match then {
            GraphMoment::Position(_) => true,
            GraphMoment::Time(time) => event.occurred_at <= time,
        }) {
            folding.get_or_insert_with(|| StreamFold::new(event)).fold(event, definition);
        }
    }
    let Some(aggregate) = folding.map(StreamFold::into_aggregate) else { return Ok(None) };
    reader.context.charge(aggregate.size_bytes())?;
    Ok(Some(Arc::new(aggregate)))
}
