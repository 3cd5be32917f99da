//! The knowledge graph of an open workspace, in memory: the facts that plugins found, the edges that are not closed,
//! and the aggregates that refer to each target. The edges can be looked up by the node at their start and by the node
//! at their end.

mod closed;
mod reconcile;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};

pub use closed::ClosedRead;
pub use walk::{Kinds, Neighborhood, PastGraph, PastMoment, Traversal};

use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::graph::{Address, AddressedBy, Edge, EnrichmentFacts, PluginFacts};
use crate::model::id::AggregateId;
use crate::resident::sharing::PartInterner;
use closed::ClosedEdges;
use walk::EdgesByNode;

/// The knowledge graph at the position of the log's follower.
#[derive(Default)]
pub struct Graph {
    // A panic during a write may leave an edge in only one direction. A rebuild of the graph repairs such edges.
    inner: RwLock<Edges>,
    /// The recently closed edges. Code that needs both locks takes the lock of `inner` first.
    closed: Mutex<ClosedEdges>,
}

/// The facts that plugins found, and the open edges that result from the facts.
#[derive(Default)]
pub struct Edges {
    facts: FxHashMap<AggregateId, Arc<EnrichmentFacts>>,
    /// The facts of plugins that are not enabled. These facts are kept, but not used, until their plugins are enabled
    /// again.
    hidden: FxHashMap<AggregateId, Arc<EnrichmentFacts>>,
    /// For each address, the aggregates at which a desired edge to the address starts.
    referrers: FxHashMap<Address, BTreeSet<AggregateId>>,
    /// The kinds of addresses by which desired edges refer to nodes. `addresses` contains only these kinds.
    addressed: BTreeSet<AddressedBy>,
    /// For each address, the aggregates with the address, sorted by the position of their first event.
    addresses: FxHashMap<Address, BTreeMap<u64, AggregateId>>,
    /// The open edges.
    open: EdgesByNode,
    sharing: PartInterner,
}

/// A view of the aggregates at the position of the log's follower, and of their definitions.
pub trait StateView {
    fn aggregate(&self, id: &str) -> Option<Arc<Aggregate>>;
    fn definition(&self, type_name: &str) -> Option<Arc<Definition>>;
    fn aggregates(&self) -> Box<dyn Iterator<Item = Arc<Aggregate>> + '_>;
}

/// An event, the aggregate before and after the event, and the facts that plugins found in the event.
pub struct EnrichedEvent<'a> {
    pub event: &'a Event,
    pub before: Option<&'a Aggregate>,
    pub after: &'a Aggregate,
    pub found: Vec<(Arc<str>, Facts)>,
}

/// The position and the time at which edges open and close.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub position: u64,
    pub at_ms: i64,
}

/// The changes that an update of the graph made.
#[derive(Debug, Default)]
pub struct Changes {
    /// The ids of the aggregates whose facts changed.
    pub nodes: BTreeSet<AggregateId>,
    /// The new versions of the edges that were opened or closed, or whose weight or plugin changed.
    pub edges: Vec<Arc<Edge>>,
}

impl Moment {
    fn of(event: &Event) -> Moment {
        Moment { position: event.position, at_ms: event.occurred_at }
    }
}

impl Graph {
    /// Applies an event, together with the facts that plugins found in the event.
    pub fn take(&self, view: &dyn StateView, enriched: EnrichedEvent<'_>) -> Changes {
        self.change(|edges| edges.take(view, enriched))
    }

    /// Applies facts that a plugin found in an event that was applied earlier. Edges that open or close now get the
    /// position `position`, which is the position of the log's follower.
    pub fn amend(
        &self,
        view: &dyn StateView,
        plugin: &Arc<str>,
        event: &Event,
        facts: Facts,
        position: u64,
    ) -> Changes {
        // Edges that open now get the follower's position. With the event's own position, such an edge could not be
        // distinguished from an edge that opened when the event was applied, and closed later.
        let event = Event { position, ..event.clone() };
        self.change(|edges| edges.amend(view, plugin, &event, facts))
    }

    /// Indexes the addresses of all aggregates again, because definitions have changed. Returns the aggregates that
    /// refer to a changed address.
    pub fn readdress_all(&self, view: &dyn StateView) -> BTreeSet<AggregateId> {
        self.inner.write().readdress_all(view)
    }

