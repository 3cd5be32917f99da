//! The servers that share a store: the id of this server, the servers that are alive, and the progress and the
//! workspace leaders that this server has yet to report to the other servers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::store::control::servers::{ALIVE_MS, WorkspaceProgress};
use crate::store::workspace::leader::Leader;

/// The servers of a store, as of this server's last reading of the store.
pub struct Peers {
    /// The id of this server, which is new at each start.
    pub server_id: Arc<str>,
    beaten: Mutex<PulseBeat>,
    /// The time of the last beat that showed the loss of a server: the server was alive at the previous beat, and is no
    /// longer alive. `None` if no server was lost.
    lost_at: watch::Sender<Option<Instant>>,
    unreported: Mutex<FxHashMap<Arc<str>, WorkspaceProgress>>,
    /// The workspace leaders that this server has yet to report to the other servers.
    unnoted: Mutex<FxHashMap<Arc<str>, Leader>>,
    /// The notification that wakes the reporting task when progress or a leader must be reported.
    advanced: Notify,
}

/// The progress and the leaders that this server has yet to report to the other servers.
#[derive(Debug, PartialEq)]
pub struct PendingReport {
    pub progress: Vec<(Arc<str>, WorkspaceProgress)>,
    pub leaders: Vec<(Arc<str>, Leader)>,
}

/// The servers that were alive at the last beat of the pulse, and the gaps between beats so far.
#[derive(Default)]
struct PulseBeat {
    alive: Vec<Arc<str>>,
    /// The time of the last beat. `None` before the first beat.
    at: Option<Instant>,
    /// The number of gaps that have ended. A gap is a time of at least [`GAP`] without a successful beat. In a gap,
    /// other servers may have counted this server as stopped.
    gaps: u64,
    /// The time at which the last gap ended.
    gap_ended_at: Option<Instant>,
}

/// The time without a beat after which other servers may count this server as stopped.
const GAP: Duration = Duration::from_millis(ALIVE_MS as u64);

impl Peers {
    pub fn new(server_id: Arc<str>) -> Peers {
        let (beaten, lost_at, unreported, unnoted, advanced) = Default::default();
        Peers { server_id, beaten, lost_at, unreported, unnoted, advanced }
    }

    /// Sets the ids of the servers that are alive. `at` is the time at which the ids were read. Returns the time at
    /// which the previous ids were read.
    pub fn set_alive(&self, servers: Vec<Arc<str>>, at: Instant) -> Option<Instant> {
        let mut beaten = self.beaten.lock();
        if beaten.at.is_some_and(|before| at.saturating_duration_since(before) >= GAP) {
            beaten.gaps += 1;
            beaten.gap_ended_at = Some(at);
        }
        if beaten.alive.iter().any(|server| !servers.contains(server)) {
            self.lost_at.send_replace(Some(at));
        }
        beaten.alive = servers;
        beaten.at.replace(at)
    }

    /// Returns the ids of the servers that are alive, including this server.
    pub fn alive(&self) -> Vec<Arc<str>> {
        let mut alive = self.beaten.lock().alive.clone();
        if !alive.contains(&self.server_id) {
            alive.push(self.server_id.clone());
        }
        alive
    }

    pub fn is_alive(&self, server: &str) -> bool {
        *server == *self.server_id || self.beaten.lock().alive.iter().any(|alive| **alive == *server)
    }

    /// Returns the time of the last beat that showed the loss of a server: the server was alive at the previous beat,
    /// and is no longer alive. Returns `None` if no server was lost.
    pub fn lost_at(&self) -> Option<Instant> {
        *self.lost_at.borrow()
    }

    /// Returns a receiver that is notified of each change of [`Peers::lost_at`].
    pub fn follow_lost(&self) -> watch::Receiver<Option<Instant>> {
        self.lost_at.subscribe()
    }

    /// Returns the number of gaps between the beats of this server, including a gap that has not ended. In a gap, other
    /// servers may have counted this server as stopped.
    pub fn gaps(&self, now: Instant) -> u64 {
        let beaten = self.beaten.lock();
        let lasts = beaten.at.is_some_and(|at| now.saturating_duration_since(at) >= GAP);
        beaten.gaps + u64::from(lasts)
    }

