//! Keeps the vectors of labels current with the log, if an embedding is enabled.

use std::sync::Arc;
use std::time::Duration;

use crate::state::State;
use crate::state::background::StopSignal;
use crate::store::Database;

/// The pause after changes. Several changes of one aggregate during the pause cause only one update.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest wait after failures. The wait after the first failure is twice [`PAUSE`]. Each further failure in a row
/// doubles the wait.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Updates the vectors until the consumer is stopped.
pub async fn follow(state: Arc<State>, db: Database, mut stopped: StopSignal) {
    let Some(vectors) = &state.search.vectors else { return };
    let mut head = state.folded.head.follow();
    let mut wait = PAUSE;
    while !stopped.has_begun() {
        match vectors.step(state.labelled(), &db).await {
            Ok(()) => wait = PAUSE,
            Err(error) => {
                tracing::warn!(
                    workspace = %state.record.id, error = &error as &dyn std::error::Error,
                    "failed to embed labels; will retry"
                );
                wait = (wait * 2).min(MAX_RETRY_DELAY);
                crate::consumer::follow::rest(&mut stopped, wait).await;
                continue;
            }
        }
        if vectors.waiting() == 0 {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                () = stopped.begun() => {}
            }
            crate::consumer::follow::rest(&mut stopped, PAUSE).await;
        }
    }
}
