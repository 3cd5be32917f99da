//! Keeps the vectors of labels up with the log, where an embedding is switched on.

use std::sync::Arc;
use std::time::Duration;

use crate::core::State;
use crate::core::background::Stopped;

/// A pause after changes, so that many of one aggregate become one.
const PAUSE: Duration = Duration::from_millis(200);
/// Waits after failures grow from the pause up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Follows the log until it is told to stop.
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
                    "labels were not embedded, will be tried again"
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
