//! The state of an open workspace: its log, and the states folded from the log. Only `append` writes the log.
//!
//! This module does not depend on requests or rights. The layers above this module check permissions. Callers matter
//! only to [`admission`], which limits the concurrent queries of each caller.
//!
//! # Startup
//!
//! At startup, the definitions and snapshots are read. The log after the checkpoint is then folded into the states of
//! the snapshots, in batches of limited size. Events that a snapshot already contains, according to its version, are
//! skipped. If a snapshot is unreadable, its aggregate is folded again from the log. Unusable parts of a definition and
//! unreadable facts are left out, each with a line in the server's log.

pub mod admission;
pub mod background;
pub mod batches;
pub mod call_counts;
pub mod deadlines;
pub mod feeds;
pub mod folded_states;
mod follower_map;
pub mod leadership;
mod load;
pub mod meter;
pub mod pages;
pub mod peers;
pub mod plugin_host;
pub mod plugins;
pub mod presence;
pub mod progress;
pub mod published;
pub mod redefine;
pub mod releases;
pub mod search;
pub mod storage;
pub mod stream_pages;
pub mod streams;
pub mod stride;
pub mod types;
pub mod upload_cleanup;
pub mod vectors;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use admission::{Admission, QueryLimits};
use call_counts::CallCounts;
use deadlines::Deadlines;
use folded_states::FoldedStates;
use leadership::Leadership;
use pages::PageCache;
use parking_lot::Mutex;
use peers::Peers;
use plugin_host::PluginHost;
use presence::Presence;
use progress::{EdgeProgress, Progress};
use published::PublishedRevisions;
use releases::Releases;
use search::SearchIndex;
use storage::{SharedStorage, Storage};
use tokio::sync::watch;
use tokio::time::Instant;
use types::Types;
use vectors::VectorInput;

use crate::clock::Clock;
use crate::error::Result;
use crate::hook::Embed;
use crate::model::access::WorkspaceRecord;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::pattern::Patterns;
use crate::resident::graph::Graph;
use crate::shared_check::SharedCheck;
use crate::store::DatabaseReader;
use crate::store::control::servers::WorkspaceProgress;
use crate::store::workspace::log::take_part;

/// The name of the follower that writes snapshots, as used in checkpoints and status reports.
pub const NODES: &str = "nodes";
/// The name of the follower that maintains the graph, as used in checkpoints and status reports.
pub const GRAPH: &str = "graph";

/// The maximum size of the events in one read from the store, in bytes.
const PART_BYTES: usize = 8 << 20;

/// The approximate memory of an open workspace without events, in bytes. Measured over 300 such workspaces.
const EMPTY_BYTES: usize = 128 << 10;

/// The settings that the embedding program passes to an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// The maximum duration of one pipeline, in milliseconds.
    pub pipeline_ms: u64,
    /// The maximum number of bytes that one pipeline may allocate.
    pub pipeline_bytes: usize,
    /// The limits on concurrent queries per workspace and per key, and on the memory that these queries share.
    pub queries: QueryLimits,
    /// The limit on the total memory of open workspaces, in bytes. Above this limit, the engine closes unused
    /// workspaces. 0 means no limit.
    pub resident_bytes: usize,
    /// The time that a workspace must be unused before the engine may close it, in milliseconds.
    pub idle_ms: i64,
    /// The maximum size of a workspace's files, in bytes. 0 means no limit.
    pub quota_bytes: u64,
    /// The time after which an upload counts as abandoned if its lease is not renewed, in milliseconds.
    pub upload_lease_ms: u64,
    /// Whether users may decide on output that they have delivered themselves.
    pub own_deliveries: bool,
    /// The time between the decision to delete a workspace and its deletion, in milliseconds.
    pub deletion_grace_ms: i64,
    /// The interval at which a server checks for appends of the other servers of the store, in milliseconds. With 100
    /// ms, waiting clients receive the events of an append before people notice a delay, and a server sends ten cheap
    /// queries per second.
    pub pulse_ms: u64,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings {
            pipeline_ms: 5_000,
            pipeline_bytes: 64 << 20,
            queries: QueryLimits::default(),
            resident_bytes: 0,
            idle_ms: 600_000,
            quota_bytes: 0,
            upload_lease_ms: 60_000,
            own_deliveries: false,
            deletion_grace_ms: 30 * 86_400_000,
            pulse_ms: 100,
        }
    }
}

