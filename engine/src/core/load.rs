//! How a workspace's state is read from the store, and kept up with what other processes append to it.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use rustc_hash::FxHashMap;

use super::admission::Admission;
use super::deadlines::Deadlines;
use super::folded::Folded;
use super::pages::PageCache;
use super::plugins::PluginHost;
use super::presence::Presence;
use super::progress::Progress;
use super::published::PublishedRevisions;
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
use crate::model::fold::Folding;
use crate::model::id::AggregateId;
use crate::resident::graph::Graph;
use crate::store::Database;
use crate::store::key_range::read_ahead;

/// Events read from the store at a time.
const PAGE: usize = 512;

/// Held by whoever folds events into the state, or changes how they are folded.
pub struct FoldGuard<'a> {
    _one: tokio::sync::MutexGuard<'a, ()>,
}

impl State {
    /// Loads a workspace: snapshots first, then the events after each of them.
    pub async fn load(record: WorkspaceRecord, log: Database, environment: Environment) -> Result<State> {
        let Environment { clock, settings, plugins, embed, storage, exclusive } = environment;
        let state = State {
            record,
            types: Types::new(log.read_definitions().await?),
            feed_begin: log.feed_begin().await?,
            presence: Presence::new(log.clone(), exclusive),
            log,
            folded: Folded::default(),
            graph: Graph::default(),
            graph_progress: Progress::default(),
            search: SearchIndex::new(embed),
            deadlines: Deadlines::default(),
            plugins: PluginHost::new(plugins, clock.clone()),
            pages: PageCache::default(),
            published: PublishedRevisions::default(),
            admission: Admission::new(settings.queries.clone()),
            storage: Storage::new(storage),
            clock,
            settings,
            exclusive,
            folding: tokio::sync::Mutex::new(()),
        };
        state.load_states().await?;
        Ok(state)
    }

    async fn load_states(&self) -> Result<()> {
        let definitions = self.types.all();
        let checkpoint = self.log.checkpoint(NODES).await?;
        if let Some(observed) = self.log.read_observed().await? {
            self.folded.observed().restore(&observed);
        }
        let mut states: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
        let ranges = self.log.node_ranges().await?;
        let mut pages = pin!(read_ahead(ranges, |key_range| {
            let (log, known) = (self.log.clone(), definitions.clone());
            async move { log.read_nodes(key_range, |name| known.get(name).cloned()).await }
        }));
        while let Some(page) = pages.try_next().await? {
            for snapshot in page {
                let mut aggregate = snapshot.aggregate;
                if let Some(definition) = definitions.get(&aggregate.aggregate_type)
                    && definition.revision != snapshot.revision
                {
                    // The type's folds changed after the snapshot was written.
                    let refolded = self.fold_stream(&aggregate.id, aggregate.version, None, definition).await?;
                    aggregate = refolded.unwrap_or(aggregate);
                }
                states.insert(aggregate.id.clone(), self.folded.share(Arc::new(aggregate)));
            }
        }
        let mut position = checkpoint;
        self.folded.snapshots_stand_at(checkpoint);
        loop {
            let events: Vec<_> = self.log.read_after(position, PAGE).await?.into_iter().map(Arc::new).collect();
            let Some(last) = events.last() else { break };
            position = last.position;
            for event in &events {
                self.fold_into(&mut states, event, &definitions);
            }
            self.folded.mark_dirty(&events);
        }
        let position = states.values().map(|aggregate| aggregate.position).max().unwrap_or(0).max(position);
        let mut states: Vec<_> = states.into_values().collect();
        states.sort_unstable_by_key(|aggregate| aggregate.first_position);
        self.folded.restore(states, position);
        Ok(())
    }

    fn fold_into(&self, states: &mut FxHashMap<AggregateId, Arc<Aggregate>>, event: &Event, definitions: &Definitions) {
        self.folded.observed().note(event);
        if states.get(&event.aggregate_id).is_some_and(|before| before.version >= event.version) {
            return;
        }
        let Some(definition) = definitions.get(&event.aggregate_type) else { return };
        // One that nobody else holds is folded in its place.
        let mut folding = match states.remove(&event.aggregate_id) {
            Some(before) => Folding::from(Arc::unwrap_or_clone(before)),
            None => Folding::new(event),
        };
        folding.fold(event, definition);
        states.insert(event.aggregate_id.clone(), Arc::new(folding.into_aggregate()));
    }

    /// Takes in what other writers of the same store have appended.
    pub async fn catch_up(&self) -> Result<()> {
        let folding = self.folding().await;
        self.catch_up_while(&folding).await
    }