    /// Returns the aggregates at which at least one open or desired edge starts.
    pub fn with_edges(&self) -> BTreeSet<AggregateId> {
        self.inner.read().with_edges()
    }

    /// Opens and closes the edges of aggregates, so that the open edges match the desired edges. `moment` is the
    /// position and the time of the changes.
    pub fn settle(&self, view: &dyn StateView, ids: &[AggregateId], moment: Moment) -> Changes {
        self.change(|edges| edges.settle(view, ids, moment))
    }

    /// Replaces the whole graph with the stored graph at a position. Returns the ids of the aggregates that had facts
    /// in the previous graph.
    pub fn replace(&self, edges: Edges, position: u64) -> Vec<AggregateId> {
        let mut inner = self.inner.write();
        self.closed.lock().set_all_stored(position);
        let before = std::mem::replace(&mut *inner, edges);
        before.facts.into_keys().collect()
    }

    /// Changes the edges. Adds each newly closed edge to the list `self.closed` before any read sees the change. The
    /// list keeps these edges at least until they are stored.
    fn change(&self, change: impl FnOnce(&mut Edges) -> Changes) -> Changes {
        let mut edges = self.inner.write();
        let changes = change(&mut edges);
        let mut kept = self.closed.lock();
        changes.edges.iter().filter(|edge| edge.valid_to.is_some()).for_each(|edge| kept.add(edge.clone()));
        changes
    }

    /// Marks each closed edge in `edges` as stored.
    pub fn set_stored(&self, edges: &[Arc<Edge>]) {
        self.closed.lock().set_stored(edges);
    }

    /// Begins a read of the store. Until the read ends, the graph keeps in memory every closed edge that is not stored
    /// when the read begins, and every edge that is closed later.
    pub fn read_closed(&self) -> ClosedRead<'_> {
        ClosedRead::begin(&self.closed)
    }

    /// Replaces the facts of an aggregate with stored facts, without reconciling edges. Returns the facts of enabled
    /// plugins. Only used while another server reconciles edges.
    pub fn set_facts(
        &self,
        view: &dyn StateView,
        id: &str,
        facts: EnrichmentFacts,
        is_enabled: &dyn Fn(&str) -> bool,
    ) -> (AggregateId, Arc<EnrichmentFacts>) {
        let mut edges = self.inner.write();
        edges.facts.remove(id);
        edges.hidden.remove(id);
        edges.restore(view, id, facts, is_enabled)
    }

    /// Replaces edges with their stored versions, which may be closed. Only used while another server reconciles edges.
    pub fn set_edges(&self, stored: Vec<Edge>) {
        let mut edges = self.inner.write();
        for edge in stored {
            let is_same =
                |known: &&Arc<Edge>| known.kind == edge.kind && known.to == edge.to && known.opened == edge.opened;
            if let Some(known) =
                edges.open.outgoing.get(&edge.from).and_then(|known| known.iter().find(is_same)).cloned()
            {
                edges.open.remove(&known);
            }
            match edge.valid_to {
                None => edges.open.add(Arc::new(edge)),
                Some(_) => self.closed.lock().add_stored(Arc::new(edge)),
            }
        }
    }

    /// Returns the approximate size of the graph, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.inner.read().size_bytes() + self.closed.lock().size_bytes()
    }

    /// Returns whether the graph has no facts, including the facts of plugins that are not enabled.
    pub fn is_empty(&self) -> bool {
        let edges = self.inner.read();
        edges.facts.is_empty() && edges.hidden.is_empty()
    }

    pub fn facts(&self, id: &str) -> Option<Arc<EnrichmentFacts>> {
        self.inner.read().facts(id)
    }

    /// Returns the facts to store: the facts of enabled plugins, and the facts of plugins that may be enabled again.
    pub fn stored_facts(&self, id: &str) -> Option<Arc<EnrichmentFacts>> {
        self.inner.read().stored_facts(id)
    }

    /// Returns the ids and facts of all aggregates with facts.
    pub fn all_facts(&self) -> Vec<(AggregateId, Arc<EnrichmentFacts>)> {
        self.inner.read().facts.iter().map(|(id, facts)| (id.clone(), facts.clone())).collect()
    }

    /// Returns the open edges that start at an aggregate.
    pub fn outgoing(&self, id: &str) -> Vec<Arc<Edge>> {
        self.inner.read().open.outgoing.get(id).cloned().unwrap_or_default()
    }

    /// Returns the neighborhood of a node.
    pub fn walk(&self, from: &AggregateId, walk: &Traversal) -> Neighborhood {
        let Ok(found) = self.walk_while(std::slice::from_ref(from), walk, || Ok::<(), Infallible>(()));
        found
    }

    /// Returns the neighborhood of several nodes. `proceed` is called for each visited node and edge. If `proceed`
    /// returns an error, the traversal ends with that error.
    pub fn walk_while<E>(
        &self,
        from: &[AggregateId],
        walk: &Traversal,
        proceed: impl FnMut() -> Result<(), E>,
    ) -> Result<Neighborhood, E> {
        walk::walk_while(&self.inner.read(), from, walk, None, proceed)
    }
}

