//! The knowledge graph as a source of rows: the states that edges lead to, as of the query's moment.

use std::sync::Arc;

use super::reader::QueryReader;
use crate::error::Result;
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};
use crate::pipeline::{self, EdgeScan, Table};
use crate::resident::graph::{Kinds, PastGraph, PastMoment, Traversal};

/// The maximum number of nodes reached from one row.
const MAX_REACHED: usize = 10_000;
/// The approximate memory per visited node or edge, in bytes.
pub const ENTRY_BYTES: usize = 96;

/// The edges that a scan selects.
pub struct EdgeTable<'a> {
    reader: &'a QueryReader<'a>,
    walk: Traversal,
    past: PastGraph<'a>,
}

impl<'a> EdgeTable<'a> {
    pub fn new(reader: &'a QueryReader<'a>, scan: &EdgeScan) -> Result<EdgeTable<'a>> {
        let EdgeScan { kinds, direction, depth } = scan;
        reader.context.tick_many(kinds.len())?;
        reader.context.charge(kinds.len() * ENTRY_BYTES)?;
        let kinds: Kinds = kinds.iter().cloned().collect();
        let past = PastGraph::begin(&reader.state.graph, PastMoment::Position(reader.position));
        let past = match reader.position == reader.snapshot.position() && !past.needs_store {
            true => past,
            false => read_past(reader, past, &kinds)?,
        };
        let walk = Traversal { kinds, direction: *direction, depth: *depth, most: MAX_REACHED };
        Ok(EdgeTable { reader, walk, past })
    }

    /// Returns the row of a node, with its distance from the starting row as `_distance`. Returns `None` if the node
    /// did not exist or was deleted at the moment of the query, or if the type of the node is not defined.
    fn row(&self, id: &AggregateId, distance: u32) -> Result<Option<Value>> {
        let then = self.reader.state_then(id.as_str())?;
        let Some(aggregate) = then.filter(|aggregate| !aggregate.deleted) else { return Ok(None) };
        let Some(definition) = self.reader.definitions.get(&aggregate.aggregate_type) else { return Ok(None) };
        let mut row = aggregate.row(definition);
        if let Value::Object(object) = &mut row {
            let object: &mut Object = Arc::make_mut(object);
            object.push("_distance", Value::Int(distance.into()));
        }
        Ok(Some(row))
    }

    fn reached(&self, nodes: &[Arc<str>]) -> Result<Vec<Value>> {
        let context = self.reader.context;
        context.charge(nodes.len().saturating_mul(ENTRY_BYTES))?;
        let from: Vec<AggregateId> = nodes.iter().cloned().map(AggregateId::from).collect();
        let walk = Traversal { most: nodes.len().saturating_add(MAX_REACHED), ..self.walk.clone() };
        let found = self.past.walk_while(&from, &walk, || context.tick())?;
        context.charge((found.nodes.len() + found.edges.len()).saturating_mul(ENTRY_BYTES))?;
        let mut rows = Vec::new();
        for (id, distance) in found.nodes.iter().filter(|(_, distance)| *distance > 0) {
            context.tick()?;
            rows.extend(self.row(id, *distance)?);
        }
        Ok(rows)
    }
}

impl Table for EdgeTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(std::iter::empty())
    }

    fn reached_from(&self, nodes: &[Arc<str>]) -> pipeline::error::Result<Vec<Value>> {
        self.reached(nodes).map_err(|error| self.reader.ended(error))
    }
}

/// Adds to `past` the edges of `kinds` that were open at the moment of `past` and were closed later. Reads these edges
/// from the store, one range of aggregates at a time.
pub fn read_past<'g>(reader: &QueryReader<'_>, mut past: PastGraph<'g>, kinds: &Kinds) -> Result<PastGraph<'g>> {
    let log = &reader.state.db;
    let generation = reader.handle.block_on(log.read_graph_checkpoint())?.generation;
    for key_range in reader.handle.block_on(log.edge_ranges(generation))? {
        reader.context.check_time()?;
        let closed = reader.handle.block_on(async {
            match past.moment {
                PastMoment::Position(position) => {
                    log.read_edges_closed_after(generation, key_range, position, reader.context.now_ms).await
                }
                PastMoment::Time(time) => log.read_edges_valid_after(generation, key_range, time).await,
            }
        })?;
        for edge in closed.into_iter().filter(|edge| kinds.contains(&edge.kind)) {
            reader.context.charge(size_of_val(&edge) + ENTRY_BYTES)?;
            past.add(Arc::new(edge));
        }
    }
    Ok(past)
}
