//! Traverses the graph from given nodes, along the edges that are open now or were open at a moment of the past.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::closed::ClosedRead;
use super::{Edges, Graph};
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

/// A moment of the past: a position of the log, or a time. The time is compared with the times at which events
/// occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastMoment {
    /// The moment after the event at this position of the log.
    Position(u64),
    /// The moment after the events that occurred up to this time, in milliseconds since the epoch.
    Time(i64),
}

impl PastMoment {
    /// Returns whether an edge was opened at or before the moment.
    fn has_opened(self, edge: &Edge) -> bool {
        match self {
            PastMoment::Position(position) => edge.opened <= position,
            PastMoment::Time(time) => edge.valid_from <= time,
        }
    }

    /// Returns whether an edge was closed after the moment.
    fn is_closed_later(self, edge: &Edge) -> bool {
        match self {
            PastMoment::Position(position) => edge.closed.is_some_and(|closed| closed > position),
            PastMoment::Time(time) => edge.valid_to.is_some_and(|valid_to| valid_to > time),
        }
    }
}

/// A read of the graph at a moment of the past. While the read exists, the graph keeps in memory the closed edges that
/// the read needs.
pub struct PastGraph<'g> {
    graph: &'g Graph,
    pub moment: PastMoment,
    closed: ClosedRead<'g>,
    /// Whether the store may contain edges that were open at `moment`, are closed now, and are not in memory.
    pub needs_store: bool,
    /// The edges from the store that were open at `moment` and are closed now.
    stored: EdgesByNode,
}

/// Edges by the node at their start, and by the node at their end.
#[derive(Default)]
pub struct EdgesByNode {
    pub(super) outgoing: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
    incoming: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
}

impl EdgesByNode {
    pub(super) fn add(&mut self, edge: Arc<Edge>) {
        self.outgoing.entry(edge.from.clone()).or_default().push(edge.clone());
        self.incoming.entry(edge.to.clone()).or_default().push(edge);
    }

    pub(super) fn remove(&mut self, edge: &Arc<Edge>) {
        for (edges, id) in [(&mut self.outgoing, &edge.from), (&mut self.incoming, &edge.to)] {
            if let Some(linked) = edges.get_mut(id) {
                linked.retain(|known| !Arc::ptr_eq(known, edge));
                if linked.is_empty() {
                    edges.remove(id);
                }
            }
        }
    }
}

impl<'g> PastGraph<'g> {
    /// Begins to read the graph at a moment. If `needs_store` is set in the result, the caller must read the stored
    /// edges that were closed after the moment, and pass each edge to [`PastGraph::add`].
    pub fn begin(graph: &'g Graph, moment: PastMoment) -> PastGraph<'g> {
        let closed = ClosedRead::begin(&graph.closed);
        let needs_store = match moment {
            PastMoment::Position(position) => closed.stored_position > position,
            PastMoment::Time(_) => true,
        };
        PastGraph { graph, moment, closed, needs_store, stored: EdgesByNode::default() }
    }

    /// Adds a stored edge that was closed after the moment. Ignores edges that were also opened after the moment.
    pub fn add(&mut self, closed: Arc<Edge>) {
        if self.moment.has_opened(&closed) {
            self.stored.add(closed);
        }
    }

    /// Returns the neighborhood of several nodes as it was at the moment of this graph. `proceed` is called for each
    /// visited node and edge. If `proceed` returns an error, the traversal ends with that error.
    pub fn walk_while<E>(
        &self,
        from: &[AggregateId],
        walk: &Traversal,
        mut proceed: impl FnMut() -> Result<(), E>,
    ) -> Result<Neighborhood, E> {
        let open = self.graph.inner.read();
        let mut recent = EdgesByNode::default();
        self.closed.visit(|closed| {
            let was_open = self.moment.has_opened(closed) && self.moment.is_closed_later(closed);
            if was_open && walk.kinds.contains(&closed.kind) {
                recent.add(closed.clone());
            }
            proceed()
        })?;
        walk_while(&open, from, walk, Some((self.moment, [&self.stored, &recent])), proceed)
    }
}

/// A moment, and the edges that were open at the moment and are closed now. An edge may occur several times.
pub type PastEdges<'a> = (PastMoment, [&'a EdgesByNode; 2]);

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

/// Returns the nodes and edges that a traversal reaches from any of several starting nodes. The distance of a node is
/// the distance from the nearest starting node. `proceed` is called for each visited node and edge. If `proceed`
/// returns an error, the traversal ends with that error.
pub fn walk_while<E>(
    edges: &Edges,
    from: &[AggregateId],
    walk: &Traversal,
    past: Option<PastEdges<'_>>,
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
            // An edge may be in the store and in memory.
            at_node.dedup_by_key(|(edge, end)| (**end == edge.from, edge.opened, &edge.kind, *end));
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

/// Returns the edges that leave or enter a node, as `direction` requests, each with the node at the edge's other end.
/// If `past` is given, returns the edges that were open at the moment in `past`. Otherwise, returns the edges that are
/// open now.
fn around<'a>(
    edges: &'a Edges,
    id: &AggregateId,
    direction: Direction,
    past: Option<PastEdges<'a>>,
) -> impl Iterator<Item = (&'a Arc<Edge>, &'a AggregateId)> {
    let (out, into) = (direction != Direction::In, direction != Direction::Out);
    let was_open = move |edge: &&Arc<Edge>| past.is_none_or(|(moment, _)| moment.has_opened(edge));
    let all = std::iter::once(&edges.open).chain(past.into_iter().flat_map(|(_, closed)| closed));
    let outgoing = all.clone().filter_map(|edges| edges.outgoing.get(id)).flatten().filter(was_open);
    let incoming = all.filter_map(|edges| edges.incoming.get(id)).flatten().filter(was_open);
    let outgoing = outgoing.filter(move |_| out).map(|edge| (edge, &edge.to));
    outgoing.chain(incoming.filter(move |_| into).map(|edge| (edge, &edge.from)))
}
