//! Removes uploads that no file refers to, at intervals. Such uploads remain if a server crashes, or if their removal
//! fails.

use std::sync::Arc;
use std::time::Duration;

use super::State;
use super::peers::Peers;
use crate::store::Database;

/// The interval between two removals while uploads may be left.
const MIN_INTERVAL: Duration = Duration::from_secs(15);
/// The longest interval. Each removal that finds nothing doubles the interval, so that open workspaces without uploads
/// cost the store little.
const MAX_INTERVAL: Duration = Duration::from_secs(600);

/// Removes unused uploads immediately, then periodically.
pub async fn keep_clearing(state: Arc<State>, db: Database) {
    let mut schedule = CleanupSchedule { interval: MIN_INTERVAL, alive: alive(&state) };
    loop {
        let removed = state.storage.clear_leftovers(&db, &state.record.id).await;
        if let Err(error) = &removed {
            tracing::warn!(%error, cause = ?error, workspace = %state.record.id, "failed to remove unused uploads");
        }
        let mut wait = schedule.after(removed.is_ok_and(|count| count == 0), &alive(&state));
        // A server that crashes leaves its uploads to the other servers.
        while wait > Duration::ZERO {
            let step = wait.min(MIN_INTERVAL);
            tokio::time::sleep(step).await;
            wait = if alive(&state) == schedule.alive { wait - step } else { Duration::ZERO };
        }
    }
}

/// Returns the servers of the store that are alive, in order.
fn alive(state: &State) -> Vec<Arc<str>> {
    let mut alive = state.peers.as_deref().map(Peers::alive).unwrap_or_default();
    alive.sort_unstable();
    alive
}

/// The time of the next removal.
struct CleanupSchedule {
    interval: Duration,
    /// The servers that were alive at the last removal.
    alive: Vec<Arc<str>>,
}

impl CleanupSchedule {
    /// Returns the time until the next removal. `is_clean` is whether the last removal succeeded and found nothing. The
    /// lease of an upload outlives its server, so the interval is short after a change of the servers.
    fn after(&mut self, is_clean: bool, alive: &[Arc<str>]) -> Duration {
        let is_same = *self.alive == *alive;
        if !is_same {
            self.alive = alive.to_vec();
        }
        self.interval = if is_clean && is_same { (self.interval * 2).min(MAX_INTERVAL) } else { MIN_INTERVAL };
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_become_rare_until_uploads_are_found_or_a_server_ends() {
        let (two, one): ([Arc<str>; 2], [Arc<str>; 1]) = (["a".into(), "b".into()], ["a".into()]);
        let mut schedule = CleanupSchedule { interval: MIN_INTERVAL, alive: two.to_vec() };
        assert_eq!(schedule.after(true, &two), MIN_INTERVAL * 2);
        for _ in 0..10 {
            schedule.after(true, &two);
        }
        assert_eq!(schedule.after(true, &two), MAX_INTERVAL);
        assert_eq!(schedule.after(false, &two), MIN_INTERVAL);
        assert_eq!(schedule.after(true, &two), MIN_INTERVAL * 2);
        assert_eq!(schedule.after(true, &one), MIN_INTERVAL);
        assert_eq!(schedule.after(true, &one), MIN_INTERVAL * 2);
    }
}
