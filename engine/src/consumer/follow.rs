//! The loop of a follower: runs steps, pauses near the log's end, waits after failures, and ends when the consumer is
//! stopped.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Result;
use crate::metric;
use crate::state::State;
use crate::state::background::StopSignal;

/// The minimum lag, in events, at which a follower with [`FollowPause::NearTheEnd`] does not pause between steps.
const MIN_UNPAUSED_LAG: u64 = 256;
/// The shortest wait after a failed step. Each further failure doubles the wait.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The longest wait after a failed step.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);
/// The interval at which a server checks whether another server still processes the log.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which a follower continues after the consumer is stopped, so that little work is left for the next
/// start.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// Determines when a follower pauses between steps, and for how long.
#[derive(Clone, Copy)]
pub enum FollowPause {
    /// Pauses after a step if the step left no events to process, or if events were appended since the step.
    WhileAppending(Duration),
    /// Pauses while the follower is less than [`MIN_UNPAUSED_LAG`] events behind the log's end.
    NearTheEnd(Duration),
}

/// The outcome of a step.
pub enum StepOutcome {
    /// The follower has processed the log up to this position.
    Reached(u64),
    /// The follower has processed the log up to `reached`. The next work is due at `until_ms`, or earlier if events are
    /// appended.
    Resting {
        reached: u64,
        /// The time of the next work, in milliseconds since the epoch.
        until_ms: i64,
    },
    /// The follower has processed the log up to `reached`. A failed step of a plugin is retried at `at_ms`, in
    /// milliseconds since the epoch.
    Retrying { reached: u64, at_ms: i64 },
    /// The step completed only a part of the work that is due without a new event, such as the comparison of edges
    /// after a redefinition of types. The next step continues this work.
    Unfinished,
    /// The step ended early, because another server has taken over or the threads of the plugins have ended. The events
    /// of the step must be processed again.
    Interrupted,
    /// Another server processes the log.
    Following,
}

/// Runs `step` once, and again whenever one of these conditions holds: the log has unprocessed events; the last step
/// failed or left work unfinished; work or a retry is due; types were redefined; plugins were reloaded; or another
/// server reports progress. While another server processes the log, also runs `step` at the interval
/// [`CHECK_INTERVAL`]. After the consumer is stopped, starts further steps for at most [`STOP_WITHIN`] while events
/// are left.
pub async fn follow(
    state: Arc<State>,
    name: &'static str,
    rest: FollowPause,
    mut stopped: StopSignal,
    step: impl AsyncFn(Arc<State>) -> Result<StepOutcome>,
) {
    let mut head = state.folded.head.follow();
    let mut redefined = state.types.redefined.follow();
    let mut reloaded = state.plugins.follow_versions();
    let mut reported = state.reported.subscribe();
    let (FollowPause::WhileAppending(pause) | FollowPause::NearTheEnd(pause)) = rest;
    let mut wait = pause;
    let mut stop_at = None;
    loop {
        reported.mark_unchanged();
        let stepped = step(state.clone()).await;
        let is_following = matches!(stepped, Ok(StepOutcome::Following));
        let lag = match &stepped {
            Ok(
                StepOutcome::Reached(reached)
                | StepOutcome::Resting { reached, .. }
                | StepOutcome::Retrying { reached, .. },
            ) => {
                wait = pause;
                head.borrow_and_update().saturating_sub(*reached)
            }
            Ok(StepOutcome::Interrupted | StepOutcome::Unfinished | StepOutcome::Following) if stopped.has_begun() => {
                return;
            }
            Ok(StepOutcome::Following) => {
                wait = pause;
                head.mark_unchanged();
                0
            }
            Ok(StepOutcome::Unfinished) => {
                wait = pause;
                u64::MAX
            }
            Ok(StepOutcome::Interrupted) => u64::MAX,
            Err(error) => {
                metric::CONSUMER_FAILURES.add(&[name], 1);
                let workspace = &*state.record.id;
                tracing::warn!(%error, workspace, consumer = name, "the step failed and will be retried");
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
        let rest_until = match stepped {
            Ok(StepOutcome::Resting { until_ms, .. }) => Some(until_ms),
            // Retries do not delay events that were appended during the step.
            Ok(StepOutcome::Retrying { at_ms, .. }) if lag == 0 => Some(at_ms),
            _ => None,
        };
        if lag == 0 || rest_until.is_some() {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                changed = redefined.changed() => if changed.is_err() { return },
                changed = reloaded.changed() => if changed.is_err() { return },
                changed = reported.changed() => if changed.is_err() { return },
                () = stopped.begun() => {}
                () = until(&state, rest_until) => {}
                () = tokio::time::sleep(CHECK_INTERVAL), if is_following => {}
            }
        }
        let hurries = wait == pause
            && rest_until.is_none()
            && match rest {
                FollowPause::WhileAppending(_) => lag > 0 && !head.has_changed().unwrap_or(true),
                FollowPause::NearTheEnd(_) => lag >= MIN_UNPAUSED_LAG,
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
pub async fn rest(stopped: &mut StopSignal, time: Duration) {
    if !stopped.has_begun() {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = stopped.begun() => {}
        }
    }
}
