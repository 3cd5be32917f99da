//! Opens and closes edges: a desired edge is open while its source and its target exist. If only the source exists, the
//! link of the edge is broken.
//!
//! The target of an edge is the aggregate with the id that the edge names, the oldest matching aggregate of the same
//! project, or the page that one of the edge's references names (`model/page.rs`). An event that creates the target
//! opens the edge, and an event that removes the target closes the edge. Edges therefore do not depend on the order of
//! writes.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::{Changes, Edges, Moment, StateView};
use crate::model::aggregate::Aggregate;
use crate::model::facts::Target;
use crate::model::graph::{Address, AddressedBy, DesiredEdge, Edge, addresses};
use crate::model::id::AggregateId;
use crate::model::page;

/// The maximum number of pages that are compared with a reference. If more pages have the address in the reference,
/// only the oldest of these pages are compared.
const MAX_COMPARED: usize = 256;

/// The node that a target refers to.
enum ResolvedTarget {
    Node(AggregateId),
    /// The aggregate at which the edge starts. An aggregate has no edge to itself.
    Itself,
}

/// The edges that should be open from an aggregate, and the aggregate's broken links.
#[derive(Default)]
struct DesiredLinks {
    /// The edges, each with the plugin that requests it.
    edges: IndexMap<(Arc<str>, AggregateId), (DesiredEdge, Arc<str>)>,
    /// The broken links of each plugin.
    broken: Vec<(Arc<str>, Vec<Arc<str>>)>,
}

