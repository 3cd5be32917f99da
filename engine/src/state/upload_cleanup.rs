//! Removes uploads that no file refers to, at intervals. Such uploads remain if a server crashes, or if their removal
//! fails.

use std::sync::Arc;
use std::time::Duration;

use super::State;
use crate::store::Database;

/// The interval between two removals.
const CLEAR_EVERY: Duration = Duration::from_secs(15);

/// Removes unused uploads immediately, then periodically.
pub async fn keep_clearing(state: Arc<State>, db: Database) {
    let mut checks = tokio::time::interval(CLEAR_EVERY);
    checks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        checks.tick().await;
        if let Err(error) = state.storage.clear_leftovers(&db, &state.record.id).await {
            tracing::warn!(%error, cause = ?error, workspace = %state.record.id, "failed to remove unused uploads");
        }
    }
}
