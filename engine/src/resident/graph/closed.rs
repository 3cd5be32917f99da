//! The recently closed edges. A read of the past reads older closed edges from the store.
//!
//! An edge is removed from the open edges before its closed version is stored. The closed version is therefore kept in
//! memory until the closed version is stored, and until every read that began before the closed version was stored has
//! ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use crate::model::graph::Edge;

/// The recently closed edges, in the order in which they were closed.
#[derive(Default)]
pub struct ClosedEdges {
    edges: VecDeque<ClosedEdge>,
    /// The number of stored edges at the front of `edges`.
    stored: usize,
    /// A position of the log. No edge that is counted in `stored` or was removed was closed after this position.
    stored_position: u64,
    /// The number of edges that were removed from the front of `edges`.
    removed: u64,
    /// For each edge number, the number of unfinished reads that need the edges from this number on. The edges are
    /// numbered from 0 in the order in which they were added.
    reads: BTreeMap<u64, usize>,
}

struct ClosedEdge {
    edge: Arc<Edge>,
    is_stored: bool,
}

/// A read of the past. Until the read ends, two kinds of closed edges stay in memory: edges that were not stored yet
/// when the read began, and edges that are closed during the read.
pub struct ClosedRead<'g> {
    closed: &'g Mutex<ClosedEdges>,
    /// The number of the first edge that the read needs. `ClosedEdges::reads` uses the same numbers.
    first: u64,
    /// A position of the log. No edge that may be only in the store was closed after this position.
    pub stored_position: u64,
}

impl<'g> ClosedRead<'g> {
    pub fn begin(closed: &'g Mutex<ClosedEdges>) -> ClosedRead<'g> {
        let mut edges = closed.lock();
        let first = edges.removed + edges.stored as u64;
        *edges.reads.entry(first).or_default() += 1;
        ClosedRead { closed, first, stored_position: edges.stored_position }
    }

    /// Calls `visit` for each closed edge in memory, until `visit` returns an error.
    pub fn visit<E>(&self, visit: impl FnMut(&Arc<Edge>) -> Result<(), E>) -> Result<(), E> {
        self.closed.lock().edges.iter().map(|closed| &closed.edge).try_for_each(visit)
    }
}

impl Drop for ClosedRead<'_> {
    fn drop(&mut self) {
        let mut edges = self.closed.lock();
        if let Some(reads) = edges.reads.get_mut(&self.first) {
            *reads -= 1;
            if *reads == 0 {
                edges.reads.remove(&self.first);
                edges.remove_stored();
            }
        }
    }
}

impl ClosedEdges {
    /// Adds an edge whose closed version is not stored yet.
    pub fn add(&mut self, edge: Arc<Edge>) {
        self.edges.push_back(ClosedEdge { edge, is_stored: false });
    }

    /// Adds an edge whose closed version is stored.
    pub fn add_stored(&mut self, edge: Arc<Edge>) {
        self.edges.push_back(ClosedEdge { edge, is_stored: true });
        self.remove_stored();
    }

    /// Marks each closed edge in `edges` as stored.
    pub fn set_stored(&mut self, edges: &[Arc<Edge>]) {
        let stored: FxHashSet<*const Edge> = edges.iter().map(Arc::as_ptr).collect();
        for closed in self.edges.iter_mut().skip(self.stored) {
            closed.is_stored |= stored.contains(&Arc::as_ptr(&closed.edge));
        }
        self.remove_stored();
    }

    /// Marks all edges as stored. Called when the stored graph at `position` replaces the graph: the store then
    /// contains the closed version of every edge that is not open. Only unfinished reads still need the edges in
    /// memory.
    pub fn set_all_stored(&mut self, position: u64) {
        self.edges.iter_mut().for_each(|closed| closed.is_stored = true);
        self.stored_position = self.stored_position.max(position);
        self.remove_stored();
    }

    /// Returns the approximate size of the edges, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.edges.len() * (size_of::<ClosedEdge>() + size_of::<Edge>())
    }

    /// Removes the stored edges that no read needs.
    fn remove_stored(&mut self) {
        while let Some(ClosedEdge { edge, is_stored: true }) = self.edges.get(self.stored) {
            self.stored_position = self.stored_position.max(edge.closed.unwrap_or_default());
            self.stored += 1;
        }
        let needed = self.reads.first_key_value().map_or(u64::MAX, |(first, _)| *first);
        while self.stored > 0 && self.removed < needed {
            self.edges.pop_front();
            self.stored -= 1;
            self.removed += 1;
        }
    }
}
