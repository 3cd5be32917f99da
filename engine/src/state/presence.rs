//! The presence of agents, and the position that each agent has acknowledged in its feed. Both are kept in memory and
//! written to the store. If other servers use the store, an update is written before the response is sent, so that
//! every server shows the update immediately. If no other server uses the store, the updates of one second are written
//! together, and the responses do not wait for the write.
//!
//! Presence and acknowledgements are not events. A crash can lose updates that are not written yet. The next heartbeat
//! then reports the presence again, and the agent receives and acknowledges the same events again.

use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::Notify;

use crate::error::{Error, Result};
use crate::shared_check::SharedCheck;
use crate::store::Database;
use crate::store::workspace::presence::PresenceRecord;

/// The time for which updates are collected before they are written together.
const GATHER: Duration = Duration::from_secs(1);
/// The maximum delay before a failed write is retried. The delay doubles with each failure up to this value.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// The maximum time by which the clock of another server may be ahead, in milliseconds. A heartbeat whose time is
/// further in the future is ignored, because the clock of its server is wrong.
const MAX_CLOCK_SKEW_MS: i64 = 60_000;
/// The maximum number of agents whose rows one statement removes.
const DELETE_BATCH: usize = 500;

/// The presence and the acknowledged positions of the agents of one workspace.
pub struct Presence {
    db: Database,
    exclusive: bool,
    inner: Mutex<Inner>,
    /// The notification that wakes the writer when updates wait to be written.
    updated: Notify,
    /// The lock that is held during a write. Updates that arrive during a write wait, and the next write writes all of
    /// them together.
    writing: tokio::sync::Mutex<()>,
    reads: SharedCheck,
}

#[derive(Default)]
struct Inner {
    known: FxHashMap<Arc<str>, PresenceRecord>,
    unwritten: FxHashSet<Arc<str>>,
    /// The time of the last read of the store, by the store's clock, in milliseconds since the epoch.
    read_at: Option<i64>,
    /// The time of the last heartbeat or refresh, in milliseconds since the epoch.
    now_ms: i64,
}

impl Inner {
    /// Returns the latest time that an accepted heartbeat can have, in milliseconds since the epoch.
    fn latest(&self) -> i64 {
        self.now_ms.saturating_add(MAX_CLOCK_SKEW_MS)
    }
}

impl Presence {
    pub fn new(db: Database, exclusive: bool) -> Presence {
        let (inner, writing, reads) = Default::default();
        Presence { db, exclusive, inner, updated: Notify::new(), writing, reads }
    }

    /// Reads the presence from the store on the first call. If other servers write to the store, each further call
    /// reads the changes since the previous read. Concurrent calls share one query.
    pub async fn refresh(&self, now_ms: i64) -> Result<()> {
        let is_read = {
            let mut inner = self.inner.lock();
            inner.now_ms = now_ms;
            inner.read_at.is_some()
        };
        if self.exclusive && is_read { Ok(()) } else { self.reads.share(|| self.read_changed()).await }
    }

    async fn read_changed(&self) -> Result<()> {
        let since = self.inner.lock().read_at;
        let (rows, read_at) = self.db.read_presence_since(since).await?;
        let mut inner = self.inner.lock();
        let latest = inner.latest();
        for (agent, record) in rows {
            inner.known.entry(agent).or_default().merge(record, latest);
        }
        inner.read_at = inner.read_at.max(Some(read_at));
        Ok(())
    }

    /// Writes the waiting updates now if other servers use the store, so that these servers show the updates
    /// immediately.
    pub async fn settle(&self) -> Result<()> {
        if self.exclusive { Ok(()) } else { self.write().await }
    }

