//! Watches a running call: its time, memory, operations and log lines.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rhai::{Dynamic, EvalAltResult, Position};

use crate::limits::Limits;
use crate::memory::allocated;

/// Number of lines that one call may log.
const LOG_LINES: u32 = 100;

const FAR_FUTURE: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits of the call that runs on this thread.
#[derive(Clone, Copy)]
struct Watch {
    deadline: Instant,
    /// Limit on the result of [`allocated`].
    memory_end: i64,
    /// The time of the event that the call is about.
    now_ms: i64,
}

thread_local! {
    static WATCH: Cell<Option<Watch>> = const { Cell::new(None) };
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    static LOGGED: Cell<u32> = const { Cell::new(0) };
}

/// A running call on this thread. Dropping the guard ends the call.
pub(super) struct Guard {
    previous: Option<Watch>,
}

impl Guard {
    pub(super) fn begin(limits: &Limits, now_ms: i64) -> Guard {
        let memory_end = allocated().saturating_add(i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX));
        // A deadline beyond the range of the clock is never reached.
        let now = Instant::now();
        let deadline = now.checked_add(Duration::from_millis(limits.deadline_ms)).unwrap_or(now + FAR_FUTURE);
        OPERATIONS.set(0);
        LOGGED.set(0);
        Guard { previous: WATCH.replace(Some(Watch { deadline, memory_end, now_ms })) }
    }

    /// Returns the number of operations of the call.
    pub(super) fn operations() -> u64 {
        OPERATIONS.get()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        WATCH.set(self.previous);
    }
}

/// Why a call is stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Deadline,
    Memory,
}

/// Called by the interpreter for every operation.
pub(super) fn progress(operations: u64) -> Option<Dynamic> {
    OPERATIONS.set(operations);
    stop().map(Dynamic::from)
}

/// Called by host functions that may run long.
pub(super) fn checkpoint() -> Result<(), Box<EvalAltResult>> {
    match stop() {
        Some(stop) => Err(EvalAltResult::ErrorTerminated(Dynamic::from(stop), Position::NONE).into()),
        None => Ok(()),
    }
}

/// Returns the only time that the call can see.
pub(super) fn now_ms() -> i64 {
    WATCH.get().map_or(0, |watch| watch.now_ms)
}

/// Counts a log line. Returns whether the call may write it.
pub(super) fn may_log() -> bool {
    let logged = LOGGED.get();
    LOGGED.set(logged.saturating_add(1));
    logged < LOG_LINES
}

fn stop() -> Option<Stop> {
    let watch = WATCH.get()?;
    if allocated() > watch.memory_end {
        return Some(Stop::Memory);
    }
    (Instant::now() > watch.deadline).then_some(Stop::Deadline)
}
