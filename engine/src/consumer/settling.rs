//! Settling: opens and closes edges because of redefined types and because plugins were enabled or taken out, which
//! happens without an event.
//!
//! A checkpoint contains a digest of the definitions and plugins that the stored edges match. After a crash between two
//! pages, the next start finds the old digest and compares all edges again.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::event_context::FollowerView;
use crate::core::State;
use crate::model::id::AggregateId;
use crate::resident::graph::{Changes, Moment};

/// The number of aggregates whose edges are compared in one commit.
const PAGE: usize = 512;

/// The definitions and plugins that edges match.
#[derive(Debug, Clone)]
pub struct Basis {
    /// A text that is the same while the same desired edges have the same targets.
    pub digest: Arc<str>,
    /// The number of redefinitions that the graph's index of addresses includes.
    redefinitions: u64,
}

impl Basis {
    /// Returns the current definitions and plugins. Must be called before addresses are indexed: an index of newer
    /// definitions is compared once more, an index of older ones would stay.
    pub fn current(state: &State) -> Basis {
        let redefinitions = state.types.redefined().position();
        Basis { digest: digest(state), redefinitions }
    }
}

/// The edges that have yet to be compared with the definitions and plugins.
pub struct Settling {
    state: Arc<State>,
    basis: Basis,
    remaining: BTreeSet<AggregateId>,
    /// Whether the stored checkpoint has another basis.
    is_stale: bool,
}

impl Settling {
    /// Begins with a restored graph, whose addresses were indexed after `basis` was determined. `stored` is the digest
    /// of the stored checkpoint.
    pub fn new(state: &Arc<State>, basis: Basis, stored: Option<&Arc<str>>) -> Settling {
        // The definitions may have changed while the graph was restored.
        let is_stale = stored != Some(&basis.digest) || digest(state) != basis.digest;
        let remaining = if is_stale { state.graph.with_edges() } else { BTreeSet::new() };
        state.settled.remaining.set(remaining.len() as u64);
        Settling { state: state.clone(), basis, remaining, is_stale }
    }

    /// Continues with a graph that was built while a basis held or was followed by another one.
    pub fn begin_at(&mut self, basis: Basis) {
        (self.basis, self.remaining, self.is_stale) = (basis, BTreeSet::new(), false);
    }

    /// Finds the edges that no longer match because types were redefined.
    pub fn look(&mut self) {
        if self.state.types.redefined().position() == self.basis.redefinitions {
            return;
        }
        self.basis = Basis::current(&self.state);
        self.remaining.extend(self.state.graph.readdress_all(&FollowerView::new(&self.state)));
        self.is_stale = true;
    }

    /// Compares the edges of the next aggregates. Returns the changes, or `None` if no edges are left to compare.
    pub fn next_page(&mut self, position: u64) -> Option<Changes> {
        self.state.settled.remaining.set(self.remaining.len() as u64);
        let mut page = Vec::with_capacity(PAGE.min(self.remaining.len()));
        while page.len() < PAGE
            && let Some(id) = self.remaining.pop_first()
        {
            page.push(id);
        }
        let moment = Moment { position, at_ms: self.state.clock.now_ms() };
        (!page.is_empty()).then(|| self.state.graph.settle(&FollowerView::new(&self.state), &page, moment))
    }

    /// Returns the basis for the checkpoint if it has changed and all edges match it.
    pub fn take_basis(&mut self) -> Option<Arc<str>> {
        std::mem::take(&mut self.is_stale).then(|| self.basis.digest.clone())
    }

    /// Reports that all edges match the basis and are stored.
    pub fn report(&self) {
        self.state.settled.redefinitions.advance(self.basis.redefinitions);
    }
}

fn digest(state: &State) -> Arc<str> {
    let types = state.types.all();
    let mut parts: Vec<String> = types
        .values()
        .map(|definition| {
            format!("{}/{}/{}", definition.type_name, definition.revision, definition.label_fields().join("/"))
        })
        .chain(state.plugins.indexes().map(|plugin| state.plugins.name(plugin).to_string()))
        .collect();
    parts.sort_unstable();
    Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.join("\n").as_bytes()).to_string().into()
}
