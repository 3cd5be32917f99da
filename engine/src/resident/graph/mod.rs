//! The knowledge graph of an open workspace, in memory: enrichment facts, open edges in both directions, and the
//! aggregates that refer to targets.

mod reconcile;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHashMap;

pub use walk::{Kinds, Neighbourhood, Past, Walk};

use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::facts::{Facts, Target};
use crate::model::graph::{AddressedBy, Edge, EnrichmentFacts, PluginFacts};
use crate::model::id::AggregateId;
use crate::resident::sharing::Sharing;

/// The graph at the follower's position.
#[derive(Default)]
pub struct Graph {
    inner: RwLock<Edges>,
}

/// Enrichment facts and the edges that follow from them.
#[derive(Default)]
pub struct Edges {
    facts: FxHashMap<AggregateId, Arc<EnrichmentFacts>>,
    /// The aggregates with a desired edge to each target.
    referrers: FxHashMap<Target, BTreeSet<AggregateId>>,
    /// The ways in which desired edges address nodes. Only these are indexed.
    addressed: BTreeSet<AddressedBy>,
    /// The aggregates that each target names, by the position of their first event.
    addresses: FxHashMap<Target, BTreeMap<u64, AggregateId>>,
    outgoing: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
    incoming: FxHashMap<AggregateId, Vec<Arc<Edge>>>,
    sharing: Sharing,
}

/// The aggregates as the log's follower sees them, after the event that it has reached.
pub trait StateView {
    fn aggregate(&self, id: &str) -> Option<Arc<Aggregate>>;
    fn definition(&self, type_name: &str) -> Option<Arc<Definition>>;
    fn aggregates(&self) -> Box<dyn Iterator<Item = Arc<Aggregate>> + '_>;
}

/// An event, the aggregate before and after it, and the facts that plugins found.
pub struct EnrichedEvent<'a> {
    pub event: &'a Event,
    pub before: Option<&'a Aggregate>,
    pub after: &'a Aggregate,
    pub found: Vec<(Arc<str>, Facts)>,
}

/// The changes that an event made to the graph.
#[derive(Debug, Default)]
pub struct Changes {
    /// Aggregates whose facts changed.
    pub nodes: BTreeSet<AggregateId>,
    /// Edges that were opened, closed or changed in weight, in their new form.
    pub edges: Vec<Arc<Edge>>,
}

impl Graph {
    /// Applies an event.
    pub fn take(&self, view: &dyn StateView, enriched: EnrichedEvent<'_>) -> Changes {
        self.write().take(view, enriched)
    }

    /// Applies facts that a plugin found after its event was applied. `position` is the follower's position.
    pub fn amend(
        &self,
        view: &dyn StateView,
        plugin: &Arc<str>,
        event: &Event,
        facts: Facts,
        position: u64,
    ) -> Changes {
        // Edges opened here get the follower's position. With the event's own position they would look like edges that
        // the event opened when it was applied and that have been closed since.
        let event = Event { position, ..event.clone() };
        self.write().amend(view, plugin, &event, facts)
    }

    /// Replaces the graph. Returns the aggregates that had facts in the old graph.
    pub fn replace(&self, edges: Edges) -> Vec<AggregateId> {
        let before = std::mem::replace(&mut *self.write(), edges);
        before.facts.into_keys().collect()
    }

    /// Returns the approximate size of the graph in bytes.
    pub fn size_bytes(&self) -> usize {
        self.read().size_bytes()
    }

    /// Returns whether no aggregate has facts.
    pub fn is_empty(&self) -> bool {
        self.read().facts.is_empty()
    }

    pub fn facts(&self, id: &str) -> Option<Arc<EnrichmentFacts>> {
        self.read().facts(id)
    }

    /// Returns every aggregate that has facts.
    pub fn all_facts(&self) -> Vec<(AggregateId, Arc<EnrichmentFacts>)> {
        self.read().facts.iter().map(|(id, facts)| (id.clone(), facts.clone())).collect()
    }

    /// Returns the open edges that start at an aggregate.
    pub fn outgoing(&self, id: &str) -> Vec<Arc<Edge>> {
        self.read().outgoing.get(id).cloned().unwrap_or_default()
    }

    /// Returns the neighbourhood of a node.
    pub fn walk(&self, from: &AggregateId, walk: &Walk) -> Neighbourhood {
        walk::walk(&self.read(), from, walk)
    }

    /// Returns the neighbourhood of several nodes, now or in the past. `proceed` is called for each node and each edge
    /// visited; an error from it ends the walk.
    pub fn walk_while<E>(
        &self,
        from: &[AggregateId],
        walk: &Walk,
        past: Option<&Past>,
        proceed: impl FnMut() -> Result<(), E>,
    ) -> Result<Neighbourhood, E> {
        walk::walk_while(&self.read(), from, walk, past, proceed)
    }