/// The environment that all workspaces of one engine share.
#[derive(Clone)]
pub struct Environment {
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<EngineSettings>,
    /// The plugins, in the versions that all servers of the store use.
    pub releases: Arc<Releases>,
    /// The compiled patterns of types and queries.
    pub patterns: Arc<Patterns>,
    /// The embedding model, if vector search is enabled.
    pub embed: Option<Arc<dyn Embed>>,
    /// The storage of file contents.
    pub storage: SharedStorage,
    /// The servers that share the store. `None` if no other process writes to the store.
    pub peers: Option<Arc<Peers>>,
}

/// The state of an open workspace, shared by all tasks that work on the workspace.
pub struct State {
    pub record: WorkspaceRecord,
    /// A handle on the workspace's database that can only read.
    pub db: DatabaseReader,
    pub types: Types,
    pub folded: FoldedStates,
    /// The knowledge graph, including the events up to `graph_progress`.
    pub graph: Graph,
    pub graph_progress: Progress,
    /// The latest progress that other servers have reported.
    pub reported: watch::Sender<WorkspaceProgress>,
    pub leadership: Leadership,
    /// The position up to which stored snapshots include every event.
    pub nodes_progress: Progress,
    /// The progress of updating the graph's edges after changes of the definitions or of the enabled plugins.
    pub settled: EdgeProgress,
    pub search: SearchIndex,
    /// The deadlines of the workspace's timers.
    pub deadlines: Deadlines,
    pub plugins: PluginHost,
    pub call_counts: CallCounts,
    /// The results of queries whose further pages may be requested.
    pub pages: PageCache,
    /// A cache of published revisions of articles.
    pub published: PublishedRevisions,
    /// The admission of queries, which enforces the limits on concurrent queries and their memory.
    pub admission: Admission,
    /// The log position after which the store records the agents that each event concerns.
    pub feed_begin: u64,
    /// The presence of agents, and the feed position that each agent has acknowledged.
    pub presence: Presence,
    /// The storage of file contents.
    pub storage: Storage,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<EngineSettings>,
    /// The compiled patterns of types and queries, shared with other workspaces.
    pub patterns: Arc<Patterns>,
    peers: Option<Arc<Peers>>,
    /// The lock that serializes folding. Without the lock, two concurrent folds could fold the same events twice, or
    /// under two definitions.
    folding: tokio::sync::Mutex<()>,
    checked: SharedCheck,
    /// The epoch of the last leader and the number of writes to the graph, as of the last check of the store.
    seen: Mutex<SeenWrites>,
}

/// The writes of leaders to the store, as far as this server knows these writes. The server's own writes are included.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeenWrites {
    /// The epoch of the last leader.
    pub epoch: u64,
    /// The number of writes to the graph.
    pub graph_writes: u64,
}

impl State {
    /// Returns whether no other process writes to the store.
    pub fn is_exclusive(&self) -> bool {
        self.peers.is_none()
    }

    /// Returns the time since the end of the last gap, or zero during a gap. In a gap, this server could not reach the
    /// store that it shares with other servers. Returns `None` if there was no gap, or if the store is not shared.
    pub fn gap_age(&self) -> Option<Duration> {
        self.peers.as_ref()?.gap_age(Instant::now())
    }

    /// Returns the epoch of the last leader and the number of writes to the graph, as of the last check of the store.
    pub fn seen_writes(&self) -> SeenWrites {
        *self.seen.lock()
    }

    /// Reports progress of the workspace to the other servers of the store.
    pub fn report(&self, progress: WorkspaceProgress) {
        if let Some(peers) = &self.peers {
            peers.advance(&self.record.id, progress);
        }
    }

    /// Reports to the other servers of the store where the log ends, and how often definitions have been changed.
    pub fn report_log(&self) {
        let (position, types) = (self.folded.position(), self.types.changed());
        self.report(WorkspaceProgress { position, types, ..WorkspaceProgress::default() });
    }