    /// Returns the time since the end of the last gap. Returns zero during a gap, and `None` if there was no gap. A gap
    /// is a time of at least [`GAP`] without a successful beat. In a gap, other servers may have counted this server as
    /// stopped.
    pub fn gap_age(&self, now: Instant) -> Option<Duration> {
        let beaten = self.beaten.lock();
        match beaten.at.is_some_and(|at| now.saturating_duration_since(at) >= GAP) {
            true => Some(Duration::ZERO),
            false => beaten.gap_ended_at.map(|ended_at| now.saturating_duration_since(ended_at)),
        }
    }

    /// Returns the time since the last beat, or zero before the first beat.
    pub fn beat_age(&self, now: Instant) -> Duration {
        self.beaten.lock().at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }

    /// Adds the leader of a workspace to the next report to the other servers.
    pub fn note_leader(&self, workspace_id: &Arc<str>, note: Leader) {
        self.unnoted.lock().insert(workspace_id.clone(), note);
        self.advanced.notify_one();
    }

    /// Puts back leaders that could not be reported. Keeps a later leader of the same workspace.
    pub fn put_back_leaders(&self, notes: Vec<(Arc<str>, Leader)>) {
        let mut unnoted = self.unnoted.lock();
        for (workspace_id, note) in notes {
            unnoted.entry(workspace_id).or_insert(note);
        }
    }

    /// Adds progress of a workspace to the next report.
    pub fn advance(&self, workspace_id: &Arc<str>, progress: WorkspaceProgress) {
        let mut unreported = self.unreported.lock();
        let known = unreported.entry(workspace_id.clone()).or_default();
        *known = known.merged(progress);
        self.advanced.notify_one();
    }

    /// Waits until there is progress or a leader to report.
    pub async fn advanced(&self) {
        loop {
            let advanced = self.advanced.notified();
            if !self.unreported.lock().is_empty() || !self.unnoted.lock().is_empty() {
                return;
            }
            advanced.await;
        }
    }

    /// Returns the report for the other servers: the progress and the leaders of workspaces that were added since the
    /// last call.
    pub fn take_unreported(&self) -> PendingReport {
        let progress = std::mem::take(&mut *self.unreported.lock()).into_iter().collect();
        let leaders = std::mem::take(&mut *self.unnoted.lock()).into_iter().collect();
        PendingReport { progress, leaders }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreported_advances_of_a_workspace_are_merged_into_one_report() {
        let peers = Peers::new("s".into());
        assert!(peers.is_alive("s") && !peers.is_alive("t"));
        let at = |position, consumed| WorkspaceProgress { position, consumed, ..WorkspaceProgress::default() };
        peers.advance(&"w".into(), at(3, 0));
        peers.advance(&"w".into(), at(2, 1));
        assert_eq!(peers.take_unreported().progress, [("w".into(), at(3, 1))]);
    }

    #[test]
    fn the_loss_of_a_server_is_recorded_only_once() {
        let (peers, begin) = (Peers::new("s".into()), Instant::now());
        peers.set_alive(vec!["s".into()], begin);
        peers.set_alive(vec!["s".into(), "t".into()], begin + GAP / 4);
        assert_eq!(peers.lost_at(), None);
        for beat in 2..4 {
            peers.set_alive(vec!["s".into()], begin + beat * GAP / 4);
            assert_eq!(peers.lost_at(), Some(begin + GAP / 2));
        }
    }

    #[test]
    fn a_gap_between_two_beats_is_counted_only_once() {
        let (peers, begin) = (Peers::new("s".into()), Instant::now());
        assert_eq!((peers.gaps(begin), peers.gap_age(begin)), (0, None));
        peers.set_alive(Vec::new(), begin);
        assert_eq!(peers.gaps(begin + GAP / 2), 0);
        assert_eq!((peers.gaps(begin + GAP), peers.gap_age(begin + GAP)), (1, Some(Duration::ZERO)));
        peers.set_alive(Vec::new(), begin + GAP);
        assert_eq!(peers.gaps(begin + GAP), 1);
        peers.set_alive(Vec::new(), begin + GAP + GAP / 2);
        assert_eq!(peers.gaps(begin + GAP + GAP / 2), 1);
        assert_eq!(peers.gap_age(begin + GAP + GAP / 2), Some(GAP / 2));
    }
}