    /// Records a heartbeat of the given agents.
    pub fn seen<'a>(&self, agents: impl IntoIterator<Item = &'a Arc<str>>, now_ms: i64) {
        let record = PresenceRecord { last_seen_at: now_ms, ..PresenceRecord::default() };
        self.inner.lock().now_ms = now_ms;
        self.update(agents, record);
    }

    /// Records that an agent has processed its feed up to a position.
    pub fn acknowledge(&self, agent: &Arc<str>, position: u64) {
        self.update([agent], PresenceRecord { acknowledged: position, ..PresenceRecord::default() });
    }

    /// Returns the time of the last known heartbeat of an agent, in milliseconds since the epoch. Returns `None` if
    /// this server has received or read no heartbeat, or if the time of the heartbeat is too far in the future.
    pub fn last_seen_at(&self, agent: &str) -> Option<i64> {
        let inner = self.inner.lock();
        let last_seen_at = inner.known.get(agent).map(|record| record.last_seen_at);
        last_seen_at.filter(|at| *at > 0 && *at <= inner.latest())
    }

    /// Returns the position up to which an agent has processed its feed, or 0 if this server has received or read no
    /// acknowledgement.
    pub fn acknowledged(&self, agent: &str) -> u64 {
        self.inner.lock().known.get(agent).map_or(0, |record| record.acknowledged)
    }

    /// Removes the presence and acknowledgements of deleted agents, in memory and in the store.
    pub async fn forget(&self, agents: &[Arc<str>]) -> Result<()> {
        {
            let mut inner = self.inner.lock();
            for agent in agents {
                inner.known.remove(agent);
                inner.unwritten.remove(agent);
            }
        }
        for batch in agents.chunks(DELETE_BATCH) {
            self.db.forget_presence(batch).await?;
        }
        Ok(())
    }

    /// Returns the ids of the agents whose presence is in the store.
    pub async fn kept(&self) -> Result<Vec<Arc<str>>> {
        Ok(self.db.read_presence().await?.into_iter().map(|(agent, _)| agent).collect())
    }

    /// Writes the waiting updates. Updates that cannot be written are kept for a later attempt.
    pub async fn write(&self) -> Result<()> {
        let _one = self.writing.lock().await;
        let (rows, latest) = self.take_unwritten();
        let unwritten = PutBack { presence: self, rows };
        self.db.write_presence(&unwritten.rows, latest).await?;
        unwritten.written();
        Ok(())
    }

    /// Takes the waiting updates. Also returns the latest time that an accepted heartbeat can have.
    fn take_unwritten(&self) -> (Vec<(Arc<str>, PresenceRecord)>, i64) {
        let mut inner = self.inner.lock();
        let unwritten = std::mem::take(&mut inner.unwritten);
        let row = |agent: Arc<str>| Some((agent.clone(), *inner.known.get(&agent)?));
        (unwritten.into_iter().filter_map(row).collect(), inner.latest())
    }

    /// Puts back updates that could not be written. Notifies the writer, because the next update may come much later.
    fn put_back(&self, rows: Vec<(Arc<str>, PresenceRecord)>) {
        self.inner.lock().unwritten.extend(rows.into_iter().map(|(agent, _)| agent));
        self.updated.notify_one();
    }

    /// Writes waiting updates until the task is aborted. Retries a failed write after a growing delay. The log names
    /// the workspace of each failed write.
    pub async fn keep_writing(&self, workspace: &str) {
        let delays = ExponentialBuilder::new().with_min_delay(GATHER).with_max_delay(MAX_RETRY_DELAY);
        let warn = |error: &Error, _| {
            tracing::warn!(%error, workspace, "failed to write the presence of agents; will retry");
        };
        loop {
            self.gathered().await;
            // The retries end only with a write that succeeds, because the number of attempts has no limit.
            let _ = (|| self.write()).retry(delays.without_max_times()).notify(warn).await;
        }
    }

    /// Waits for an update, and then for [`GATHER`], so that further updates are written together with the first.
    async fn gathered(&self) {
        self.updated.notified().await;
        tokio::time::sleep(GATHER).await;
    }

    fn update<'a>(&self, agents: impl IntoIterator<Item = &'a Arc<str>>, record: PresenceRecord) {
        let mut inner = self.inner.lock();
        let latest = inner.latest();
        for agent in agents {
            let known = inner.known.entry(agent.clone()).or_default();
            let previous = *known;
            known.merge(record, latest);
            if *known != previous {
                inner.unwritten.insert(agent.clone());
            }
        }
        if !inner.unwritten.is_empty() {
            self.updated.notify_one();
        }
    }
}

/// Updates that are being written. If the write fails or its request is canceled, dropping this value puts the updates
/// back.
struct PutBack<'a> {
    presence: &'a Presence,
    rows: Vec<(Arc<str>, PresenceRecord)>,
}

impl PutBack<'_> {
    fn written(mut self) {
        self.rows.clear();
    }
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            self.presence.put_back(std::mem::take(&mut self.rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    async fn opened(store: &Store) -> Presence {
        Presence::new(store.workspace("0-1").await.expect("a database"), store.is_exclusive())
    }

    #[tokio::test]
    async fn updates_of_one_server_are_visible_on_other_servers() {
        let store = Store::connect("mem://").await.expect("a store").share();
        let (here, there) = (opened(&store).await, opened(&store).await);
        let agent: Arc<str> = "a".into();
        there.refresh(0).await.expect("read");
        here.seen([&agent], 500);
        here.acknowledge(&agent, 3);
        here.acknowledge(&agent, 2);
        assert_eq!((here.last_seen_at("a"), here.acknowledged("a")), (Some(500), 3));
        here.settle().await.expect("written");
        assert_eq!(there.last_seen_at("a"), None);
        there.refresh(0).await.expect("read");
        assert_eq!((there.last_seen_at("a"), there.acknowledged("a")), (Some(500), 3));
        there.forget(std::slice::from_ref(&agent)).await.expect("removed");
        assert_eq!((there.last_seen_at("a"), there.kept().await.expect("read")), (None, Vec::new()));
        // A server keeps its own newer updates when it reads older updates from the store.
        there.seen([&agent], 900);
        there.refresh(3_000).await.expect("read");
        assert_eq!(there.last_seen_at("a"), Some(900));
    }

    #[tokio::test]
    async fn updates_that_could_not_be_written_are_written_by_a_later_attempt() {
        let store = Store::connect("mem://").await.expect("a store");
        let here = opened(&store).await;
        let agent: Arc<str> = "a".into();
        here.seen([&agent], 500);
        here.gathered().await;
        let (rows, _) = here.take_unwritten();
        here.put_back(rows);
        assert!(here.db.read_presence().await.expect("read").is_empty());
        tokio::time::timeout(MAX_RETRY_DELAY, here.gathered()).await.expect("the writer is notified");
        here.write().await.expect("written");
        assert_eq!(here.db.read_presence().await.expect("read").len(), 1);
    }

    #[tokio::test]
    async fn heartbeats_in_the_future_are_ignored() {
        let store = Store::connect("mem://").await.expect("a store");
        let agent: Arc<str> = "a".into();
        let ahead = opened(&store).await;
        ahead.seen([&agent], 10_000_000);
        ahead.write().await.expect("written");
        // The second server has the right clock.
        let here = opened(&store).await;
        here.refresh(5_000_000).await.expect("read");
        assert_eq!(here.last_seen_at("a"), None);
        here.seen([&agent], 5_000_001);
        assert_eq!(here.last_seen_at("a"), Some(5_000_001));
        here.write().await.expect("written");
        let later = opened(&store).await;
        later.refresh(20_000_000).await.expect("read");
        assert_eq!(later.last_seen_at("a"), Some(5_000_001));
    }
}
