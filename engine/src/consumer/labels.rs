//! Keeps the index of labels up with the log, so that a search finds little to take in.

use std::sync::Arc;
use std::time::Duration;

use crate::core::State;
use crate::core::background::Stopped;

/// A pause between steps lets many changes of one aggregate become one.
const PAUSE: Duration = Duration::from_millis(200);

/// Follows the log until it is told to stop. Nothing happens before somebody has searched.
pub async fn follow(state: Arc<State>, mut stopped: Stopped) {
    let mut head = state.folded.head().follow();
    while !stopped.has_begun() {
        let mut behind = state.search.labels.is_behind();
        if behind {
            let kept = state.clone();
            behind = tokio::task::spawn_blocking(move || kept.keep_labels()).await.unwrap_or_else(|error| {
                tracing::error!(%error, "labels were not taken in");
                false
            });
        }
        if !behind {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                () = stopped.begun() => {}
            }
        }
        super::follow::rest(&mut stopped, PAUSE).await;
    }
}
