//! Traverses the graph from given nodes, along the edges that are open now or were open at a moment of the past.

use std::convert::Infallible;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Edges;
use crate::model::graph::{Direction, Edge};
use crate::model::id::AggregateId;

/// The parameters of a traversal.
#[derive(Debug, Clone)]
pub struct Traversal {
    pub kinds: Kinds,
    pub direction: Direction,
    pub depth: u32,
    /// The maximum number of nodes in the result, including the starting nodes. Nearer nodes have priority.
    pub most: usize,
}

/// The kinds of edges that a traversal follows.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    /// The names of the kinds. An empty set means all kinds.
    kinds: Arc<FxHashSet<Arc<str>>>,
}

impl Kinds {
    /// Returns whether the traversal follows edges of a kind.
    pub fn contains(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.contains(kind)
    }
}

impl FromIterator<Arc<str>> for Kinds {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(kinds: I) -> Kinds {
        Kinds { kinds: Arc::new(kinds.into_iter().collect()) }
    }
}

/// A moment of the past: a position of the log, or a time at which events occurred, in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastMoment {
    Position(u64),
    Time(i64),
}

impl PastMoment {
    /// Returns whether an edge was opened at the moment or before it.
    fn has_opened(self, edge: &Edge) -> bool {
        match self {
            PastMoment::Position(position) => edge.opened <= position,
            PastMoment::Time(time) => edge.valid_from <= time,
        }
    }
}

/// The difference between the edges that are open now and the edges that were open at a moment.
#[derive(Debug)]
pub struct PastGraph {
    pub moment: PastMoment,
    /// The edges that were open at the moment and were closed later, by the node at their start.
    outgoing: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
    /// The same edges, by the node at their end.
    incoming: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
}

impl PastGraph {
    /// Creates the difference for a moment. The caller must pass each edge that was closed later to [`PastGraph::add`].
    pub fn at(moment: PastMoment) -> PastGraph {
        PastGraph { moment, outgoing: FxHashMap::default(), incoming: FxHashMap::default() }
    }

    /// Adds an edge that was closed after the moment. Ignores edges that were also opened after the moment.
    pub fn add(&mut self, closed: Arc<Edge>) {
        if self.moment.has_opened(&closed) {
            self.outgoing.entry(closed.from.clone()).or_default().push(closed.clone());
            self.incoming.entry(closed.to.clone()).or_default().push(closed);
        }
    }
}

/// The result of a traversal.
#[derive(Debug, Clone, Default)]
pub struct Neighborhood {
    /// The reached nodes, each with its distance, in the order in which they were reached. The starting nodes come
    /// first.
    pub nodes: Vec<(AggregateId, u32)>,
    /// The followed edges. Both ends of each edge are in `nodes`.
    pub edges: Vec<Arc<Edge>>,
    /// Whether nodes were left out because of the limit.
    pub truncated: bool,
}

/// Returns the neighborhood of one node.
pub fn walk(edges: &Edges, from: &AggregateId, walk: &Traversal) -> Neighborhood {
    let Ok(found) = walk_while(edges, std::slice::from_ref(from), walk, None, || Ok::<(), Infallible>(()));
    found
}

/// Returns the common neighborhood of several nodes. The distance of a node is the distance from the nearest starting
/// node. `proceed` is called for each visited node and edge. If `proceed` returns an error, the traversal ends with
/// that error.
pub fn walk_while<E>(
    edges: &Edges,
    from: &[AggregateId],
    walk: &Traversal,
    past: Option<&PastGraph>,
    mut proceed: impl FnMut() -> Result<(), E>,
) -> Result<Neighborhood, E> {
    let mut reached: IndexMap<AggregateId, u32> = IndexMap::new();
    for id in from {
        proceed()?;
        reached.insert(id.clone(), 0);
    }
    let mut followed: FxHashSet<*const Edge> = FxHashSet::default();
    let mut found = Neighborhood::default();
    let mut next = 0;
    while let Some((id, distance)) = reached.get_index(next).map(|(id, distance)| (id.clone(), *distance)) {
        next += 1;
        if distance == walk.depth {
            break;
        }
        proceed()?;
        let mut at_node = Vec::new();
        for (edge, end) in around(edges, &id, walk.direction, past) {
            proceed()?;
            if walk.kinds.contains(&edge.kind) {
                at_node.push((edge, end));
            }
        }
        if past.is_some() {
            // The order must not depend on whether an edge was closed after the moment, or on when the workspace was
            // opened.
            at_node.sort_by_key(|(edge, end)| (**end == edge.from, edge.opened, &edge.kind, *end));
        }
        for (edge, end) in at_node {
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
    Ok(found)
}

/// Returns the edges at a node, each with the node at its other end.
fn around<'a>(
    edges: &'a Edges,
    id: &AggregateId,
    direction: Direction,
    past: Option<&'a PastGraph>,
) -> impl Iterator<Item = (&'a Arc<Edge>, &'a AggregateId)> {
    let (out, into) = match direction {
        Direction::Out => (true, false),
        Direction::In => (false, true),
        Direction::Both => (true, true),
    };
    let was_open = move |edge: &&Arc<Edge>| past.is_none_or(|past| past.moment.has_opened(edge));
    let closed_outgoing = past.and_then(|past| past.outgoing.get(id)).into_iter().flatten();
    let closed_incoming = past.and_then(|past| past.incoming.get(id)).into_iter().flatten();
    let outgoing = edges.outgoing.get(id).into_iter().flatten().filter(was_open).chain(closed_outgoing);
    let incoming = edges.incoming.get(id).into_iter().flatten().filter(was_open).chain(closed_incoming);
    let outgoing = outgoing.filter(move |_| out).map(|edge| (edge, &edge.to));
    outgoing.chain(incoming.filter(move |_| into).map(|edge| (edge, &edge.from)))
}
