//! The running core of one workspace: its log, the states folded from it, and the one writer that both have.
//!
//! No requests, no callers and no rights here: who may do what is decided above.

pub mod admission;
pub mod append;
pub mod background;
pub mod batches;
pub mod clearing;
pub mod deadlines;
pub mod feeds;
pub mod folded;
mod followed;
mod known;
mod load;
pub mod meter;
pub mod pages;
pub mod plugins;
pub mod presence;
pub mod progress;
pub mod published;
pub mod redefine;
pub mod request;
pub mod search;
pub mod staging;
pub mod storage;
pub mod stream_pages;
pub mod streams;
pub mod stride;
pub mod types;
pub mod vectors;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use admission::{Admission, QueryLimits};
use deadlines::Deadlines;
use folded::Folded;
use pages::PageCache;
use plugins::{PluginHost, Plugins};
use presence::Presence;
use progress::Progress;
use published::PublishedRevisions;
use search::SearchIndex;
use storage::{SharedStorage, Storage};
use tokio::sync::watch;
use tokio::time::Instant;
use types::Types;
use vectors::Labelled;

use crate::clock::Clock;
use crate::error::Result;
use crate::hook::Embed;
use crate::model::access::WorkspaceRecord;
use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::pattern::Patterns;
use crate::resident::graph::Graph;
use crate::store::Database;
use crate::store::log::take_part;

/// Names of the followers of the log: of their checkpoints, and in what is told of them.
pub const NODES: &str = "nodes";
pub const GRAPH: &str = "graph";

/// How often other servers' appends are looked for by whoever waits for them.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Bytes of events that are read from the store together.
const PART_BYTES: usize = 8 << 20;

/// Bytes that an open workspace takes without any event, roughly: measured over 300 of them.
const EMPTY_BYTES: usize = 128 << 10;

/// What an engine is told by whoever embeds it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Longest run of one pipeline, in milliseconds.
    pub pipeline_ms: u64,
    /// Bytes that one pipeline may build.
    pub pipeline_bytes: usize,
    /// How many queries of a workspace and of a key run together, and the memory that they share.
    pub queries: QueryLimits,
    /// Bytes of open workspaces beyond which those that nobody uses are closed; 0: no limit.
    pub resident_bytes: usize,
    /// How long nobody entered a workspace that is closed, in milliseconds.
    pub idle_ms: i64,
    /// Bytes of files that a workspace may keep; 0: no limit.
    pub quota_bytes: u64,
    /// How long an upload is taken for alive that another server does not hear of, in milliseconds.
    pub upload_lease_ms: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            pipeline_ms: 5_000,
            pipeline_bytes: 64 << 20,
            queries: QueryLimits::default(),
            resident_bytes: 0,
            idle_ms: 600_000,
            quota_bytes: 0,
            upload_lease_ms: 60_000,
        }
    }
}

/// What the workspaces of one engine have in common.
#[derive(Clone)]
pub struct Environment {
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    pub plugins: Arc<Plugins>,
    /// Compiled patterns of types and queries.
    pub patterns: Arc<Patterns>,
    /// Where search by meaning is switched on.
    pub embed: Option<Arc<dyn Embed>>,
    /// Where the bytes of files are.
    pub storage: SharedStorage,
    /// No other process writes to the store.
    pub exclusive: bool,
}

/// The state of a workspace that is open in this process: what everything that works on it shares.
pub struct State {
    pub record: WorkspaceRecord,
    /// The workspace's records in the store.
    pub log: Database,
    pub types: Types,
    pub folded: Folded,
    /// The knowledge graph, as far as its follower has come.
    pub graph: Graph,
    pub graph_progress: Progress,
    pub search: SearchIndex,
    /// What waits for its time.
    pub deadlines: Deadlines,
    pub plugins: PluginHost,
    /// Answers of which further pages may be asked for.
    pub pages: PageCache,
    /// Published revisions of articles.
    pub published: PublishedRevisions,
    /// Which queries may run.
    pub admission: Admission,
    /// The position after which the store says which events concern an agent.
    pub feed_begin: u64,
    /// Which agents are there, and how far each has come.
    pub presence: Presence,
    /// Where the bytes of files are.
    pub storage: Storage,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    /// Compiled patterns of types and queries, those of other workspaces among them.
    pub patterns: Arc<Patterns>,
    exclusive: bool,
    /// Two who fold at a time would fold the same events twice, or under two definitions.
    folding: tokio::sync::Mutex<()>,
}

impl State {
    /// Whether no other process writes to the store.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Returns when a position that somebody follows has moved, when it is time to look whether other servers have appended
    /// (that is not announced here), or at the deadline.
    pub async fn moved(&self, position: &mut watch::Receiver<u64>, deadline: Instant) {
        let until = if self.exclusive { deadline } else { deadline.min(Instant::now() + LOOK_AGAIN) };
        let _ = tokio::time::timeout_at(until, position.changed()).await;
    }

    /// Makes committed events and the states after them visible, and wakes whoever follows them, or the feeds of the agents
    /// that they concern.
    pub fn publish(&self, events: &[Arc<Event>], aggregates: Vec<Arc<Aggregate>>, feed: &[(Arc<str>, usize)]) {
        self.folded.publish(events, aggregates);
        self.search.touch(events.iter().map(|event| &event.aggregate_id));
        self.folded.announce(events, feed);
    }

    /// Replaces one definition, in memory.
    pub fn set_definition(&self, definition: Arc<Definition>) {
        let labels = |definition: &Definition| -> Vec<Arc<str>> {
            definition.fields().iter().filter(|field| field.label).map(|field| field.name.clone()).collect()
        };
        let after = labels(&definition);
        let before = self.types.set(definition);
        if before.is_some_and(|before| labels(&before) != after) {
            self.search.forget(self.folded.snapshot().iter().map(|aggregate| &aggregate.id));
        }
    }

    /// Events after a position, from memory where it reaches back that far: at most so many, and of those in the store no
    /// more than [`PART_BYTES`], but one at least where there is one.
    pub async fn events_after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Event>>> {
        if let Some(events) = self.folded.last_events(position, limit) {
            return Ok(events);
        }
        // Commits may hold far more events than are asked for; those are not read.
        let mut refs = VecDeque::from(self.log.event_refs_after(position, limit).await?);
        let events = self.log.read_event_refs(&take_part(&mut refs, limit, PART_BYTES), None).await?;
        Ok(events.into_iter().map(Arc::new).collect())
    }

    /// Takes in aggregates whose labels changed. Returns whether any is left. It is work: not for threads that serve.
    pub fn keep_labels(&self) -> bool {
        self.search.keep_labels(&self.folded, &self.types)
    }

    /// What vectors are made of.
    pub fn labelled(&self) -> Labelled<'_> {
        Labelled { log: &self.log, folded: &self.folded, types: &self.types }
    }

    /// Bytes that the workspace takes in memory, roughly.
    pub fn size_bytes(&self) -> usize {
        let derived = self.graph.size_bytes() + self.search.size_bytes();
        EMPTY_BYTES + self.folded.size_bytes() + derived + self.pages.size_bytes() + self.published.size_bytes()
    }
}
