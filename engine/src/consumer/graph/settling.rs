//! Settling: opens and closes edges after types were redefined or plugins were enabled or disabled. No event in the log
//! causes these changes.
//!
//! A checkpoint contains a digest of the definitions and plugins that the stored edges match. The edges are compared in
//! pages of aggregates. After a crash between two pages, the next start finds the old digest and compares all edges
//! again.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::consumer::event_context::FollowerView;
use crate::model::definition::Definition;
use crate::model::id::AggregateId;
use crate::resident::graph::{Changes, Moment};
use crate::state::State;
use crate::state::types::Definitions;

/// The number of aggregates whose edges are compared in one commit.
const PAGE: usize = 512;

/// The state of the type definitions and plugins with which the open edges are compared.
#[derive(Debug, Clone)]
pub struct Basis {
    /// A digest of the definitions and plugins. If the stored checkpoint has the same digest, the stored edges need no
    /// comparison.
    pub digest: Arc<str>,
    definitions: Arc<Definitions>,
    /// The number of redefinitions when the basis was determined. The graph's index of addresses includes the effects
    /// of these redefinitions.
    pub redefinitions: u64,
}

impl Basis {
    /// Returns the current definitions and plugins. Must be called before addresses are indexed: if the definitions
    /// change between the two steps, the edges are then compared once more. In the opposite order, this change would be
    /// missed.
    pub fn current(state: &State) -> Basis {
        let redefinitions = state.types.redefined.position();
        let definitions = state.types.all();
        Basis { digest: digest(state, &definitions), definitions, redefinitions }
    }

    /// Returns whether edges that match `self` may differ from the edges that `later` requires. A new type changes no
    /// edge.
    fn differs(&self, later: &Basis) -> bool {
        let is_same = |before: &Definition, after: &Definition| {
            before.revision == after.revision && before.label_fields() == after.label_fields()
        };
        let mut before = self.definitions.iter();
        self.redefinitions != later.redefinitions
            || before.any(|(name, before)| later.definitions.get(name).is_none_or(|after| !is_same(before, after)))
    }
}

/// The edges that still have to be compared with the current definitions and plugins.
pub struct RemainingEdges {
    state: Arc<State>,
    basis: Basis,
    remaining: BTreeSet<AggregateId>,
    /// Whether the stored checkpoint may belong to other definitions or plugins than `basis`.
    is_stale: bool,
}

impl RemainingEdges {
    /// Finds the edges to compare in a restored graph. The caller must determine `basis` before the addresses of the
    /// graph are indexed. `stored` is the digest in the stored checkpoint.
    pub fn new(state: &Arc<State>, basis: Basis, stored: Option<&Arc<str>>) -> RemainingEdges {
        // The definitions may have changed while the graph was restored.
        let is_stale = stored != Some(&basis.digest) || Basis::current(state).digest != basis.digest;
        let remaining = if is_stale { state.graph.with_edges() } else { BTreeSet::new() };
        state.settled.remaining.set(remaining.len() as u64);
        RemainingEdges { state: state.clone(), basis, remaining, is_stale }
    }

    /// Sets the basis after the graph was rebuilt. `basis` contains the definitions and plugins at the start of the
    /// rebuild, which the rebuilt edges match. No edges remain to be compared.
    pub fn begin_at(&mut self, basis: Basis) {
        (self.basis, self.remaining, self.is_stale) = (basis, BTreeSet::new(), false);
    }

    /// If types have been redefined, finds the edges that may no longer match the new definitions.
    pub fn refresh(&mut self) {
        let types = &self.state.types;
        let is_current = types.redefined.position() == self.basis.redefinitions;
        if is_current && Arc::ptr_eq(&types.all(), &self.basis.definitions) {
            return;
        }
        let before = std::mem::replace(&mut self.basis, Basis::current(&self.state));
        if before.differs(&self.basis) {
            self.remaining.extend(self.state.graph.readdress_all(&FollowerView::new(&self.state)));
            self.is_stale = true;
        }
        self.is_stale |= before.digest != self.basis.digest;
    }

    /// Updates the graph after all aggregates were folded again: indexes the addresses of the aggregates again, and
    /// finds the edges to compare.
    pub fn readdress(&mut self) {
        self.basis = Basis::current(&self.state);
        self.remaining.extend(self.state.graph.readdress_all(&FollowerView::new(&self.state)));
        self.is_stale = true;
    }

    /// Compares the edges of the next aggregates. Returns the changes, or `None` if no edges are left to compare.
    pub fn next_page(&mut self, position: u64) -> Option<Changes> {
        self.state.settled.remaining.set(self.remaining.len() as u64);
        let page: Vec<_> = std::iter::from_fn(|| self.remaining.pop_first()).take(PAGE).collect();
        let moment = Moment { position, at_ms: self.state.clock.now_ms() };
        (!page.is_empty()).then(|| self.state.graph.settle(&FollowerView::new(&self.state), &page, moment))
    }

    /// Returns the digest of the definitions and plugins, which the caller stores in the checkpoint. Returns `None` if
    /// the stored digest needs no change. Called when all edges match the definitions and plugins.
    pub fn take_basis(&mut self) -> Option<Arc<str>> {
        std::mem::take(&mut self.is_stale).then(|| self.basis.digest.clone())
    }

    /// Publishes the number of type redefinitions that the stored edges reflect. Must only be called when all edges
    /// match the basis and are stored.
    pub fn report(&self) {
        self.state.settled.redefinitions.advance(self.basis.redefinitions);
    }
}

fn digest(state: &State, definitions: &Definitions) -> Arc<str> {
    let mut parts: Vec<String> = definitions
        .values()
        .map(|definition| {
            format!("{}/{}/{}", definition.type_name, definition.revision, definition.label_fields().join("/"))
        })
        .chain(state.plugins.indexes().map(|plugin| state.plugins.name(plugin).to_string()))
        .collect();
    parts.sort_unstable();
    Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.join("\n").as_bytes()).to_string().into()
}
