//! Loads a workspace's state from the store, and applies the events and definitions that other processes write to the
//! store.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use super::admission::Admission;
use super::batches::BATCH;
use super::call_counts::CallCounts;
use super::deadlines::Deadlines;
use super::folded_states::FoldedStates;
use super::leadership::Leadership;
use super::pages::PageCache;
use super::plugin_host::PluginHost;
use super::presence::Presence;
use super::progress::EdgeProgress;
use super::progress::Progress;
use super::published::PublishedRevisions;
use super::redefine::TypeRefold;
use super::search::SearchIndex;
use super::storage::Storage;
use super::stream_pages::StreamPages;
use super::types::{Definitions, Types};
use super::{Environment, NODES, State};
use crate::error::Result;
use crate::model::access::WorkspaceRecord;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::feed;
use crate::model::fold::StreamFold;
use crate::model::id::AggregateId;
use crate::resident::graph::Graph;
use crate::shared_check::SharedCheck;
use crate::store::key_range::read_ahead;
use crate::store::workspace::definitions::StoredDefinition;
use crate::store::workspace::nodes::{ReadSnapshot, UnreadableSnapshot};
use crate::store::{Database, DatabaseReader};

#[cfg(test)]
mod tests;

/// The upper bound of a version range that covers a whole stream.
const LAST_VERSION: u64 = i64::MAX as u64;

/// Reads the definitions made by clients in a workspace. Logs the parts of stored definitions that cannot be used.
async fn read_definitions(log: &DatabaseReader, workspace: &str) -> Result<Vec<Definition>> {
    let stored = log.read_definitions().await?;
    for StoredDefinition { definition, left_out } in stored.iter().filter(|stored| !stored.left_out.is_empty()) {
        let left_out: Vec<String> = left_out.iter().map(|part| format!("{}: {}", part.pointer, part.message)).collect();
        tracing::error!(
            name = %definition.type_name, workspace, ?left_out,
            "parts of a stored type definition cannot be used"
        );
    }
    Ok(stored.into_iter().map(|stored| stored.definition).collect())
}

/// A lock on folding. Tasks hold the lock while they fold events into the state or change the definitions.
pub struct FoldGuard<'a> {
    _guard: tokio::sync::MutexGuard<'a, ()>,
}

impl State {
    /// Loads a workspace: reads the snapshots, then folds the events after each snapshot.
    pub async fn load(record: WorkspaceRecord, db: &Database, environment: Environment) -> Result<State> {
        let state = State::begin(record, db, environment).await?;
        state.load_states().await?;
        Ok(state)
    }

    /// Creates the state of a workspace with the definitions. The states of aggregates are not loaded yet.
    async fn begin(record: WorkspaceRecord, db: &Database, environment: Environment) -> Result<State> {
        let Environment { clock, settings, releases, patterns, embed, storage, peers } = environment;
        // Reads the change counter before the definitions, so that the next check detects a change in between.
        let types_changed = db.types_changed().await?;
        let leadership = Leadership::new(record.id.clone(), db.clone(), peers.clone());
        let types = Types::new(read_definitions(db, &record.id).await?);
        let state = State {
            record,
            types,
            feed_begin: db.feed_begin().await?,
            presence: Presence::new(db.clone(), peers.is_none()),
            db: db.reader(),
            folded: FoldedStates::default(),
            graph: Graph::default(),
            graph_progress: Progress::default(),
            reported: watch::Sender::default(),
            leadership,
            nodes_progress: Progress::default(),
            settled: EdgeProgress::default(),
            search: SearchIndex::new(embed),
            deadlines: Deadlines::default(),
            plugins: PluginHost::new(releases, clock.clone()),
            call_counts: CallCounts::new(db.clone(), peers.clone()),
            pages: PageCache::default(),
            published: PublishedRevisions::default(),
            admission: Admission::new(settings.queries.clone()),
            storage: Storage::new(storage),
            clock,
            settings,
            patterns,
            peers,
            folding: tokio::sync::Mutex::new(()),
            checked: SharedCheck::default(),
            seen: Mutex::default(),
        };
        state.types.set_changed(types_changed);
        Ok(state)
    }

    /// Adds the types that other servers have defined since the definitions were read. Does not update known types: the
    /// next check of the head detects their changes.
    async fn add_new_types(&self) -> Result<Arc<Definitions>> {
        if !self.is_exclusive() {
            for definition in read_definitions(&self.db, &self.record.id).await? {
                if self.types.get(&definition.type_name).is_none() {
                    self.types.set(Arc::new(definition));
                }
            }
        }
        Ok(self.types.all())
    }

