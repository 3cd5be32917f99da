//! The loop of a follower: runs steps, pauses near the log's end, waits after failures, and ends when the consumer is
//! stopped.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::core::State;
use crate::core::background::Stopped;
use crate::error::Result;

/// The number of events between a follower and the log's end from which the follower no longer pauses between steps.
const MAX_RESTING_LAG: u64 = 256;
/// The shortest wait after a failed step. Each further failure doubles the wait.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The longest wait after a failed step.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);
/// The time for which a follower continues after the consumer is stopped, so that little work is left for the next
/// start.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// When a follower pauses between steps, and for how long.
#[derive(Clone, Copy)]
pub enum Rest {
    /// Pauses after a step if more events were appended during the step.
    WhileAppending(Duration),
    /// Pauses while the follower is less than [`MAX_RESTING_LAG`] events behind the log's end.
    NearTheEnd(Duration),
}

/// The outcome of a step.
pub enum Stepped {
    /// The follower has processed the log up to this position.
    To(u64),
    /// The follower has processed the log up to `reached`. The next work is due at `until_ms`, unless the log grows
    /// earlier.
    Resting {
        reached: u64,
        /// The time of the next work, in milliseconds since the epoch.
        until_ms: i64,
    },
    /// The step ended early in favor of another task or server, and its events must be processed again.
    MadeWay,
}

/// Runs `step` whenever the log has unprocessed events or types were redefined, until the consumer is stopped.
pub async fn follow(
    state: Arc<State>,
    name: &'static str,
    rest: Rest,
    mut stopped: Stopped,
    step: impl AsyncFn(Arc<State>) -> Result<Stepped>,
) {
    let mut head = state.folded.head().follow();
    let mut redefined = state.types.redefined().follow();
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
                wait = (wait * 2).clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY);
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
                changed = redefined.changed() => if changed.is_err() { return },
                () = stopped.begun() => {}
                () = until(&state, rest_until) => {}
            }
        }
        let hurries = wait == pause
            && rest_until.is_none()
            && match rest {
                Rest::WhileAppending(_) => lag > 0 && !head.has_changed().unwrap_or(true),
                Rest::NearTheEnd(_) => lag >= MAX_RESTING_LAG,
            };
        if !hurries {
            self::rest(&mut stopped, wait).await;
        }
    }
}

/// Waits until a time. Waits forever if `at_ms` is `None`.
async fn until(state: &State, at_ms: Option<i64>) {
    match at_ms {
        Some(at_ms) => state.clock.wait_until(at_ms).await,
        None => std::future::pending().await,
    }
}

/// Waits for a duration, or until the consumer is stopped.
pub async fn rest(stopped: &mut Stopped, time: Duration) {
    if !stopped.has_begun() {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = stopped.begun() => {}
        }
    }
}
