//! An open workspace: its log, the folded state kept up with it, and how it is loaded.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use futures_util::TryStreamExt;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use super::vectors::Vectors;
use crate::clock::Clock;
use crate::consumer;
use crate::consumer::measured::Measured;
use crate::consumer::plugins::Plugins;
use crate::error::Result;
use crate::model::access::WorkspaceRecord;
use crate::model::aggregate::Aggregate;
use crate::model::builtin;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::resident::Resident;
use crate::resident::behind::Behind;
use crate::resident::graph::Graph;
use crate::resident::labels::Labels;
use crate::resident::seen::Seen;
use crate::resident::tail::Tail;
use crate::resident::unsaved::Unsaved;
use crate::store::Database;
use crate::store::stretch::read_ahead;
use crate::workspace::query::page::Kept;

/// Type definitions by name.
pub type Definitions = HashMap<Arc<str>, Arc<Definition>>;

/// Events read from the store at a time.
const PAGE: usize = 512;

/// What everything that works on one workspace shares.
pub struct Open {
    pub record: WorkspaceRecord,
    pub log: Database,
    pub resident: Resident,
    pub tail: Tail,
    pub seen: Seen,
    pub unsaved: Unsaved,
    pub behind: Behind,
    pub graph: Graph,
    pub plugins: Arc<Plugins>,
    /// Of each plugin's calls, in the order of the plugins.
    pub measured: Vec<Arc<Measured>>,
    /// The position that the graph's follower has come to.
    pub worked: watch::Sender<u64>,
    pub labels: Labels,
    /// Where an embedding is switched on.
    pub vectors: Option<Vectors>,
    /// Answers of which further pages may be asked for.
    pub pages: Kept,
    pub clock: Arc<dyn Clock>,
    /// No other process writes to the store.
    pub exclusive: bool,
    definitions: ArcSwap<Definitions>,
    /// The bytes of all states at a position.
    counted: Mutex<(u64, usize)>,
    /// The position up to which events are committed and folded; whoever follows the log waits on it.
    head: watch::Sender<u64>,
    /// Two catch-ups at a time would fold the same events twice.
    catching_up: tokio::sync::Mutex<()>,
    /// One redefinition of a type at a time.
    pub defining: tokio::sync::Mutex<()>,
    /// One request with an idempotency key at a time.
    pub answering: tokio::sync::Mutex<()>,
}

impl Open {
    /// Loads a workspace: snapshots first, then the events after each of them.
    pub async fn load(
        record: WorkspaceRecord,
        log: Database,
        clock: Arc<dyn Clock>,
        exclusive: bool,
        plugins: Arc<Plugins>,
    ) -> Result<Open> {
        let mut definitions: Definitions = HashMap::new();
        for definition in builtin::definitions().into_iter().chain(log.read_definitions().await?) {
            definitions.insert(definition.type_name.clone(), Arc::new(definition));
        }
        let open = Open {
            record,
            log,
            resident: Resident::default(),
            tail: Tail::default(),
            seen: Seen::default(),
            unsaved: Unsaved::default(),
            behind: Behind::default(),
            graph: Graph::default(),
            measured: plugins.about().map(|_| Arc::default()).collect(),
            plugins,
            worked: watch::Sender::new(0),
            labels: Labels::default(),
            vectors: None,
            pages: Kept::default(),
            clock,
            exclusive,
            definitions: ArcSwap::from_pointee(definitions),
            counted: Mutex::default(),
            head: watch::Sender::new(0),
            catching_up: tokio::sync::Mutex::new(()),
            defining: tokio::sync::Mutex::new(()),
            answering: tokio::sync::Mutex::new(()),
        };
        open.load_states().await?;
        open.head.send_replace(open.resident.position());
        Ok(open)
    }

    async fn load_states(&self) -> Result<()> {
        let definitions = self.definitions();
        let checkpoint = self.log.checkpoint(consumer::NODES).await?;
        if let Some(seen) = self.log.read_seen().await? {
            self.seen.restore(&seen);
        }
        let mut states: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
        let stretches = self.log.node_stretches().await?;
        let mut pages = pin!(read_ahead(stretches, |stretch| {
            let (log, known) = (self.log.clone(), definitions.clone());
            async move { log.read_nodes(stretch, |name| known.get(name).cloned()).await }
        }));
        while let Some(page) = pages.try_next().await? {
            for snapshot in page {
                let revision = definitions.get(&snapshot.aggregate.aggregate_type).map(|known| known.revision);
                let mut aggregate = snapshot.aggregate;
                if revision != Some(snapshot.revision) {
                    // The type's folds changed after the snapshot was written.
                    aggregate = self.refold(&aggregate, &definitions).await?.unwrap_or(aggregate);
                }
                states.insert(aggregate.id.clone(), self.resident.share(Arc::new(aggregate)));
            }
        }
        let mut position = checkpoint;
        self.unsaved.begin_at(checkpoint);
        loop {
            let events: Vec<_> = self.log.read_after(position, PAGE).await?.into_iter().map(Arc::new).collect();
            let Some(last) = events.last() else { break };
            position = last.position;
            for event in &events {
                self.fold_into(&mut states, event, &definitions);
            }
            self.unsaved.mark(&events);
        }
        let position = states.values().map(|aggregate| aggregate.position).max().unwrap_or(0).max(position);
        let mut states: Vec<_> = states.into_values().collect();
        states.sort_unstable_by_key(|aggregate| aggregate.first_position);
        self.resident.publish(states, position);
        Ok(())
    }

