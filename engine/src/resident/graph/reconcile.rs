//! Opens and closes edges: a desired edge is open while its target exists.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::{Changes, Edges, Moment, StateView};
use crate::model::aggregate::Aggregate;
use crate::model::facts::Target;
use crate::model::graph::{AddressedBy, DesiredEdge, Edge, address};
use crate::model::id::AggregateId;

impl Edges {
    /// Indexes the addresses of all aggregates for one way of addressing nodes.
    pub(super) fn index(&mut self, view: &dyn StateView, by: &AddressedBy) {
        for aggregate in view.aggregates() {
            if let Some(target) = address_of(view, &aggregate, by) {
                self.addresses.entry(target).or_default().insert(aggregate.first_position, aggregate.id.clone());
            }
        }
    }

    /// Indexes the addresses of all aggregates again. Returns the aggregates that refer to a changed address.
    ///
    /// The open edges match the previous index, even if that index was built with older definitions. Comparing the two
    /// indexes therefore finds every edge that may no longer match.
    pub(super) fn readdress_all(&mut self, view: &dyn StateView) -> BTreeSet<AggregateId> {
        let before = std::mem::take(&mut self.addresses);
        for by in self.addressed.clone() {
            self.index(view, &by);
        }
        let changed = before.iter().filter(|(target, answering)| self.addresses.get(target) != Some(answering));
        let changed = changed.map(|(target, _)| target);
        let new = self.addresses.keys().filter(|target| !before.contains_key(target));
        changed.chain(new).filter_map(|target| self.referrers.get(target)).flatten().cloned().collect()
    }

    /// Updates the addresses of an aggregate. Adds the aggregates that refer to a changed address to `affected`.
    pub(super) fn readdress(
        &mut self,
        view: &dyn StateView,
        before: Option<&Aggregate>,
        after: &Aggregate,
        affected: &mut BTreeSet<AggregateId>,
    ) {
        for by in &self.addressed {
            let old = before.and_then(|before| address_of(view, before, by));
            let new = address_of(view, after, by);
            if old == new {
                continue;
            }
            if let Some(old) = old {
                if let Some(answering) = self.addresses.get_mut(&old) {
                    answering.remove(&after.first_position);
                    if answering.is_empty() {
                        self.addresses.remove(&old);
                    }
                }
                affected.extend(self.referrers.get(&old).into_iter().flatten().cloned());
            }
            if let Some(new) = new {
                affected.extend(self.referrers.get(&new).into_iter().flatten().cloned());
                self.addresses.entry(new).or_default().insert(after.first_position, after.id.clone());
            }
        }
    }

    /// Opens and closes the edges that start at an aggregate, so that they match its desired edges and their targets.
    pub(super) fn reconcile(&mut self, view: &dyn StateView, id: &AggregateId, moment: Moment, changes: &mut Changes) {
        let mut desired_edges = self.desired_edges(view, id);
        for edge in self.outgoing.get(id).cloned().unwrap_or_default() {
            match desired_edges.swap_remove(&(edge.kind.clone(), edge.to.clone())) {
                None => {
                    self.unlink(&edge);
                    let valid_to = Some(moment.at_ms.max(edge.valid_from));
                    let closed = Some(moment.position);
                    changes.edges.push(Arc::new(Edge { valid_to, closed, ..Edge::clone(&edge) }));
                }
                Some((desired, plugin)) if desired.edge.weight != edge.weight || plugin != edge.plugin => {
                    let weight = desired.edge.weight;
                    let changed = Arc::new(Edge { weight, plugin, event_id: desired.event_id, ..Edge::clone(&edge) });
                    self.unlink(&edge);
                    self.link(changed.clone());
                    changes.edges.push(changed);
                }
                Some(_) => {}
            }
        }
        desired_edges.sort_unstable_keys();
        for ((kind, to), (desired, plugin)) in desired_edges {
            let edge = Arc::new(Edge {
                from: id.clone(),
                kind,
                to,
                weight: desired.edge.weight,
                plugin,
                event_id: desired.event_id,
                opened: moment.position,
                valid_from: moment.at_ms,
                valid_to: None,
                closed: None,
            });
            self.link(edge.clone());
            changes.edges.push(edge);
        }
    }

    /// Returns the edges that start at an aggregate and should be open. Of several desired edges with the same kind and
    /// target node, the one with the largest weight counts.
    fn desired_edges(
        &self,
        view: &dyn StateView,
        id: &AggregateId,
    ) -> IndexMap<(Arc<str>, AggregateId), (DesiredEdge, Arc<str>)> {
        let mut desired_edges: IndexMap<(Arc<str>, AggregateId), (DesiredEdge, Arc<str>)> = IndexMap::new();
        let Some(from) = view.aggregate(id.as_str()).filter(|from| !from.deleted) else { return desired_edges };
        for (plugin, plugin_facts) in self.facts.get(id).into_iter().flat_map(|facts| facts.iter()) {
            for desired in &plugin_facts.desired {
                let Some(to) = self.resolve(view, &desired.edge.to, &from) else { continue };
                let heavier = |known: &(DesiredEdge, Arc<str>)| desired.edge.weight > known.0.edge.weight;
                let key = (desired.edge.kind.clone(), to);
                if desired_edges.get(&key).is_none_or(heavier) {
                    desired_edges.insert(key, (desired.clone(), plugin.clone()));
                }
            }
        }
        desired_edges
    }

    /// Returns the node that matches a target: the oldest matching aggregate in the project of `from`, other than
    /// `from` itself.
    fn resolve(&self, view: &dyn StateView, target: &Target, from: &Aggregate) -> Option<AggregateId> {
        if let Target::Id(id) = target {
            let found = view.aggregate(id).filter(|found| !found.deleted && found.id != from.id)?;
            return Some(found.id.clone());
        }
        let mut answering = self.addresses.get(target)?.values().filter(|id| **id != from.id);
        let near =
            |id: &&AggregateId| view.aggregate(id.as_str()).is_some_and(|found| found.project_id == from.project_id);
        answering.find(near).cloned()
    }

    pub(super) fn link(&mut self, edge: Arc<Edge>) {
        self.outgoing.entry(edge.from.clone()).or_default().push(edge.clone());
        self.incoming.entry(edge.to.clone()).or_default().push(edge);
    }

    pub(super) fn unlink(&mut self, edge: &Arc<Edge>) {
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

fn address_of(view: &dyn StateView, aggregate: &Aggregate, by: &AddressedBy) -> Option<Target> {
    let definition = view.definition(&aggregate.aggregate_type)?;
    address(aggregate, &definition, by)
}