    // A writer that panicked may have left an edge in one direction only; a rebuild repairs that.
    fn read(&self) -> RwLockReadGuard<'_, Edges> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Edges> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Edges {
    /// Restores the stored facts of an aggregate. Call [`Edges::restored`] after the last one.
    pub fn restore(
        &mut self,
        view: &dyn StateView,
        id: &str,
        facts: EnrichmentFacts,
    ) -> (AggregateId, Arc<EnrichmentFacts>) {
        let known = view.aggregate(id).map(|aggregate| aggregate.id.clone());
        let id = known.unwrap_or_else(|| AggregateId::from(Arc::from(id)));
        for desired in facts.values().flat_map(|plugin_facts| &plugin_facts.desired) {
            self.referrers.entry(desired.edge.to.clone()).or_default().insert(id.clone());
            self.addressed.extend(AddressedBy::of(&desired.edge.to));
        }
        let shared = facts.iter().map(|(plugin, plugin_facts)| self.shared(plugin, plugin_facts.clone()));
        let facts: Arc<EnrichmentFacts> = Arc::new(shared.collect());
        self.facts.insert(id.clone(), facts.clone());
        (id, facts)
    }

    /// Restores stored open edges.
    pub fn restore_edges(&mut self, open: impl IntoIterator<Item = Edge>) {
        open.into_iter().for_each(|edge| self.link(Arc::new(edge)));
    }

    /// Completes the restoration, after all stored facts and edges are restored.
    pub fn restored(&mut self, view: &dyn StateView) {
        for by in self.addressed.clone() {
            self.index(view, &by);
        }
    }

    /// Replaces parts of a plugin's facts with equal parts that are held already.
    fn shared(&mut self, plugin: &Arc<str>, mut plugin_facts: PluginFacts) -> (Arc<str>, PluginFacts) {
        plugin_facts.derived = self.sharing.facts(&plugin_facts.derived);
        (self.sharing.text(plugin), plugin_facts)
    }

    pub fn facts(&self, id: &str) -> Option<Arc<EnrichmentFacts>> {
        self.facts.get(id).cloned()
    }

    fn size_bytes(&self) -> usize {
        /// An id and its entry in a map.
        const ENTRY_BYTES: usize = 96;
        let facts: usize = self.facts.values().map(|facts| ENTRY_BYTES + facts.size_bytes()).sum();
        // An edge is listed at both of its ends.
        let edges: usize =
            self.outgoing.values().map(|edges| 2 * ENTRY_BYTES + edges.len() * (size_of::<Edge>() + 32)).sum();
        facts + edges + (self.referrers.len() + self.addresses.len()) * 2 * ENTRY_BYTES
    }

    /// Returns the number of aggregates with facts and the number of open edges.
    pub fn size(&self) -> (u64, u64) {
        (self.facts.len() as u64, self.outgoing.values().map(|edges| edges.len() as u64).sum())
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
            affected.extend(self.referrers.get(&Target::Id(after.id.text())).into_iter().flatten().cloned());
        }
        for id in affected {
            self.reconcile(view, &id, event, &mut changes);
        }
        changes
    }

    pub fn amend(&mut self, view: &dyn StateView, plugin: &Arc<str>, event: &Event, facts: Facts) -> Changes {
        let mut changes = Changes::default();
        let id = &event.aggregate_id;
        if self.find(view, id, plugin, event, facts) {
            changes.nodes.insert(id.clone());
            self.reconcile(view, id, event, &mut changes);
        }
        changes
    }

    /// Replaces what a plugin found about an aggregate. Returns whether it changed.
    fn find(&mut self, view: &dyn StateView, id: &AggregateId, plugin: &Arc<str>, event: &Event, facts: Facts) -> bool {
        let known = self.facts.get(id).and_then(|facts| facts.get(plugin));
        let found = PluginFacts::after(known, facts, &event.event_id);
        if known.map_or_else(|| found.is_empty(), |known| *known == found) {
            return false;
        }
        let targets: BTreeSet<Target> = found.desired.iter().map(|desired| desired.edge.to.clone()).collect();
        let (plugin, found) = self.shared(plugin, found);
        let facts = Arc::make_mut(self.facts.entry(id.clone()).or_default());
        let before = facts.insert(plugin, found);
        let is_desired = |target: &Target| {
            facts.values().any(|plugin_facts| plugin_facts.desired.iter().any(|desired| desired.edge.to == *target))
        };
        for gone in before.iter().flat_map(|before| &before.desired).filter(|desired| !is_desired(&desired.edge.to)) {
            if let Some(referrers) = self.referrers.get_mut(&gone.edge.to) {
                referrers.remove(id);
                if referrers.is_empty() {
                    self.referrers.remove(&gone.edge.to);
                }
            }
        }
        for target in targets {
            if let Some(by) = AddressedBy::of(&target).filter(|by| !self.addressed.contains(by)) {
                self.index(view, &by);
                self.addressed.insert(by);
            }
            self.referrers.entry(target).or_default().insert(id.clone());
        }
        true
    }
}