    async fn load_states(&self) -> Result<()> {
        let mut definitions = self.types.all();
        let checkpoint = self.db.checkpoint(NODES).await?;
        if let Some(observed) = self.db.read_observed(&self.record.id).await? {
            self.folded.observed.restore(&observed);
        }
        let mut states: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
        let mut refolded = Vec::new();
        let ranges = self.db.node_ranges().await?;
        let known_types = definitions.clone();
        let mut pages = pin!(read_ahead(ranges, |key_range| {
            let (log, known) = (self.db.clone(), known_types.clone());
            async move { log.read_nodes(key_range, |name| known.get(name).cloned()).await }
        }));
        while let Some(page) = pages.try_next().await? {
            let is_new = |snapshot: &ReadSnapshot| {
                snapshot.as_ref().is_ok_and(|read| !definitions.contains_key(&read.aggregate.aggregate_type))
            };
            if page.iter().any(is_new) {
                definitions = self.add_new_types().await?;
            }
            for snapshot in page {
                let aggregate = match snapshot {
                    Ok(snapshot) => match definitions.get(&snapshot.aggregate.aggregate_type) {
                        // The type's folding rules changed after the snapshot was written.
                        Some(definition) if definition.revision != snapshot.revision => {
                            let Aggregate { id, version, .. } = &snapshot.aggregate;
                            refolded.push(id.clone());
                            let folded = self.fold_stream(id, *version, None, definition).await?;
                            Some(folded.unwrap_or(snapshot.aggregate))
                        }
                        _ => Some(snapshot.aggregate),
                    },
                    Err(UnreadableSnapshot { id, reason }) => {
                        tracing::warn!(
                            aggregate = %id, workspace = %self.record.id, %reason,
                            "cannot read a stored snapshot; folding the aggregate again from the log"
                        );
                        refolded.push(id.clone());
                        self.fold_again(&id, &definitions).await?
                    }
                };
                let shared = aggregate.map(|aggregate| self.folded.share(Arc::new(aggregate)));
                states.extend(shared.map(|aggregate| (aggregate.id.clone(), aggregate)));
            }
        }
        let mut position = checkpoint;
        self.folded.dirty.begin_at(checkpoint);
        self.nodes_progress.set(checkpoint);
        loop {
            let events: Vec<_> = self.stored_after(position, BATCH).await?.into_iter().map(Arc::new).collect();
            let Some(last) = events.last() else { break };
            position = last.position;
            if events.iter().any(|event| !definitions.contains_key(&event.aggregate_type)) {
                definitions = self.add_new_types().await?;
            }
            for event in &events {
                self.fold_into(&mut states, event, &definitions);
            }
            self.folded.dirty.mark(&events);
        }
        let position = states.values().map(|aggregate| aggregate.position).max().unwrap_or(0).max(position);
        let mut states: Vec<_> = states.into_values().collect();
        states.sort_unstable_by_key(|aggregate| aggregate.first_position);
        self.folded.restore(states, position);
        self.folded.dirty.touch(&refolded);
        Ok(())
    }

    /// Folds an aggregate from the log. The aggregate's type is read from its first event. Returns `None` if the log
    /// has no event of the aggregate, or if the type is not defined.
    async fn fold_again(&self, id: &AggregateId, definitions: &Definitions) -> Result<Option<Aggregate>> {
        let first = self.db.read_stream(id, 1, 1).await?;
        let definition = first.first().and_then(|first| definitions.get(&first.aggregate_type));
        let Some(definition) = definition else { return Ok(None) };
        self.fold_stream(id, LAST_VERSION, None, definition).await
    }

    fn fold_into(&self, states: &mut FxHashMap<AggregateId, Arc<Aggregate>>, event: &Event, definitions: &Definitions) {
        self.folded.observed.record(event);
        if let Some(definition) = definitions.get(&event.aggregate_type) {
            fold_event(states, event, definition);
        }
    }

    /// Applies the events and definitions that other writers added to the store. If a new definition folds events
    /// differently, first refolds the aggregates of its type. During the refold, other tasks can fold events.
    pub async fn catch_up(&self) -> Result<()> {
        let refolding = self.fold_redefined().await?;
        let folding = self.folding().await;
        self.catch_up_with(refolding, &folding).await
    }