impl Edges {
    /// Restores the stored facts of an aggregate, and returns the facts of enabled plugins. After all facts and edges
    /// are restored, the caller must call [`Edges::restored`].
    pub fn restore(
        &mut self,
        view: &dyn StateView,
        id: &str,
        facts: EnrichmentFacts,
        is_enabled: &dyn Fn(&str) -> bool,
    ) -> (AggregateId, Arc<EnrichmentFacts>) {
        let known = view.aggregate(id);
        let project_id = known.as_ref().and_then(|aggregate| aggregate.project_id.clone());
        let id = known.map_or_else(|| AggregateId::from(Arc::from(id)), |aggregate| aggregate.id.clone());
        let (facts, hidden) = facts.partition(is_enabled);
        if !hidden.is_empty() {
            self.hidden.insert(id.clone(), Arc::new(hidden));
        }
        if facts.is_empty() {
            return (id, Arc::default());
        }
        for desired in facts.values().flat_map(|plugin_facts| &plugin_facts.desired) {
            for address in Address::of(&desired.edge.to, project_id.as_ref()) {
                self.referrers.entry(address).or_default().insert(id.clone());
            }
            self.addressed.extend(AddressedBy::of(&desired.edge.to));
        }
        let shared = facts.iter().map(|(plugin, plugin_facts)| self.shared(plugin, plugin_facts.clone()));
        let facts: Arc<EnrichmentFacts> = Arc::new(shared.collect());
        self.facts.insert(id.clone(), facts.clone());
        (id, facts)
    }

    /// Restores stored open edges.
    pub fn restore_edges(&mut self, open: impl IntoIterator<Item = Edge>) {
        open.into_iter().for_each(|edge| self.open.add(Arc::new(edge)));
    }

    /// Completes the restoration. Must be called after all stored facts and edges are restored.
    pub fn restored(&mut self, view: &dyn StateView) {
        for by in self.addressed.clone() {
            self.index(view, &by);
        }
    }

    /// Replaces parts of a plugin's facts with equal parts that are already in memory.
    fn shared(&mut self, plugin: &Arc<str>, mut plugin_facts: PluginFacts) -> (Arc<str>, PluginFacts) {
        plugin_facts.derived = self.sharing.facts(&plugin_facts.derived);
        (self.sharing.text(plugin), plugin_facts)
    }

    pub fn facts(&self, id: &str) -> Option<Arc<EnrichmentFacts>> {
        self.facts.get(id).cloned()
    }

    /// Returns the facts of all aggregates with facts.
    pub fn all_facts(&self) -> impl Iterator<Item = (&AggregateId, &Arc<EnrichmentFacts>)> {
        self.facts.iter()
    }

    fn stored_facts(&self, id: &str) -> Option<Arc<EnrichmentFacts>> {
        let (facts, hidden) = (self.facts.get(id), self.hidden.get(id));
        let (Some(facts), Some(hidden)) = (facts, hidden) else { return facts.or(hidden).cloned() };
        let all = facts.iter().chain(hidden.iter());
        Some(Arc::new(all.map(|(plugin, plugin_facts)| (plugin.clone(), plugin_facts.clone())).collect()))
    }

    fn size_bytes(&self) -> usize {
        /// The estimated size of an id and its map entry, in bytes.
        const ENTRY_BYTES: usize = 96;
        let all = self.facts.values().chain(self.hidden.values());
        let facts: usize = all.map(|facts| ENTRY_BYTES + facts.size_bytes()).sum();
        // Each edge is listed twice, at both of its ends.
        let edges: usize =
            self.open.outgoing.values().map(|edges| 2 * ENTRY_BYTES + edges.len() * (size_of::<Edge>() + 32)).sum();
        facts + edges + (self.referrers.len() + self.addresses.len()) * 2 * ENTRY_BYTES
    }