    fn fold_into(&self, states: &mut FxHashMap<AggregateId, Arc<Aggregate>>, event: &Event, definitions: &Definitions) {
        self.seen.note(event);
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
        let definitions = self.definitions();
        loop {
            let events = self.log.read_after(self.resident.position(), PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            let mut states = FxHashMap::default();
            for event in &events {
                if let Some(known) = self.resident.get(event.aggregate_id.as_str()) {
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
        if self.exclusive || self.log.head().await? <= self.resident.position() {
            return Ok(());
        }
        self.catch_up().await
    }

    async fn reload_definitions(&self) -> Result<()> {
        if self.exclusive {
            return Ok(());
        }
        for definition in self.log.read_definitions().await? {
            let before = self.definition(&definition.type_name);
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
        let definitions = self.definitions();
        let revision = definitions.get(type_name).map_or(0, |definition| definition.revision);
        let snapshot = self.resident.snapshot();
        let mut nodes = Vec::new();
        for stale in snapshot.iter().filter(|aggregate| &*aggregate.aggregate_type == type_name) {
            if let Some(aggregate) = self.refold(stale, &definitions).await? {
                nodes.push((Arc::new(aggregate), revision));
            }
        }
        for page in nodes.chunks(PAGE) {
            self.log.write_nodes(page, None, None).await?;
            self.resident.publish(page.iter().map(|(aggregate, _)| aggregate.clone()), snapshot.position());
            self.labels_changed(page.iter().map(|(aggregate, _)| &aggregate.id));
        }
        Ok(())
    }

    /// Makes committed events and the states after them visible, and wakes whoever follows.
    pub fn publish(&self, events: &[Arc<Event>], aggregates: Vec<Arc<Aggregate>>) {
        let Some(last) = events.last() else { return };
        events.iter().for_each(|event| self.seen.note(event));
        self.behind.publish(&self.resident, aggregates, last.position);
        // After the states: whoever takes a mark finds at least the state that it was made for.
        self.unsaved.mark(events);
        self.labels_changed(events.iter().map(|event| &event.aggregate_id));
        self.tail.extend(events);
        self.head.send_replace(last.position);
    }

    /// Marks aggregates whose labels or bodies may have changed, for search.
    pub fn labels_changed<'a>(&self, ids: impl Iterator<Item = &'a AggregateId> + Clone) {
        if let Some(vectors) = &self.vectors {
            vectors.touch(ids.clone());
        }
        self.labels.touch(ids);
    }

    /// Bytes that the workspace takes in memory, roughly. What is counted once is counted again after an event.
    pub fn size_bytes(&self) -> usize {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.resident.snapshot();
        if counted.0 != snapshot.position() {
            *counted = (snapshot.position(), snapshot.iter().map(|aggregate| aggregate.size_bytes()).sum());
        }
        counted.1 + self.tail.size_bytes() + self.pages.size_bytes()
    }

    pub fn definitions(&self) -> Arc<Definitions> {
        self.definitions.load_full()
    }

    pub fn definition(&self, type_name: &str) -> Option<Arc<Definition>> {
        self.definitions.load().get(type_name).cloned()
    }

    /// Replaces one definition, in memory.
    pub fn set_definition(&self, definition: Arc<Definition>) {
        let labels = |definition: &Definition| -> Vec<Arc<str>> {
            definition.fields.iter().filter(|field| field.label).map(|field| field.name.clone()).collect()
        };
        let before = self.definition(&definition.type_name);
        let relabels = before.is_some_and(|before| labels(&before) != labels(&definition));
        self.definitions.rcu(|definitions| {
            let mut definitions = Definitions::clone(definitions);
            definitions.insert(definition.type_name.clone(), definition.clone());
            definitions
        });
        if relabels {
            self.labels.forget();
            if let Some(vectors) = &self.vectors {
                vectors.touch(self.resident.snapshot().iter().map(|aggregate| &aggregate.id));
            }
        }
    }

    /// Follows the position of the last committed event.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Events after a position, from memory where it reaches back that far.
    pub async fn events_after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Event>>> {
        if let Some(events) = self.tail.after(position, limit) {
            return Ok(events);
        }
        // Commits may hold far more events than are asked for; those are not read.
        let mut places = self.log.places_after(position, limit).await?;
        places.truncate(limit);
        let events = self.log.read_places(&places, None).await?;
        Ok(events.into_iter().map(Arc::new).collect())
    }
}
