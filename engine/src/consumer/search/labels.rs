//! Keeps the label index current with the log, so that searches rarely have to index aggregates themselves.

use std::sync::Arc;
use std::time::Duration;

use crate::state::State;
use crate::state::background::StopSignal;

/// The pause between two updates of the index. Several changes of one aggregate during the pause cause only one update.
const PAUSE: Duration = Duration::from_millis(200);

/// Updates the label index until the consumer is stopped. Does nothing before the first search.
pub async fn follow(state: Arc<State>, mut stopped: StopSignal) {
    let mut head = state.folded.head.follow();
    let mut redefined = state.search.redefined.follow();
    while !stopped.has_begun() {
        let mut behind = state.search.labels.is_behind();
        if behind {
            let kept = state.clone();
            behind = tokio::task::spawn_blocking(move || kept.keep_labels()).await.unwrap_or_else(|error| {
                tracing::error!(%error, workspace = %state.record.id, "failed to index labels");
                false
            });
        }
        if !behind {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                changed = redefined.changed() => if changed.is_err() { return },
                () = stopped.begun() => {}
            }
        }
        crate::consumer::follow::rest(&mut stopped, PAUSE).await;
    }
}