    /// Holds back whoever else folds events, or changes how they are folded.
    pub async fn folding(&self) -> FoldGuard<'_> {
        FoldGuard { _one: self.folding.lock().await }
    }

    /// Like [`State::catch_up`], for one who holds the others back already.
    pub async fn catch_up_while(&self, folding: &FoldGuard<'_>) -> Result<()> {
        self.reload_definitions(folding).await?;
        let definitions = self.types.all();
        loop {
            let events = self.log.read_after(self.folded.position(), PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            let mut states: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
            let mut feed = Vec::new();
            for (index, event) in events.iter().enumerate() {
                if let Some(known) = self.folded.get(event.aggregate_id.as_str()) {
                    states.entry(event.aggregate_id.clone()).or_insert(known);
                }
                // Others are folded in their place: nobody else holds them.
                let task = states.get(&event.aggregate_id).filter(|known| &*known.aggregate_type == TASK).cloned();
                self.fold_into(&mut states, event, &definitions);
                if let Some(after) = states.get(&event.aggregate_id) {
                    feed.extend(feed::concerned(event, task.as_deref(), after).map(|agent| (agent, index)));
                }
            }
            let mut states: Vec<_> = states.into_values().collect();
            states.sort_unstable_by_key(|aggregate| aggregate.first_position);
            let events: Vec<_> = events.into_iter().map(Arc::new).collect();
            self.publish(&events, states, &feed);
        }
    }

    /// Before a read: with other writers about, their appends are taken in first.
    pub async fn refresh(&self) -> Result<()> {
        if self.exclusive || self.log.head().await? <= self.folded.position() {
            return Ok(());
        }
        self.catch_up().await
    }

    async fn reload_definitions(&self, folding: &FoldGuard<'_>) -> Result<()> {
        if self.is_exclusive() {
            return Ok(());
        }
        for definition in self.log.read_definitions().await? {
            let before = self.types.get(&definition.type_name);
            let refold = before.is_some_and(|before| before.revision != definition.revision);
            self.adopt(Arc::new(definition), refold, folding).await?;
        }
        Ok(())
    }

    /// Writes a definition and goes by it. Where it folds otherwise than the one before, the aggregates of its type are
    /// folded anew; if that fails, everything is as it was.
    pub async fn define(&self, definition: Arc<Definition>, refold: bool) -> Result<()> {
        let folding = self.folding().await;
        let refolded = if refold { self.refolded(&definition).await? } else { Vec::new() };
        self.log.write_definition(&definition).await?;
        self.show_defined(definition, &refolded, &folding);
        Ok(())
    }

    async fn adopt(&self, definition: Arc<Definition>, refold: bool, folding: &FoldGuard<'_>) -> Result<()> {
        let refolded = if refold { self.refolded(&definition).await? } else { Vec::new() };
        self.show_defined(definition, &refolded, folding);
        Ok(())
    }

    fn show_defined(&self, definition: Arc<Definition>, refolded: &[Arc<Aggregate>], _: &FoldGuard<'_>) {
        // States first: a snapshot that is written meanwhile may tell an older revision than it was folded under, and is
        // folded again when it is loaded; a newer one would be believed.
        self.folded.replace(refolded);
        self.search.touch(refolded.iter().map(|aggregate| &aggregate.id));
        self.set_definition(definition);
    }

    /// All aggregates of a type, folded from the log under a definition.
    async fn refolded(&self, definition: &Arc<Definition>) -> Result<Vec<Arc<Aggregate>>> {
        let snapshot = self.folded.snapshot();
        let stale = snapshot.iter().filter(|aggregate| aggregate.aggregate_type == definition.type_name);
        let mut refolded = Vec::new();
        for stale in stale {
            refolded.extend(self.fold_stream(&stale.id, stale.version, None, definition).await?.map(Arc::new));
        }
        Ok(refolded)
    }

    /// Folds a stream from its first event up to a version, and of these the events that happened up to a time.
    ///
    /// The stream is read in parts, so that no more than one of them is in memory beside the state.
    pub async fn fold_stream(
        &self,
        id: &AggregateId,
        version: u64,
        at: Option<i64>,
        definition: &Definition,
    ) -> Result<Option<Aggregate>> {
        let mut pages = StreamPages::new(id.clone(), 1..=version);
        let mut folded: Option<Folding> = None;
        while let Some(events) = pages.next(&self.log).await? {
            for event in events.iter().filter(|event| at.is_none_or(|at| event.occurred_at <= at)) {
                folded.get_or_insert_with(|| Folding::new(event)).fold(event, definition);
            }
            // Folding is work: others get their turn on this thread.
            tokio::task::yield_now().await;
        }
        Ok(folded.map(Folding::into_aggregate))
    }
}