    /// Locks folding. Other tasks that fold events or change definitions wait until the guard is dropped.
    pub async fn folding(&self) -> FoldGuard<'_> {
        FoldGuard { _guard: self.folding.lock().await }
    }

    /// Does the same as [`State::catch_up`], for a caller that already holds the folding lock.
    pub async fn catch_up_while(&self, folding: &FoldGuard<'_>) -> Result<()> {
        self.catch_up_with(TypeRefold::none(), folding).await
    }

    async fn catch_up_with(&self, refolding: TypeRefold<'_>, folding: &FoldGuard<'_>) -> Result<()> {
        self.reload_definitions(refolding, folding).await?;
        let mut definitions = self.types.all();
        loop {
            let events = self.stored_after(self.folded.position(), BATCH).await?;
            if events.is_empty() {
                return Ok(());
            }
            if events.iter().any(|event| !definitions.contains_key(&event.aggregate_type)) {
                // Another server has defined the type since the definitions were read.
                self.reload_definitions(TypeRefold::none(), folding).await?;
                definitions = self.types.all();
            }
            let mut states: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
            let mut feed = Vec::new();
            for (index, event) in events.iter().enumerate() {
                if let Some(known) = self.folded.get(event.aggregate_id.as_str()) {
                    states.entry(event.aggregate_id.clone()).or_insert(known);
                }
                // Only the earlier state of a task gets a further reference. Without a further reference, a state that
                // an earlier event of this batch has changed is folded in place.
                let task = states.get(&event.aggregate_id).filter(|known| &*known.aggregate_type == TASK).cloned();
                self.fold_into(&mut states, event, &definitions);
                if let Some(after) = states.get(&event.aggregate_id) {
                    feed.extend(feed::affected_agents(event, task.as_deref(), after).map(|agent| (agent, index)));
                }
            }
            let mut states: Vec<_> = states.into_values().collect();
            states.sort_unstable_by_key(|aggregate| aggregate.first_position);
            let events: Vec<_> = events.into_iter().map(Arc::new).collect();
            self.publish(&events, states, &feed);
        }
    }

    /// Prepares a read: if other processes may write to the store, applies their events and definitions. Must be called
    /// before each read. Concurrent calls share one query.
    pub async fn refresh(&self) -> Result<()> {
        if self.is_exclusive() {
            return Ok(());
        }
        self.checked.share(|| async { if self.is_behind().await? { self.catch_up().await } else { Ok(()) } }).await
    }

    /// Does the same as [`State::refresh`], for a caller that already holds the folding lock. Returns whether the state
    /// lacked events or definitions.
    pub async fn catch_up_if_behind(&self, folding: &FoldGuard<'_>) -> Result<bool> {
        let is_behind = self.is_behind().await?;
        if is_behind {
            self.catch_up_while(folding).await?;
        }
        Ok(is_behind)
    }

    /// Returns whether the store has events or definitions that the state does not include.
    async fn is_behind(&self) -> Result<bool> {
        let ends = self.db.ends().await?;
        let mut seen = self.seen.lock();
        seen.epoch = seen.epoch.max(ends.epoch);
        seen.graph_writes = seen.graph_writes.max(ends.graph_writes);
        drop(seen);
        Ok(ends.position > self.folded.position() || ends.types_changed != self.types.changed())
    }

    /// Folds the events of a stream up to a version. If `at` is given, folds only events that occurred up to this time.
    /// Returns `None` if no event is folded.
    ///
    /// Reads the stream in pages, so that memory contains only one page at a time.
    pub async fn fold_stream(
        &self,
        id: &AggregateId,
        version: u64,
        at: Option<i64>,
        definition: &Definition,
    ) -> Result<Option<Aggregate>> {
        let mut pages = StreamPages::new(id.clone(), 1..=version);
        let mut folded: Option<StreamFold> = None;
        while let Some(events) = pages.next(&self.db).await? {
            if events.is_empty() {
                break;
            }
            for event in events.iter().filter(|event| at.is_none_or(|at| event.occurred_at <= at)) {
                folded.get_or_insert_with(|| StreamFold::new(event)).fold(event, definition);
            }
            // Folding takes processor time, so this call lets other tasks run on the thread.
            tokio::task::yield_now().await;
        }
        Ok(folded.map(StreamFold::into_aggregate))
    }
}

/// Folds an event into the state of its aggregate, unless the state already contains the event.
pub(super) fn fold_event(states: &mut FxHashMap<AggregateId, Arc<Aggregate>>, event: &Event, definition: &Definition) {
    if states.get(&event.aggregate_id).is_some_and(|before| before.version >= event.version) {
        return;
    }
    // Clones the aggregate only if other references to the aggregate exist. An aggregate without other references is
    // folded in place.
    let mut folding = match states.remove(&event.aggregate_id) {
        Some(before) => StreamFold::from(Arc::unwrap_or_clone(before)),
        None => StreamFold::new(event),
    };
    folding.fold(event, definition);
    states.insert(event.aggregate_id.clone(), Arc::new(folding.into_aggregate()));
}
