//! The leadership of a workspace: which of several servers runs the workspace's plugins, timers and snapshots.
//!
//! The leader keeps the leadership until the leader closes the workspace or another server takes over. Another server
//! takes over if the leader has released the leadership, has stopped or has not reported for ten seconds, or if an
//! operation on the other server changes the graph. The store rejects writes of a former leader.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::peers::Peers;
use crate::error::{Error, Result};
use crate::metric;
use crate::store::workspace::leader::Leader;
use crate::store::{self, Database};

/// The interval at which a server that waits for the leader checks whether the leader has changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The leadership of one open workspace.
pub struct Leadership {
    workspace_id: Arc<str>,
    db: Database,
    /// The servers of the store. `None` if no other server writes to the store; this server then always leads.
    peers: Option<Arc<Peers>>,
    known: Mutex<Option<LeaderReading>>,
}

/// The leader when the store was last read.
struct LeaderReading {
    leader: Leader,
    read_at: Instant,
    /// The number of gaps of this server's pulse at `read_at`.
    gaps: u64,
}

/// The leader of a workspace according to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderStatus {
    pub leader: Leader,
    /// Whether this server leads.
    pub is_here: bool,
    /// The time since this server last read the progress of the other servers.
    pub beat_age: Duration,
}

/// The right to process the log of a workspace. A leader of a shared store has an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    pub epoch: Option<u64>,
}

impl Leadership {
    pub fn new(workspace_id: Arc<str>, db: Database, peers: Option<Arc<Peers>>) -> Leadership {
        Leadership { workspace_id, db, peers, known: Mutex::default() }
    }

    /// Returns the right to process the log, or `None` if another server leads. Takes over from a leader that has
    /// stopped. `is_waiting` states whether work is left. If the known leader is another server that is alive, reads
    /// the leader from the store again only if work is left, and at most once per `CHECK_INTERVAL`.
    pub async fn acquire(&self, is_waiting: bool) -> Result<Option<Lead>> {
        let Some(peers) = &self.peers else { return Ok(Some(Lead { epoch: None })) };
        if let Some(known) = &*self.known.lock() {
            let server = known.leader.server.as_deref().unwrap_or_default();
            // After a gap, another server may have taken over.
            if *server == *peers.server_id && known.gaps == peers.gaps(Instant::now()) {
                return Ok(Some(Lead { epoch: Some(known.leader.epoch) }));
            }
            let is_recent = known.read_at.elapsed() < CHECK_INTERVAL;
            let is_other = *server != *peers.server_id && !server.is_empty();
            if is_other && peers.is_alive(server) && (is_recent || !is_waiting) {
                return Ok(None);
            }
        }
        self.lead(peers, false).await
    }

    /// Takes over from any server, and returns the right to process the log.
    pub async fn take_over(&self) -> Result<Lead> {
        let Some(peers) = &self.peers else { return Ok(Lead { epoch: None }) };
        self.lead(peers, true).await?.ok_or(Error::Unavailable(store::Error::Conflict))
    }

    async fn lead(&self, peers: &Peers, force: bool) -> Result<Option<Lead>> {
        let read_at = Instant::now();
        let gaps = peers.gaps(read_at);
        let leader = self.db.lead(&peers.server_id, &peers.alive(), force).await?;
        let is_own = leader.server.as_ref() == Some(&peers.server_id);
        let lead = is_own.then_some(Lead { epoch: Some(leader.epoch) });
        if is_own {
            peers.note_leader(&self.workspace_id, leader.clone());
        }
        let was_own = self.known.lock().replace(LeaderReading { leader, read_at, gaps });
        let was_own = was_own.is_some_and(|known| known.leader.server.as_ref() == Some(&peers.server_id));
        if is_own && !was_own {
            metric::LEADER_CHANGES.add(&[], 1);
        }
        Ok(lead)
    }

    /// Discards the known leader, because another server may lead now.
    pub fn forget(&self) {
        *self.known.lock() = None;
    }

    /// Returns whether the known leader has a lower epoch than `epoch`.
    pub fn is_overtaken(&self, epoch: u64) -> bool {
        self.known.lock().as_ref().is_some_and(|known| known.leader.epoch < epoch)
    }

    /// Discards the known leader if its epoch is lower than `epoch`.
    pub fn forget_before(&self, epoch: u64) {
        self.known.lock().take_if(|known| known.leader.epoch < epoch);
    }

    /// Returns whether this server is the known leader. Returns `false` if the leader is not known, for example after
    /// [`Leadership::forget`]. Returns `true` if no other server writes to the store.
    pub fn is_own(&self) -> bool {
        let Some(peers) = &self.peers else { return true };
        self.known.lock().as_ref().is_some_and(|known| known.leader.server.as_ref() == Some(&peers.server_id))
    }

