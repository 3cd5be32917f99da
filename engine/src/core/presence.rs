//! Which agents are there, and how far each has acknowledged its feed: in memory, and a moment later in the store.
//!
//! Neither is an event. What many agents say within a second is written at once; what a crash loses of it is said again
//! by the next heartbeat, or delivered again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::Notify;

use crate::error::Result;
use crate::store::Database;
use crate::store::presence::PresenceRecord;

/// What is said within so long is written together.
const GATHER: Duration = Duration::from_secs(1);
/// How old what other servers have written may be, in milliseconds.
const STALE_MS: i64 = 1_000;
/// Agents whose rows one statement removes.
const FORGOTTEN_AT_ONCE: usize = 500;

/// The agents of one workspace.
pub struct Presence {
    log: Database,
    exclusive: bool,
    inner: Mutex<Inner>,
    /// Tells that something waits to be written.
    said: Notify,
}

#[derive(Default)]
struct Inner {
    known: FxHashMap<Arc<str>, PresenceRecord>,
    unwritten: FxHashSet<Arc<str>>,
    /// When the store was read last.
    read_at: Option<i64>,
}

impl Presence {
    pub fn new(log: Database, exclusive: bool) -> Presence {
        Presence { log, exclusive, inner: Mutex::default(), said: Notify::new() }
    }

    /// Takes in what is in the store, where it is not known or other servers write there.
    pub async fn refresh(&self, now_ms: i64) -> Result<()> {
        let read_at = self.inner().read_at;
        if read_at.is_some_and(|at| self.exclusive || (at..at.saturating_add(STALE_MS)).contains(&now_ms)) {
            return Ok(());
        }
        let rows = self.log.read_presence().await?;
        let mut inner = self.inner();
        for (agent, record) in rows {
            inner.known.entry(agent).or_default().merge(record);
        }
        inner.read_at = Some(now_ms);
        Ok(())
    }

    /// These agents are there.
    pub fn seen<'a>(&self, agents: impl IntoIterator<Item = &'a Arc<str>>, now_ms: i64) {
        let record = PresenceRecord { last_seen_at: now_ms, ..PresenceRecord::default() };
        self.say(agents, record);
    }

    /// An agent has taken in its feed up to a position.
    pub fn acknowledge(&self, agent: &Arc<str>, position: u64) {
        self.say([agent], PresenceRecord { acknowledged: position, ..PresenceRecord::default() });
    }

    /// When an agent was heard from last, as far as is known here.
    pub fn last_seen_at(&self, agent: &str) -> Option<i64> {
        self.inner().known.get(agent).map(|record| record.last_seen_at).filter(|at| *at > 0)
    }

    /// The position up to which an agent has taken in its feed, as far as is known here.
    pub fn acknowledged(&self, agent: &str) -> u64 {
        self.inner().known.get(agent).map_or(0, |record| record.acknowledged)
    }

    /// Removes what is known of agents that are gone.
    pub async fn forget(&self, agents: &[Arc<str>]) -> Result<()> {
        {
            let mut inner = self.inner();
            for agent in agents {
                inner.known.remove(agent);
                inner.unwritten.remove(agent);
            }
        }
        for some in agents.chunks(FORGOTTEN_AT_ONCE) {
            self.log.forget_presence(some).await?;
        }
        Ok(())
    }

    /// The agents of whom something is kept in the store.
    pub async fn kept(&self) -> Result<Vec<Arc<str>>> {
        Ok(self.log.read_presence().await?.into_iter().map(|(agent, _)| agent).collect())
    }

    /// Writes what was said. What cannot be written is tried again later.
    pub async fn write(&self) -> Result<()> {
        let rows: Vec<(Arc<str>, PresenceRecord)> = {
            let mut inner = self.inner();
            let unwritten = std::mem::take(&mut inner.unwritten);
            unwritten.into_iter().filter_map(|agent| Some((agent.clone(), *inner.known.get(&agent)?))).collect()
        };
        let written = self.log.write_presence(&rows).await;
        if written.is_err() {
            self.inner().unwritten.extend(rows.into_iter().map(|(agent, _)| agent));
        }
        Ok(written?)
    }

    /// Writes what was said, whenever something was.
    pub async fn keep_writing(&self) {
        loop {
            self.gathered().await;
            if let Err(error) = self.write().await {
                tracing::warn!(%error, "which agents are there was not written");
            }
        }
    }

    /// Returns when something has waited to be written for a while.
    async fn gathered(&self) {
        self.said.notified().await;
        tokio::time::sleep(GATHER).await;
    }

    fn say<'a>(&self, agents: impl IntoIterator<Item = &'a Arc<str>>, record: PresenceRecord) {
        let mut inner = self.inner();
        for agent in agents {
            let known = inner.known.entry(agent.clone()).or_default();
            let before = *known;
            known.merge(record);
            if *known != before {
                inner.unwritten.insert(agent.clone());
            }
        }
        if !inner.unwritten.is_empty() {
            self.said.notify_one();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn what_one_server_heard_others_learn() {
        let store = Store::connect("mem://").await.expect("a store").share();
        let (here, there) = (opened(&store).await, opened(&store).await);
        let agent: Arc<str> = "a".into();
        there.refresh(0).await.expect("read");
        here.seen([&agent], 500);
        here.acknowledge(&agent, 3);
        here.acknowledge(&agent, 2);
        assert_eq!((here.last_seen_at("a"), here.acknowledged("a")), (Some(500), 3));
        here.gathered().await;
        here.write().await.expect("written");
        there.refresh(STALE_MS - 1).await.expect("nothing is read");
        assert_eq!(there.last_seen_at("a"), None);
        there.refresh(STALE_MS).await.expect("read");
        assert_eq!((there.last_seen_at("a"), there.acknowledged("a")), (Some(500), 3));
        there.forget(std::slice::from_ref(&agent)).await.expect("removed");
        assert_eq!((there.last_seen_at("a"), there.kept().await.expect("read")), (None, Vec::new()));
        // What it heard itself is kept though the store knows less.
        there.seen([&agent], 900);
        there.refresh(STALE_MS * 3).await.expect("read");
        assert_eq!(there.last_seen_at("a"), Some(900));
    }
}
