//! Regularly removes the uploads that no file refers to. Such uploads remain if a server crashes, or if their removal
//! fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

use super::State;
use super::peers::Peers;
use crate::store::Database;

/// The interval between two cleanups while uploads are in progress, or after a cleanup or a removal has failed.
const SHORT_INTERVAL: Duration = Duration::from_secs(15);
/// The interval between two cleanups while no uploads are in progress.
const LONG_INTERVAL: Duration = Duration::from_secs(600);

/// Removes unused uploads repeatedly: at the start, at intervals, after a removal has failed, and when another server
/// is no longer alive.
pub async fn keep_clearing(state: Arc<State>, db: Database) {
    let mut lost = state.peers.as_deref().map(Peers::follow_lost);
    loop {
        let has_active = state.storage.clear_leftovers(&db, &state.record.id).await;
        if let Err(error) = &has_active {
            tracing::warn!(%error, cause = ?error, workspace = %state.record.id, "failed to remove unused uploads");
        }
        let wait = if has_active.is_ok_and(|has_active| !has_active) { LONG_INTERVAL } else { SHORT_INTERVAL };
        tokio::select! {
            () = sleep(wait) => {}
            () = state.storage.failed_removal() => sleep(SHORT_INTERVAL).await,
            // Other servers remove the uploads of a server that has crashed. A random delay spreads the queries of the
            // open workspaces.
            () = next_loss(&mut lost) => sleep(SHORT_INTERVAL.mul_f64(fraction(state.clock.random_u64()))).await,
        }
    }
}

/// Waits until another server is no longer alive. Waits forever if no other server uses the store.
async fn next_loss(lost: &mut Option<Receiver<Option<Instant>>>) {
    if let Some(lost) = lost
        && lost.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Scales a random number to the range from 0 to 1.
fn fraction(random: u64) -> f64 {
    random as f64 / u64::MAX as f64
}
