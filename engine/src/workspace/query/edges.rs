//! The knowledge graph as a source of rows: the states that edges lead to.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::reader::Reader;
use crate::model::id::AggregateId;
use crate::model::value::{Object, Value};
use crate::pipeline::{EdgeScan, Table};
use crate::resident::graph::Walk;

/// Nodes that are reached from one row at most.
const MOST: usize = 10_000;

/// The edges that a scan asks for.
pub struct EdgeTable<'a> {
    pub reader: &'a Reader<'a>,
    pub scan: &'a EdgeScan,
}

impl Table for EdgeTable<'_> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(std::iter::empty())
    }

    fn around(&self, nodes: &[Arc<str>]) -> Vec<Value> {
        let EdgeScan { kinds, direction, depth } = self.scan;
        let walk = Walk { kinds: kinds.clone(), direction: *direction, depth: *depth, most: MOST };
        let mut seen: FxHashSet<Arc<str>> = nodes.iter().cloned().collect();
        let mut reached: Vec<(AggregateId, u32)> = Vec::new();
        for node in nodes {
            let around = self.reader.state.graph.walk(&AggregateId::from(node.clone()), &walk).nodes;
            reached.extend(around.into_iter().filter(|(id, _)| seen.insert(id.text())));
        }
        reached.sort_by_key(|(_, distance)| *distance);
        reached.into_iter().filter_map(|(id, distance)| self.row(&id, distance)).collect()
    }
}

impl EdgeTable<'_> {
    /// The state of a node, with its distance from the row's as `_distance`.
    fn row(&self, id: &AggregateId, distance: u32) -> Option<Value> {
        let aggregate = self.reader.state.folded.get(id.as_str()).filter(|aggregate| !aggregate.deleted)?;
        let definition = self.reader.definitions.get(&aggregate.aggregate_type)?;
        let mut row = aggregate.row(definition);
        if let Value::Object(object) = &mut row {
            let object: &mut Object = Arc::make_mut(object);
            object.push("_distance", Value::Int(distance.into()));
        }
        Some(row)
    }
}