    /// Returns the number of aggregates with facts and the number of open edges.
    pub fn size(&self) -> (u64, u64) {
        (self.facts.len() as u64, self.open.outgoing.values().map(|edges| edges.len() as u64).sum())
    }

    pub fn take(&mut self, view: &dyn StateView, enriched: EnrichedEvent<'_>) -> Changes {
        let EnrichedEvent { event, before, after, found } = enriched;
        let mut changes = Changes::default();
        let mut affected = BTreeSet::new();
        for (plugin, facts) in found {
            if self.find(view, &after.id, &plugin, event, facts) {
                affected.insert(after.id.clone());
                changes.nodes.insert(after.id.clone());
            }
        }
        self.readdress(view, before, after, &mut affected);
        let was_there = before.is_some_and(|before| !before.deleted);
        if was_there == after.deleted {
            affected.insert(after.id.clone());
            affected.extend(self.referrers.get(&Address::Id(after.id.text())).into_iter().flatten().cloned());
        }
        let moment = Moment::of(event);
        for id in affected {
            self.reconcile(view, &id, moment, &mut changes);
        }
        changes
    }

    pub fn settle(&mut self, view: &dyn StateView, ids: &[AggregateId], moment: Moment) -> Changes {
        let mut changes = Changes::default();
        for id in ids {
            self.reconcile(view, id, moment, &mut changes);
        }
        changes
    }

    pub fn with_edges(&self) -> BTreeSet<AggregateId> {
        let desire = |facts: &EnrichmentFacts| facts.values().any(|plugin_facts| !plugin_facts.desired.is_empty());
        let desiring = self.facts.iter().filter(|(_, facts)| desire(facts)).map(|(id, _)| id);
        desiring.chain(self.open.outgoing.keys()).cloned().collect()
    }

    pub fn amend(&mut self, view: &dyn StateView, plugin: &Arc<str>, event: &Event, facts: Facts) -> Changes {
        let mut changes = Changes::default();
        let id = &event.aggregate_id;
        if self.find(view, id, plugin, event, facts) {
            changes.nodes.insert(id.clone());
            self.reconcile(view, id, Moment::of(event), &mut changes);
        }
        changes
    }

    /// Replaces the facts that a plugin found about an aggregate, and updates the indexes of addresses and referrers.
    /// Returns whether the facts changed.
    fn find(&mut self, view: &dyn StateView, id: &AggregateId, plugin: &Arc<str>, event: &Event, facts: Facts) -> bool {
        let known = self.facts.get(id).and_then(|facts| facts.get(plugin));
        let found = PluginFacts::after(known, facts, &event.event_id);
        if known.map_or_else(|| found.is_empty(), |known| *known == found) {
            return false;
        }
        let ways: BTreeSet<AddressedBy> =
            found.desired.iter().filter_map(|desired| AddressedBy::of(&desired.edge.to)).collect();
        for by in ways {
            if !self.addressed.contains(&by) {
                self.index(view, &by);
                self.addressed.insert(by);
            }
        }
        let project_id = view.aggregate(id.as_str()).and_then(|aggregate| aggregate.project_id.clone());
        let addresses = |plugin_facts: &PluginFacts| {
            let targets = plugin_facts.desired.iter().map(|desired| &desired.edge.to);
            targets.flat_map(|target| Address::of(target, project_id.as_ref())).collect::<Vec<_>>()
        };
        let (plugin, found) = self.shared(plugin, found);
        let facts = Arc::make_mut(self.facts.entry(id.clone()).or_default());
        let before = facts.insert(plugin, found);
        let desired: FxHashSet<Address> = facts.values().flat_map(addresses).collect();
        for gone in before.iter().flat_map(addresses).filter(|address| !desired.contains(address)) {
            let referrers = self.referrers.get_mut(&gone);
            if referrers.is_some_and(|referrers| referrers.remove(id) && referrers.is_empty()) {
                self.referrers.remove(&gone);
            }
        }
        for address in desired {
            self.referrers.entry(address).or_default().insert(id.clone());
        }
        true
    }
}