    /// Reads the leader from the store. Returns `None` if no other server writes to the store.
    pub async fn read(&self) -> Result<Option<LeaderStatus>> {
        let Some(peers) = &self.peers else { return Ok(None) };
        let leader = self.db.read_leader().await?.unwrap_or_default();
        let is_here = leader.server.as_ref() == Some(&peers.server_id);
        Ok(Some(LeaderStatus { leader, is_here, beat_age: peers.beat_age(Instant::now()) }))
    }

    /// Ends the leadership of this server, so that another server can take over immediately. If the release fails,
    /// retries the release in the background, because [`Leadership::acquire`] on another server does not take over from
    /// a server that is alive.
    ///
    /// `is_needed` is whether the workspace still needs a leader. If the workspace needs no leader, no other server
    /// opens the workspace to take over.
    pub async fn release(&self, is_needed: bool) {
        let Some(peers) = &self.peers else { return };
        let known = self.known.lock().take();
        let Some(LeaderReading { leader: Leader { server: Some(server), epoch }, .. }) = known else { return };
        if server != peers.server_id {
            return;
        }
        if !is_needed {
            peers.note_leader(&self.workspace_id, Leader { server: None, epoch });
        }
        if let Err(error) = self.db.release_leadership(&server, epoch).await {
            tracing::debug!(%error, workspace = %self.workspace_id, "failed to release the leadership; will retry");
            let (db, peers) = (self.db.clone(), Arc::downgrade(peers));
            tokio::spawn(async move {
                while peers.strong_count() > 0 && db.release_leadership(&server, epoch).await.is_err() {
                    tokio::time::sleep(CHECK_INTERVAL).await;
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    async fn twins() -> [(Leadership, Arc<Peers>); 2] {
        let store = Store::connect("mem://").await.expect("memory").share();
        let mut twins = Vec::new();
        for name in ["a", "b"] {
            let peers = Arc::new(Peers::new(name.into()));
            peers.set_alive(vec!["a".into(), "b".into()], Instant::now());
            let db = store.workspace("0-1").await.expect("a database");
            twins.push((Leadership::new("0-1".into(), db, Some(peers.clone())), peers));
        }
        twins.try_into().unwrap_or_else(|_| panic!("expected two servers"))
    }

    #[tokio::test]
    async fn a_server_leads_until_it_stops_or_is_no_longer_alive() {
        let [(a, _), (b, of_b)] = twins().await;
        assert_eq!(a.acquire(true).await.expect("the leadership"), Some(Lead { epoch: Some(1) }));
        assert_eq!(b.acquire(true).await.expect("the leadership"), None);
        assert!(a.is_own() && !b.is_own());
        of_b.set_alive(vec!["b".into()], Instant::now());
        assert_eq!(b.acquire(true).await.expect("the leadership"), Some(Lead { epoch: Some(2) }));
        a.forget();
        assert_eq!(a.acquire(true).await.expect("the leadership"), None);
        b.release(true).await;
        a.forget();
        assert_eq!(a.acquire(true).await.expect("the leadership"), Some(Lead { epoch: Some(3) }));
    }

    #[tokio::test]
    async fn a_leader_reads_the_store_again_after_a_suspension() {
        let [(a, of_a), (b, of_b)] = twins().await;
        a.acquire(false).await.expect("the leadership");
        of_b.set_alive(vec!["b".into()], Instant::now());
        b.acquire(true).await.expect("the leadership");
        assert_eq!(
            a.acquire(false).await.expect("the leadership"),
            Some(Lead { epoch: Some(1) }),
            "the server reads the store again"
        );
        let later = Instant::now() + Duration::from_secs(11);
        of_a.set_alive(vec!["a".into(), "b".into()], later);
        assert_eq!(a.acquire(false).await.expect("the leadership"), None);
        assert!(!a.is_own());
    }

    #[tokio::test]
    async fn a_server_reports_the_start_and_the_end_of_its_leadership() {
        let [(a, of_a), _] = twins().await;
        a.acquire(false).await.expect("the leadership");
        let note = |server: Option<&str>| Leader { server: server.map(Arc::from), epoch: 1 };
        assert_eq!(of_a.take_unreported().leaders, [("0-1".into(), note(Some("a")))]);
        a.release(false).await;
        assert_eq!(of_a.take_unreported().leaders, [("0-1".into(), note(None))]);
    }

    #[tokio::test]
    async fn a_server_can_take_over_from_a_leader_that_is_alive() {
        let [(a, _), (b, _)] = twins().await;
        a.acquire(true).await.expect("the leadership");
        assert_eq!(b.take_over().await.expect("the leadership"), Lead { epoch: Some(2) });
        assert!(b.is_own());
    }

    #[tokio::test]
    async fn the_only_server_of_a_store_leads_without_a_leader_record() {
        let db = Store::connect("mem://").await.expect("memory").workspace("0-1").await.expect("a database");
        let alone = Leadership::new("0-1".into(), db, None);
        assert_eq!(alone.acquire(true).await.expect("the leadership"), Some(Lead { epoch: None }));
        assert!(alone.is_own());
        assert_eq!(alone.db.read_leader().await.expect("read"), None);
    }
}
