//! Walks from a node along open edges.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashSet;

use super::Edges;
use crate::model::graph::{Direction, Edge};
use crate::model::id::AggregateId;

/// How far, and along which edges.
#[derive(Debug, Clone)]
pub struct Walk {
    /// Empty: all kinds.
    pub kinds: Vec<Arc<str>>,
    pub direction: Direction,
    pub depth: u32,
    /// Nodes reached at most; the nearest come first.
    pub most: usize,
}

/// What a walk found.
#[derive(Debug, Clone, Default)]
pub struct Neighbourhood {
    /// The nodes reached and their distance, the start first, in the order in which they were reached.
    pub nodes: Vec<(AggregateId, u32)>,
    /// The edges between them that were followed.
    pub edges: Vec<Arc<Edge>>,
    /// Whether there were more nodes than asked for.
    pub truncated: bool,
}

pub fn walk(edges: &Edges, from: &AggregateId, walk: &Walk) -> Neighbourhood {
    let mut reached: IndexMap<AggregateId, u32> = IndexMap::from_iter([(from.clone(), 0)]);
    let mut followed: FxHashSet<*const Edge> = FxHashSet::default();
    let mut found = Neighbourhood::default();
    let mut next = 0;
    while let Some((id, distance)) = reached.get_index(next).map(|(id, distance)| (id.clone(), *distance)) {
        next += 1;
        if distance == walk.depth {
            break;
        }
        for (edge, end) in around(edges, &id, walk) {
            if !reached.contains_key(end) {
                if reached.len() >= walk.most {
                    found.truncated = true;
                    continue;
                }
                reached.insert(end.clone(), distance + 1);
            }
            if followed.insert(Arc::as_ptr(edge)) {
                found.edges.push(edge.clone());
            }
        }
    }
    found.nodes = reached.into_iter().collect();
    found
}

/// The edges at a node and their other ends.
fn around<'a>(
    edges: &'a Edges,
    id: &AggregateId,
    walk: &'a Walk,
) -> impl Iterator<Item = (&'a Arc<Edge>, &'a AggregateId)> {
    let (out, into) = match walk.direction {
        Direction::Out => (true, false),
        Direction::In => (false, true),
        Direction::Both => (true, true),
    };
    let of_kind = |edge: &&Arc<Edge>| walk.kinds.is_empty() || walk.kinds.contains(&edge.kind);
    let outgoing = edges.outgoing.get(id).filter(|_| out).into_iter().flatten().map(|edge| (edge, &edge.to));
    let incoming = edges.incoming.get(id).filter(|_| into).into_iter().flatten().map(|edge| (edge, &edge.from));
    outgoing.chain(incoming).filter(move |(edge, _)| of_kind(edge))
}
