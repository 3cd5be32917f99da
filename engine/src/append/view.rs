//! The state that decisions about a batch of events are based on.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::append::slugs::{ChangedSlugs, slug_of};
use crate::error::{Error, ErrorCode, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::PROJECT;
use crate::model::definition::Definition;
use crate::model::id::AggregateId;
use crate::state::State;
use crate::state::plugin_host::PluginHost;
use crate::state::types::Definitions;

/// The workspace's state after the staged part of the batch. Decisions are made against this state.
pub struct View<'a> {
    pub(super) state: &'a State,
    pub(super) definitions: &'a Definitions,
    pub(super) position: u64,
    pub(super) changed: FxHashMap<AggregateId, Arc<Aggregate>>,
    /// The ids of the changed aggregates, in the order of their first change. New aggregates are published in this
    /// order.
    pub(super) order: Vec<AggregateId>,
    slugs: ChangedSlugs,
}

impl<'a> View<'a> {
    /// Creates the view before the first event of a batch.
    pub(super) fn new(state: &'a State, definitions: &'a Definitions, position: u64) -> View<'a> {
        let (changed, order, slugs) = Default::default();
        View { state, definitions, position, changed, order, slugs }
    }

    pub fn aggregate(&self, id: &str) -> Option<Arc<Aggregate>> {
        self.changed.get(id).cloned().or_else(|| self.state.folded.get(id))
    }

    /// Returns the aggregate with this type and id. Fails if there is none, or if the aggregate is deleted.
    pub fn live(&self, aggregate_type: &str, id: &str) -> Result<Arc<Aggregate>> {
        let found = self.aggregate(id).filter(|found| &*found.aggregate_type == aggregate_type && !found.deleted);
        found.ok_or_else(|| Error::not_found(aggregate_type, id))
    }

    /// Sets the state of an aggregate after an event. Returns the state that an earlier event of the batch has set.
    pub(super) fn change(&mut self, id: &AggregateId, after: Arc<Aggregate>) -> Option<Arc<Aggregate>> {
        let View { changed, slugs, .. } = self;
        slugs.record(&after, |id, slug| changed.get(id).is_some_and(|found| slug_of(found) == Some(slug)));
        changed.insert(id.clone(), after)
    }

    pub fn definition(&self, type_name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(type_name)
    }

    /// Returns the workspace's plugins.
    pub fn plugins(&self) -> &'a PluginHost {
        &self.state.plugins
    }

    /// Returns the aggregate with this slug within a type and project.
    pub fn by_slug(&self, aggregate_type: &str, project_id: Option<&str>, slug: &str) -> Option<Arc<Aggregate>> {
        let has = |aggregate: &&Arc<Aggregate>| {
            &*aggregate.aggregate_type == aggregate_type
                && aggregate.project_id.as_deref() == project_id
                && slug_of(aggregate) == Some(slug)
        };
        let resident = || {
            let ids = self.state.folded.by_slug(aggregate_type, project_id, slug);
            ids.into_iter().filter(|id| !self.changed.contains_key(id)).find_map(|id| self.aggregate(id.as_str()))
        };
        let changed = self.slugs.candidates(slug).iter().filter_map(|id| self.changed.get(id)).find(has);
        changed.cloned().or_else(resident)
    }

    /// Fails with `code` if the number of aggregates of a type has reached `most`, the limit of the plan. `None` means
    /// no limit. Scans all aggregates.
    pub fn check_count(&self, aggregate_type: &str, most: Option<u64>, code: ErrorCode) -> Result<()> {
        let Some(most) = most.filter(|most| self.count(aggregate_type) >= *most) else { return Ok(()) };
        Err(Error::invalid_with_code(code, format!("the plan allows at most {most} {aggregate_type}s")))
    }

    /// Returns the number of aggregates of a type that are not deleted. Scans all aggregates.
    fn count(&self, aggregate_type: &str) -> u64 {
        let is_one = |found: &&Arc<Aggregate>| &*found.aggregate_type == aggregate_type && !found.deleted;
        let snapshot = self.state.folded.snapshot();
        let resident = snapshot.iter().filter(is_one).filter(|found| !self.changed.contains_key(&found.id));
        (resident.count() + self.changed.values().filter(is_one).count()) as u64
    }

    /// Returns the id of the project with this id or slug.
    pub fn project_id(&self, project: &str) -> Option<Arc<str>> {
        let by_id = self.aggregate(project).filter(|found| &*found.aggregate_type == PROJECT && !found.deleted);
        by_id.or_else(|| self.by_slug(PROJECT, None, project)).map(|found| found.id.text())
    }
}
