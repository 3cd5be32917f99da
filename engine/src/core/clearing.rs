//! Removing what no file names: what servers left that died, and what could not be removed at once.

use std::sync::Arc;
use std::time::Duration;

use super::State;

/// How often it is looked for.
const CLEAR_EVERY: Duration = Duration::from_secs(15);

/// Clears at once, and then now and then.
pub async fn keep_clearing(state: Arc<State>) {
    let mut looks = tokio::time::interval(CLEAR_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Err(error) = state.storage.clear_leftovers(&state.log, &state.record.id).await {
            tracing::warn!(%error, cause = ?error, workspace = %state.record.id, "bytes that no file names were not removed");
        }
    }
}
