//! How a workspace's state is read from the store, and kept up with what other processes append to it.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use rustc_hash::FxHashMap;

use super::folded::Folded;
use super::pages::PageCache;
use super::plugins::PluginHost;
use super::progress::Progress;
use super::search::SearchIndex;
use super::types::{Definitions, Types};
use super::{Environment, NODES, State};
use crate::error::Result;
use crate::model::access::WorkspaceRecord;
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::resident::graph::Graph;
use crate::store::Database;
use crate::store::key_range::read_ahead;

/// Events read from the store at a time.
const PAGE: usize = 512;

impl State {
    /// Loads a workspace: snapshots first, then the events after each of them.
    pub async fn load(record: WorkspaceRecord, log: Database, environment: Environment) -> Result<State> {
        let Environment { clock, settings, plugins, embed, exclusive } = environment;
        let state = State {
            record,
            types: Types::new(log.read_definitions().await?),
            log,
            folded: Folded::default(),
            graph: Graph::default(),
            graph_progress: Progress::default(),
            search: SearchIndex::new(embed),
            plugins: PluginHost::new(plugins, clock.clone()),
            pages: PageCache::default(),
            clock,
            settings,
            exclusive,
            catching_up: tokio::sync::Mutex::new(()),
        };
        state.load_states().await?;
        Ok(state)
    }

    async fn load_states(&self) -> Result<()> {
        let definitions = self.types.all();
        let checkpoint = self.log.checkpoint(NODES).await?;
        if let Some(seen) = self.log.read_seen().await? {
            self.folded.observed().restore(&seen);
        }
        let mut states: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
        let ranges = self.log.node_ranges().await?;
        let mut pages = pin!(read_ahead(ranges, |key_range| {
            let (log, known) = (self.log.clone(), definitions.clone());
            async move { log.read_nodes(key_range, |name| known.get(name).cloned()).await }
        }));
        while let Some(page) = pages.try_next().await? {
            for snapshot in page {
                let revision = definitions.get(&snapshot.aggregate.aggregate_type).map(|known| known.revision);
                let mut aggregate = snapshot.aggregate;
                if revision != Some(snapshot.revision) {
                    // The type's folds changed after the snapshot was written.
                    aggregate = self.refold(&aggregate, &definitions).await?.unwrap_or(aggregate);
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
        let before = states.get(&event.aggregate_id);
        if before.is_some_and(|before| before.version >= event.version) {
            return;
        }
        if let Some(definition) = definitions.get(&event.aggregate_type) {
            let after = Aggregate::fold(before.map(|before| &**before), event, definition);
            states.insert(event.aggregate_id.clone(), Arc::new(after));
        }
    }

    /// Folds a stream from its first event up to where the given state stands.
    pub async fn refold(&self, stale: &Aggregate, definitions: &Definitions) -> Result<Option<Aggregate>> {
        let Some(definition) = definitions.get(&stale.aggregate_type) else { return Ok(None) };
        let events = self.log.read_stream(&stale.id, 1, stale.version).await?;
        Ok(Aggregate::fold_all(&events, definition))
    }

    /// Takes in what other writers of the same store have appended.
    pub async fn catch_up(&self) -> Result<()> {
        let _one = self.catching_up.lock().await;
        self.reload_definitions().await?;
        let definitions = self.types.all();
        loop {
            let events = self.log.read_after(self.folded.position(), PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            let mut states = FxHashMap::default();
            for event in &events {
                if let Some(known) = self.folded.get(event.aggregate_id.as_str()) {
                    states.entry(event.aggregate_id.clone()).or_insert(known);
                }
                self.fold_into(&mut states, event, &definitions);
            }
            let mut states: Vec<_> = states.into_values().collect();
            states.sort_unstable_by_key(|aggregate| aggregate.first_position);
            let events: Vec<_> = events.into_iter().map(Arc::new).collect();
            self.publish(&events, states);
        }
    }

    /// Before a read: with other writers about, their appends are taken in first.
    pub async fn refresh(&self) -> Result<()> {
        if self.exclusive || self.log.head().await? <= self.folded.position() {
            return Ok(());
        }
        self.catch_up().await
    }

    async fn reload_definitions(&self) -> Result<()> {
        if self.exclusive {
            return Ok(());
        }
        for definition in self.log.read_definitions().await? {
            let before = self.types.get(&definition.type_name);
            let refold = before.is_some_and(|before| before.revision != definition.revision);
            let type_name = definition.type_name.clone();
            self.set_definition(Arc::new(definition));
            if refold {
                self.refold_type(&type_name).await?;
            }
        }
        Ok(())
    }

    /// Folds all aggregates of a type anew, from the log, and writes their snapshots.
    pub async fn refold_type(&self, type_name: &str) -> Result<()> {
        let definitions = self.types.all();
        let revision = definitions.get(type_name).map_or(0, |definition| definition.revision);
        let snapshot = self.folded.snapshot();
        let mut nodes = Vec::new();
        for stale in snapshot.iter().filter(|aggregate| &*aggregate.aggregate_type == type_name) {
            if let Some(aggregate) = self.refold(stale, &definitions).await? {
                nodes.push((Arc::new(aggregate), revision));
            }
        }
        for page in nodes.chunks(PAGE) {
            self.log.write_nodes(page, None, None).await?;
            self.folded.replace(page.iter().map(|(aggregate, _)| aggregate.clone()), snapshot.position());
            self.search.touch(page.iter().map(|(aggregate, _)| &aggregate.id));
        }
        Ok(())
    }
}