impl Edges {
    /// Indexes the addresses of all aggregates for one way of addressing nodes.
    pub(super) fn index(&mut self, view: &dyn StateView, by: &AddressedBy) {
        for aggregate in view.aggregates() {
            for address in addresses_of(view, &aggregate, by) {
                self.addresses.entry(address).or_default().insert(aggregate.first_position, aggregate.id.clone());
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
        let changed = before.iter().filter(|(address, answering)| self.addresses.get(address) != Some(answering));
        let changed = changed.map(|(address, _)| address);
        let new = self.addresses.keys().filter(|address| !before.contains_key(address));
        changed.chain(new).filter_map(|address| self.referrers.get(address)).flatten().cloned().collect()
    }

    /// Updates the addresses of an aggregate. Adds to `affected` the aggregates whose edges may now have other targets:
    /// the aggregates that refer to a changed address and, if the path or the front matter of a page has changed, the
    /// page itself and the aggregates that refer to any of its addresses.
    pub(super) fn readdress(
        &mut self,
        view: &dyn StateView,
        before: Option<&Aggregate>,
        after: &Aggregate,
        affected: &mut BTreeSet<AggregateId>,
    ) {
        for by in &self.addressed {
            let is_moved = match before {
                Some(before) if *by == AddressedBy::Page => !page::is_same(&before.state, &after.state),
                _ => false,
            };
            if is_moved {
                // The page that a reference names also depends on the folder of the page that contains the reference.
                affected.insert(after.id.clone());
            }
            let old = before.map(|before| addresses_of(view, before, by)).unwrap_or_default();
            let new = addresses_of(view, after, by);
            // Pages with the same address can still be different pages, such as `a.md` and `a/index.md`.
            for old in old.iter().filter(|old| is_moved || !new.contains(old)) {
                let answering = self.addresses.get_mut(old);
                if answering.is_some_and(|all| all.remove(&after.first_position).is_some() && all.is_empty()) {
                    self.addresses.remove(old);
                }
                affected.extend(self.referrers.get(old).into_iter().flatten().cloned());
            }
            for new in new.into_iter().filter(|new| is_moved || !old.contains(new)) {
                affected.extend(self.referrers.get(&new).into_iter().flatten().cloned());
                self.addresses.entry(new).or_default().insert(after.first_position, after.id.clone());
            }
        }
    }

    /// Opens and closes the edges that start at an aggregate, so that the open edges match the aggregate's desired
    /// edges and the targets of these edges. Updates the aggregate's broken links, and adds all changes to `changes`.
    pub(super) fn reconcile(&mut self, view: &dyn StateView, id: &AggregateId, moment: Moment, changes: &mut Changes) {
        let DesiredLinks { edges: mut desired_edges, broken } = self.desired(view, id);
        if self.set_broken(id, broken) {
            changes.nodes.insert(id.clone());
        }
        for edge in self.open.outgoing.get(id).cloned().unwrap_or_default() {
            match desired_edges.swap_remove(&(edge.kind.clone(), edge.to.clone())) {
                None => {
                    self.open.remove(&edge);
                    let valid_to = Some(moment.at_ms.max(edge.valid_from));
                    let closed = Some(moment.position);
                    changes.edges.push(Arc::new(Edge { valid_to, closed, ..Edge::clone(&edge) }));
                }
                Some((desired, plugin)) if desired.edge.weight != edge.weight || plugin != edge.plugin => {
                    let weight = desired.edge.weight;
                    let changed = Arc::new(Edge { weight, plugin, event_id: desired.event_id, ..Edge::clone(&edge) });
                    self.open.remove(&edge);
                    self.open.add(changed.clone());
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
            self.open.add(edge.clone());
            changes.edges.push(edge);
        }
    }

    /// Returns the edges that should be open from an aggregate, and the aggregate's broken links. If several desired
    /// edges have the same kind and target node, the result contains the edge with the largest weight.
    fn desired(&self, view: &dyn StateView, id: &AggregateId) -> DesiredLinks {
        let mut found = DesiredLinks::default();
        let Some(from) = view.aggregate(id.as_str()).filter(|from| !from.deleted) else { return found };
        for (plugin, plugin_facts) in self.facts.get(id).into_iter().flat_map(|facts| facts.iter()) {
            let mut broken = Vec::new();
            for desired in &plugin_facts.desired {
                let to = match self.resolve(view, &desired.edge.to, &from) {
                    Some(ResolvedTarget::Node(to)) => to,
                    Some(ResolvedTarget::Itself) => continue,
                    None => {
                        broken.extend(desired.edge.link.clone());
                        continue;
                    }
                };
                let heavier = |known: &(DesiredEdge, Arc<str>)| desired.edge.weight > known.0.edge.weight;
                let key = (desired.edge.kind.clone(), to);
                if found.edges.get(&key).is_none_or(heavier) {
                    found.edges.insert(key, (desired.clone(), plugin.clone()));
                }
            }
            if !broken.is_empty() {
                found.broken.push((plugin.clone(), broken));
            }
        }
        found
    }

    /// Replaces the broken links of an aggregate. Returns whether the broken links have changed.
    fn set_broken(&mut self, id: &AggregateId, broken: Vec<(Arc<str>, Vec<Arc<str>>)>) -> bool {
        let Some(facts) = self.facts.get_mut(id) else { return false };
        let of = |plugin: &str| {
            broken.iter().find(|(name, _)| **name == *plugin).map_or(&[][..], |(_, links)| links.as_slice())
        };
        if facts.iter().all(|(plugin, plugin_facts)| *plugin_facts.broken == *of(plugin)) {
            return false;
        }
        for (plugin, plugin_facts) in Arc::make_mut(facts).iter_mut() {
            if *plugin_facts.broken != *of(plugin) {
                plugin_facts.broken = of(plugin).into();
            }
        }
        true
    }

    /// Returns the node that matches a target. For an id, this is the aggregate with the id. For a page, this is the
    /// page that the first matching reference names in the project of `from`. For a label or a field, this is the
    /// oldest matching aggregate in the project of `from`. The aggregate `from` itself is chosen only if no other
    /// aggregate matches the label or the field.
    fn resolve(&self, view: &dyn StateView, target: &Target, from: &Aggregate) -> Option<ResolvedTarget> {
        match target {
            Target::Id(id) => {
                let found = view.aggregate(id).filter(|found| !found.deleted)?;
                Some(if found.id == from.id { ResolvedTarget::Itself } else { ResolvedTarget::Node(found.id.clone()) })
            }
            Target::Label(_) | Target::Field(..) => {
                let address = Address::of(target, from.project_id.as_ref()).pop()?;
                let is_near = |id: &&AggregateId| {
                    view.aggregate(id.as_str()).is_some_and(|found| found.project_id == from.project_id)
                };
                let mut near = self.addresses.get(&address)?.values().filter(is_near).peekable();
                near.peek()?;
                Some(near.find(|id| **id != from.id).cloned().map_or(ResolvedTarget::Itself, ResolvedTarget::Node))
            }
            Target::Page(references) => references.iter().find_map(|reference| self.page(view, reference, from)),
        }
    }

    /// Returns the page that a reference names. Returns `None` if no page matches, or if several pages match a
    /// reference that must match only one page.
    fn page(&self, view: &dyn StateView, reference: &str, from: &Aggregate) -> Option<ResolvedTarget> {
        let address = Address::Page(from.project_id.clone(), page::key_of(reference));
        let pages = self.addresses.get(&address)?.values().take(MAX_COMPARED);
        let mut ranked = pages.filter_map(|id| {
            let page = view.aggregate(id.as_str())?;
            Some((page::rank(&page.state, reference, &from.state)?, id))
        });
        let (_, id) = if page::must_be_only(reference) {
            let only = ranked.next()?;
            if ranked.next().is_some() {
                return None;
            }
            only
        } else {
            // Among pages with the same rank, the oldest page is the target.
            ranked.min_by(|(a, _), (b, _)| a.cmp(b))?
        };
        Some(if *id == from.id { ResolvedTarget::Itself } else { ResolvedTarget::Node(id.clone()) })
    }
}

fn addresses_of(view: &dyn StateView, aggregate: &Aggregate, by: &AddressedBy) -> Vec<Address> {
    let definition = view.definition(&aggregate.aggregate_type);
    definition.map(|definition| addresses(aggregate, &definition, by)).unwrap_or_default()
}
