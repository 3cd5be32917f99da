//! Walks from nodes along edges: those that are open now, or those that were open when the log ended at a position.

use std::convert::Infallible;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Edges;
use crate::model::graph::{Direction, Edge};
use crate::model::id::AggregateId;

/// The depth of a walk, and the edges that it follows.
#[derive(Debug, Clone)]
pub struct Walk {
    pub kinds: Kinds,
    pub direction: Direction,
    pub depth: u32,
    /// Limit on the nodes reached, including the starting nodes; nearer nodes come first.
    pub most: usize,
}

/// Kinds of edges.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    /// Empty means all kinds.
    kinds: Arc<FxHashSet<Arc<str>>>,
}

impl Kinds {
    /// Returns whether edges of a kind are followed.
    pub fn contains(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.contains(kind)
    }
}

impl FromIterator<Arc<str>> for Kinds {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(kinds: I) -> Kinds {
        Kinds { kinds: Arc::new(kinds.into_iter().collect()) }
    }
}

/// Turns the edges that are open now into those that were open when the log ended at a position.
#[derive(Debug, Default)]
pub struct Past {
    position: u64,
    /// Edges that were open at the position and were closed later, by the node at either end.
    outgoing: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
    incoming: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
}

impl Past {
    /// Returns the past at a position, without any edge that was closed later.
    pub fn at(position: u64) -> Past {
        Past { position, ..Past::default() }
    }

    /// Adds an edge that was closed after the position. An edge that was also opened after the position is ignored.
    pub fn add(&mut self, closed: Arc<Edge>) {
        if closed.opened <= self.position {
            self.outgoing.entry(closed.from.clone()).or_default().push(closed.clone());
            self.incoming.entry(closed.to.clone()).or_default().push(closed);
        }
    }
}

/// The result of a walk.
#[derive(Debug, Clone, Default)]
pub struct Neighbourhood {
    /// The nodes reached and their distance: the starting nodes first, then in the order in which they were reached.
    pub nodes: Vec<(AggregateId, u32)>,
    /// The edges between `nodes` that were followed.
    pub edges: Vec<Arc<Edge>>,
    /// Whether the limit left out nodes.
    pub truncated: bool,
}

/// Walks from one node.
pub fn walk(edges: &Edges, from: &AggregateId, walk: &Walk) -> Neighbourhood {
    let Ok(found) = walk_while(edges, std::slice::from_ref(from), walk, None, || Ok::<(), Infallible>(()));
    found
}

/// Walks from several nodes together: a node's distance is the distance from the nearest of them. `proceed` is called
/// for each node and each edge visited; an error from it ends the walk.
pub fn walk_while<E>(
    edges: &Edges,
    from: &[AggregateId],
    walk: &Walk,
    past: Option<&Past>,
    mut proceed: impl FnMut() -> Result<(), E>,
) -> Result<Neighbourhood, E> {
    let mut reached: IndexMap<AggregateId, u32> = IndexMap::new();
    for id in from {
        proceed()?;
        reached.insert(id.clone(), 0);
    }
    let mut followed: FxHashSet<*const Edge> = FxHashSet::default();
    let mut found = Neighbourhood::default();
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
            // The order must not depend on edges closed since, nor on when the workspace was opened.
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

/// Returns the edges at a node with their other ends.
fn around<'a>(
    edges: &'a Edges,
    id: &AggregateId,
    direction: Direction,
    past: Option<&'a Past>,
) -> impl Iterator<Item = (&'a Arc<Edge>, &'a AggregateId)> {
    let (out, into) = match direction {
        Direction::Out => (true, false),
        Direction::In => (false, true),
        Direction::Both => (true, true),
    };
    let was_open = move |edge: &&Arc<Edge>| past.is_none_or(|past| edge.opened <= past.position);
    let closed_outgoing = past.and_then(|past| past.outgoing.get(id)).into_iter().flatten();
    let closed_incoming = past.and_then(|past| past.incoming.get(id)).into_iter().flatten();
    let outgoing = edges.outgoing.get(id).into_iter().flatten().filter(was_open).chain(closed_outgoing);
    let incoming = edges.incoming.get(id).into_iter().flatten().filter(was_open).chain(closed_incoming);
    let outgoing = outgoing.filter(move |_| out).map(|edge| (edge, &edge.to));
    outgoing.chain(incoming.filter(move |_| into).map(|edge| (edge, &edge.from)))
}
