//! Keeps the vectors of labels current with the log, if an embedding is enabled.

use std::sync::Arc;
use std::time::Duration;

use crate::core::State;
use crate::core::background::Stopped;

/// A pause after changes lets several changes of one aggregate become one.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest wait after failures; the wait starts with the pause and doubles.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Follows the log until the consumer is stopped.
pub async fn follow(state: Arc<State>, mut stopped: Stopped) {
    let Some(vectors) = &state.search.vectors else { return };
    let mut head = state.folded.head().follow();
    let mut wait = PAUSE;
    while !stopped.has_begun() {
        match vectors.step(state.labelled()).await {
            Ok(()) => wait = PAUSE,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "labels were not embedded; this will be retried"
                );
                wait = (wait * 2).min(LONGEST_WAIT);
                super::follow::rest(&mut stopped, wait).await;
                continue;
            }
        }
        if vectors.waiting() == 0 {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                () = stopped.begun() => {}
            }
            super::follow::rest(&mut stopped, PAUSE).await;
        }
    }
}
