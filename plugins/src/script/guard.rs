//! Enforces the limits of time, memory and log lines of a running call, and counts the steps of the call.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rhai::{Dynamic, EvalAltResult, Position};

use crate::limits::CallLimits;
use crate::memory::allocated;

/// The number of lines that one call may log.
const LOG_LINES: u32 = 100;

const FAR_FUTURE: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits and the time of the call that is running on this thread.
#[derive(Clone, Copy)]
struct ScriptWatch {
    deadline: Instant,
    /// The value of [`allocated`] above which the call is stopped, in bytes.
    memory_end: i64,
    /// The time of the call's event, or the current time for the hook `tool`, in milliseconds since the epoch.
    now_ms: i64,
}

thread_local! {
    static WATCH: Cell<Option<ScriptWatch>> = const { Cell::new(None) };
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    static LOGGED: Cell<u32> = const { Cell::new(0) };
    static HOST_STEPS: Cell<u64> = const { Cell::new(0) };
}

/// The number of bytes that a host function reads in one step.
const BYTES_PER_STEP: usize = 10;

/// Enforces the limits of the call that is running on this thread, until the guard is dropped.
pub(super) struct Guard {
    previous: Option<ScriptWatch>,
}

impl Guard {
    pub(super) fn begin(limits: &CallLimits, now_ms: i64) -> Guard {
        let memory_end = allocated().saturating_add(i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX));
        // A deadline beyond the range of the clock is replaced by a deadline that no call reaches.
        let now = Instant::now();
        let deadline = now.checked_add(Duration::from_millis(limits.deadline_ms)).unwrap_or(now + FAR_FUTURE);
        OPERATIONS.set(0);
        LOGGED.set(0);
        HOST_STEPS.set(0);
        Guard { previous: WATCH.replace(Some(ScriptWatch { deadline, memory_end, now_ms })) }
    }

    /// Returns the number of operations that the call has executed.
    pub(super) fn operations() -> u64 {
        OPERATIONS.get()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        WATCH.set(self.previous);
    }
}

/// The limit that stops a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Deadline,
    Memory,
}

/// Records the number of operations. Returns a value if the call must stop. The interpreter calls this function for
/// every operation.
pub(super) fn progress(operations: u64) -> Option<Dynamic> {
    OPERATIONS.set(operations);
    stop().map(Dynamic::from)
}

/// Counts a step, and fails if the call must stop. Host functions that may run long call this function repeatedly.
pub(super) fn checkpoint() -> Result<(), Box<EvalAltResult>> {
    HOST_STEPS.set(HOST_STEPS.get() + 1);
    stop().map_or(Ok(()), |stop| Err(EvalAltResult::ErrorTerminated(Dynamic::from(stop), Position::NONE).into()))
}

/// Counts the steps of a host function that reads a whole text.
pub(super) fn count_read(text: &str) {
    HOST_STEPS.set(HOST_STEPS.get() + (text.len() / BYTES_PER_STEP) as u64);
}

/// Returns the number of steps of the last call on this thread: the operations of the script, the checkpoints of host
/// functions, and one step for every [`BYTES_PER_STEP`] bytes of text that host functions read.
#[cfg(test)]
pub(super) fn steps() -> u64 {
    OPERATIONS.get() + HOST_STEPS.get()
}

/// Returns the time of the call's event, or the current time for the hook `tool`, in milliseconds since the epoch. A
/// script has no other clock. Returns 0 if no call is running on this thread.
pub(super) fn now_ms() -> i64 {
    WATCH.get().map_or(0, |watch| watch.now_ms)
}

/// Counts a log line. Returns whether the call may write the line.
pub(super) fn may_log() -> bool {
    let logged = LOGGED.get();
    LOGGED.set(logged.saturating_add(1));
    logged < LOG_LINES
}

fn stop() -> Option<StopReason> {
    let watch = WATCH.get()?;
    if allocated() > watch.memory_end {
        return Some(StopReason::Memory);
    }
    (Instant::now() > watch.deadline).then_some(StopReason::Deadline)
}