    /// Records the progress that other servers have reported, and reads the events and definitions that the state
    /// lacks.
    pub async fn apply_progress(&self, progress: WorkspaceProgress) -> Result<()> {
        self.reported.send_if_modified(|known| {
            let merged = known.merged(progress);
            std::mem::replace(known, merged) != merged
        });
        if progress.position > self.folded.position() || progress.types > self.types.changed() {
            self.catch_up().await?;
        }
        Ok(())
    }

    /// Waits until a followed position has moved, or until `deadline`.
    pub async fn moved(&self, position: &mut watch::Receiver<u64>, deadline: Instant) {
        let _ = tokio::time::timeout_at(deadline, position.changed()).await;
    }

    /// Makes committed events and the states after these events visible. Wakes the followers of the log and the readers
    /// of the feeds that the events concern.
    pub fn publish(&self, events: &[Arc<Event>], aggregates: Vec<Arc<Aggregate>>, feed: &[(Arc<str>, usize)]) {
        self.folded.publish(events, aggregates);
        self.search.touch(events.iter().map(|event| &event.aggregate_id));
        self.folded.announce(events, feed);
    }

    /// Replaces one definition in memory. Notifies the search index and the graph if the definition changes the labels,
    /// the searched fields or the states of existing aggregates.
    fn set_definition(&self, definition: Arc<Definition>) {
        let (labels, revision) = (definition.label_fields(), definition.revision);
        let Some(previous) = self.types.set(definition.clone()) else { return };
        let relabels = previous.label_fields() != labels;
        if relabels || !previous.searched().eq(definition.searched()) {
            // The aggregates are indexed again in small batches, while searches continue.
            let snapshot = self.folded.snapshot();
            let concerned = snapshot.iter().filter(|aggregate| aggregate.aggregate_type == definition.type_name);
            let ids: Vec<_> = concerned.map(|aggregate| &aggregate.id).collect();
            self.search.touch(ids.iter().copied());
            self.search.redefined.increment();
        }
        if relabels || previous.revision != revision {
            self.types.redefined.increment();
        }
    }

    /// Returns at most `limit` events after a position. Reads the events from memory if memory still contains them.
    /// Otherwise reads events from the store, at most [`PART_BYTES`] in total. A first event that is larger is returned
    /// alone.
    pub async fn events_after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Event>>> {
        if let Some(events) = self.folded.last_events(position, limit) {
            return Ok(events);
        }
        // Commits may contain far more events than requested. Only the requested events are read.
        let mut refs = VecDeque::from(self.db.event_refs_after(position, limit).await?);
        let events = self.db.read_event_refs(&take_part(&mut refs, limit, PART_BYTES), None).await?;
        Ok(events.into_iter().map(Arc::new).collect())
    }

    /// Updates the label index with some of the changed aggregates. Returns whether more aggregates are left to index.
    /// Takes processor time, so threads that serve requests must not call this function.
    pub fn keep_labels(&self) -> bool {
        self.search.keep_labels(&self.folded, &self.types)
    }

    /// Returns the data that vectors are computed from.
    pub fn labelled(&self) -> VectorInput<'_> {
        VectorInput { workspace: &self.record.id, db: &self.db, folded: &self.folded, types: &self.types }
    }

    /// Returns the approximate memory that the workspace takes, in bytes.
    pub fn size_bytes(&self) -> usize {
        let derived = self.graph.size_bytes() + self.search.size_bytes();
        EMPTY_BYTES + self.folded.size_bytes() + derived + self.pages.size_bytes() + self.published.size_bytes()
    }
}

#[cfg(test)]
impl Environment {
    /// Returns an environment without plugins, for the workspaces of a store.
    pub async fn sample(store: &crate::store::Store, peers: Option<Arc<Peers>>) -> Environment {
        let plugins = Arc::new(plugins::Plugins::none().expect("no plugins"));
        Environment {
            clock: Arc::new(crate::clock::SystemClock),
            settings: Arc::default(),
            releases: Arc::new(Releases::open(store, plugins).await.expect("the releases")),
            patterns: Arc::default(),
            embed: None,
            storage: SharedStorage::new(store.blobs()),
            peers,
        }
    }
}
