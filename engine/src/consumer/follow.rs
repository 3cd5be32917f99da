//! The loop of a follower: it rests near the log's end, waits after failures, and ends when it is stopped.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::core::State;
use crate::core::background::Stopped;
use crate::error::Result;

/// Distance from the log's end, in events, from which a batch is processed without a rest.
const FAR: u64 = 256;
/// Shortest and longest wait after a failure; each failure doubles the wait.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long the consumer continues after a stop, so that little work is left for the next start.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// When a follower rests.
#[derive(Clone, Copy)]
pub enum Rest {
    /// After each step, while appends go on.
    WhileAppending(Duration),
    /// While less than [`FAR`] events from the log's end.
    NearTheEnd(Duration),
}

/// The outcome of a step.
pub enum Stepped {
    /// The follower has reached this position.
    To(u64),
    /// The follower has reached this position, and has nothing to do before a time unless the log grows.
    Resting {
        reached: u64,
        /// Milliseconds since the epoch.
        until_ms: i64,
    },
    /// The step gave way to another task or server, and its events must be processed again.
    MadeWay,
}

/// Runs steps after the log until the consumer is stopped.
pub async fn follow(
    state: Arc<State>,
    name: &'static str,
    rest: Rest,
    mut stopped: Stopped,
    step: impl AsyncFn(Arc<State>) -> Result<Stepped>,
) {
    let mut head = state.folded.head().follow();
    let (Rest::WhileAppending(pause) | Rest::NearTheEnd(pause)) = rest;
    let mut wait = pause;
    let mut stop_at = None;
    loop {
        let stepped = step(state.clone()).await;
        let rest_until = match &stepped {
            Ok(Stepped::Resting { until_ms, .. }) => Some(*until_ms),
            _ => None,
        };
        let lag = match stepped {
            Ok(Stepped::To(reached) | Stepped::Resting { reached, .. }) => {
                wait = pause;
                let lag = head.borrow_and_update().saturating_sub(reached);
                metrics::gauge!("foldwork_consumer_lag_events", "consumer" => name).set(lag as f64);
                lag
            }
            Ok(Stepped::MadeWay) if stopped.has_begun() => return,
            Ok(Stepped::MadeWay) => u64::MAX,
            Err(error) => {
                tracing::warn!(%error, consumer = name, "the step failed and will be retried");
                wait = (wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
                u64::MAX
            }
        };
        if stopped.has_begun() {
            let end = *stop_at.get_or_insert_with(|| Instant::now() + STOP_WITHIN);
            if lag == 0 || wait > pause || Instant::now() >= end {
                return;
            }
            continue;
        }
        if lag == 0 || rest_until.is_some() {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                () = stopped.begun() => {}
                () = until(&state, rest_until) => {}
            }
        }
        let hurries = wait == pause
            && rest_until.is_none()
            && match rest {
                Rest::WhileAppending(_) => lag > 0 && !head.has_changed().unwrap_or(true),
                Rest::NearTheEnd(_) => lag >= FAR,
            };
        if !hurries {
            self::rest(&mut stopped, wait).await;
        }
    }
}

/// Returns when a time has come; never, if there is none.
async fn until(state: &State, at_ms: Option<i64>) {
    match at_ms {
        Some(at_ms) => state.clock.wait_until(at_ms).await,
        None => std::future::pending().await,
    }
}

/// Waits for a time, or until the consumer is stopped.
pub async fn rest(stopped: &mut Stopped, time: Duration) {
    if !stopped.has_begun() {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = stopped.begun() => {}
        }
    }
}
