//! The environment of one query: the time, the caller, and the time and memory limits that can end the query.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::error::{EXCEEDED_MEMORY, Error, Result};
use super::known_types::KnownTypes;
use crate::model::pattern::Patterns;
use crate::model::value::Value;

/// The maximum number of warnings that [`Context::warn`] collects for a query, without the last warning, which states
/// that there are further warnings.
const MAX_WARNINGS: usize = 20;

/// A function that returns the id of the project that has the given slug.
pub type ProjectOfSlug<'a> = dyn Fn(&str) -> Option<Arc<str>> + 'a;

/// The environment of one query. The caller passes in the time and a stopwatch, so this module reads no clock.
pub struct Context<'a> {
    /// The value of `$$NOW` in milliseconds since the epoch, constant for the whole query.
    pub now_ms: i64,
    /// The seed of `$rand` and `$sample`.
    pub seed: u64,
    /// The value of `$$USER`.
    pub user: Value,
    /// The value of `$$WORKSPACE`.
    pub workspace: Value,
    /// The stopwatch of the query, which returns the microseconds since the query began.
    pub elapsed_us: &'a dyn Fn() -> u64,
    pub limit_us: u64,
    /// The number of bytes that the query may still allocate for rows and intermediate values together.
    pub bytes_left: Cell<i64>,
    /// The function that reserves bytes of shared memory for the query. The queries of a caller share a memory limit,
    /// and the queries of a workspace share another limit. The function returns `false` if one of the two limits leaves
    /// too few bytes.
    pub share: Option<&'a dyn Fn(usize) -> bool>,
    /// The memory limit of the query in bytes, for error messages.
    limit_bytes: i64,
    /// The value of `bytes_left` before the first charge.
    initial_bytes: i64,
    /// The number of bytes that must remain in `bytes_left`. A charge that brings `bytes_left` below this number fails.
    floor: Cell<i64>,
    /// The number of bytes that the query has reserved from the shared memory so far.
    granted: Cell<i64>,
    /// A cache of compiled patterns that queries share. Without a cache, each query compiles its patterns again.
    pub patterns: Option<Arc<Patterns>>,
    /// The number of patterns that the pipeline has compiled and keeps.
    pub patterns_held: Cell<usize>,
    /// The types of the workspace, which are used to convert constants and to check names.
    pub types: Option<KnownTypes<'a>>,
    /// The function that returns the id of the project that has the given slug. Used to convert constants.
    pub projects: Option<&'a ProjectOfSlug<'a>>,
    warnings: RefCell<Vec<String>>,
    conversions: RefCell<Vec<Option<Value>>>,
    ticks: Cell<u32>,
    draws: Cell<u64>,
}

impl<'a> Context<'a> {
    pub fn new(now_ms: i64, seed: u64, elapsed_us: &'a dyn Fn() -> u64, limit_us: u64, limit_bytes: i64) -> Self {
        Context {
            now_ms,
            seed,
            user: Value::Null,
            workspace: Value::Null,
            elapsed_us,
            limit_us,
            bytes_left: Cell::new(limit_bytes),
            share: None,
            limit_bytes,
            initial_bytes: limit_bytes,
            floor: Cell::new(0),
            granted: Cell::new(0),
            patterns: None,
            patterns_held: Cell::new(0),
            types: None,
            projects: None,
            warnings: RefCell::default(),
            conversions: RefCell::default(),
            ticks: Cell::new(0),
            draws: Cell::new(0),
        }
    }

    /// Reduces the memory of the query by the bytes that an earlier step has allocated.
    pub fn with_spent_bytes(mut self, bytes: i64) -> Self {
        self.initial_bytes = self.initial_bytes.saturating_sub(bytes);
        self.bytes_left.set(self.initial_bytes);
        self
    }

    /// Adds a warning to the response of the query, unless the response already contains the warning. After the first
    /// [`MAX_WARNINGS`] warnings, one last warning states that there are further warnings.
    pub fn warn(&self, warning: String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&warning) {
            warnings.push(warning);
        } else if warnings.len() == MAX_WARNINGS && !warnings.contains(&warning) {
            warnings.push(format!("there are further warnings; the first {MAX_WARNINGS} are shown"));
        }
    }

    /// Returns the warnings, and removes them from the query.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// Records a specification whose constants were converted, or `None` if the conversion changed no constant of the
    /// specification.
    pub fn record_conversion(&self, converted: Option<Value>) {
        self.conversions.borrow_mut().push(converted);
    }

    /// Returns the values that [`record_conversion`](Self::record_conversion) has recorded, in the order of the calls,
    /// and removes these values from the query.
    pub fn take_conversions(&self) -> Vec<Option<Value>> {
        self.conversions.take()
    }

    /// Counts one row or item of work. Checks the time after every 256 items, and returns an error if the query has
    /// exceeded its time limit.
    pub fn tick(&self) -> Result<()> {
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        // Reading the stopwatch costs more than processing most rows.
        if ticks.is_multiple_of(256) { self.check_time() } else { Ok(()) }
    }

    /// Restarts the sequence of random numbers. Callers restart the sequence before each run that must draw the same
    /// numbers.
    pub fn restart_random(&self) {
        self.draws.set(0);
    }

    /// Returns a random number from 0 up to, but not including, 1. Queries with the same seed draw the same numbers,
    /// regardless of the source of their rows.
    pub fn draw(&self) -> f64 {
        let draw = self.draws.get().wrapping_add(1);
        self.draws.set(draw);
        fastrand::Rng::with_seed(self.seed ^ draw.wrapping_mul(0x9e37_79b9_7f4a_7c15)).f64()
    }

    /// Counts `count` rows or items of work, as [`tick`](Context::tick) does for one.
    pub fn tick_many(&self, count: usize) -> Result<()> {
        let before = self.ticks.get();
        let after = before.wrapping_add(count as u32);
        self.ticks.set(after);
        if before / 256 != after / 256 { self.check_time() } else { Ok(()) }
    }

    /// Counts the work of reading `bytes` bytes, where 256 bytes count as one row.
    pub fn tick_bytes(&self, bytes: usize) -> Result<()> {
        self.tick_many(1 + bytes / 256)
    }

    /// Returns an error if the query has exceeded its time limit. Each call reads the stopwatch.
    pub fn check_time(&self) -> Result<()> {
        if (self.elapsed_us)() > self.limit_us { Err(self.timeout()) } else { Ok(()) }
    }

    /// Returns the error for a query that has exceeded its time limit.
    pub fn timeout(&self) -> Error {
        let limit_ms = self.limit_us / 1_000;
        Error::timeout(format!("the pipeline took longer than {limit_ms} ms, the limit `pipeline.timeout`"))
    }

    /// Adds charged bytes back to the query's memory budget.
    pub fn give_back(&self, bytes: usize) {
        self.bytes_left.set(self.bytes_left.get().saturating_add_unsigned(bytes as u64));
    }

    /// Returns the number of bytes that may still be charged.
    pub fn remaining_bytes(&self) -> usize {
        usize::try_from(self.bytes_left.get().saturating_sub(self.floor.get())).unwrap_or(0)
    }

    /// Runs `work`, and returns its result and the number of bytes that `work` has charged.
    pub fn charged<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, usize)> {
        let before = self.bytes_left.get();
        let done = work()?;
        Ok((done, usize::try_from(before.saturating_sub(self.bytes_left.get())).unwrap_or(0)))
    }

    /// Runs `work`, and then cancels the memory charges that `work` made, because the result is dropped soon. A caller
    /// that keeps a part of the result charges the query for the part.
    pub fn uncharged<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.bytes_left.get();
        let result = work()?;
        self.bytes_left.set(before);
        Ok(result)
    }

    /// Runs `work`, which may charge at most `bytes` bytes. Then cancels the memory charges that `work` made.
    pub fn with_byte_limit<T>(&self, bytes: i64, work: impl FnOnce() -> T) -> T {
        let (bytes_left, floor) = (self.bytes_left.get(), self.floor.get());
        self.floor.set(floor.max(bytes_left.saturating_sub(bytes)));
        let done = work();
        self.floor.set(floor);
        self.bytes_left.set(bytes_left);
        done
    }

    /// Charges the query for the bytes of a newly built value. Returns an error if the memory of the query or the
    /// shared memory is exhausted.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        let remaining = self.bytes_left.get().saturating_sub(bytes as i64);
        self.bytes_left.set(remaining);
        if remaining < self.floor.get() {
            return Err(self.out_of_memory());
        }
        let used = self.initial_bytes.saturating_sub(remaining);
        if used > self.granted.get() { self.draw_on_share(used) } else { Ok(()) }
    }

    /// Returns the error for a query that needs more memory than it may use.
    pub fn out_of_memory(&self) -> Error {
        let limit = self.limit_bytes;
        Error::new(EXCEEDED_MEMORY, format!("the pipeline needs more than {limit} bytes, the limit `pipeline.memory`"))
    }

    /// Reserves shared memory for the `used` bytes of the query, in whole units of 1 MiB. The reservation lasts until
    /// the query ends, even if the query frees the values earlier.
    fn draw_on_share(&self, used: i64) -> Result<()> {
        const GRANT_BYTES: u64 = 1 << 20;
        let missing = used.saturating_sub(self.granted.get()).unsigned_abs().next_multiple_of(GRANT_BYTES);
        let bytes = usize::try_from(missing).unwrap_or(usize::MAX);
        if self.share.is_some_and(|share| !share(bytes)) {
            let message = "the concurrent pipelines of the key, of the user or of the workspace have reached the limit on \
                           their shared memory, a multiple of `pipeline.memory`";
            return Err(Error { is_of_shared_memory: true, ..Error::new(EXCEEDED_MEMORY, message) });
        }
        self.granted.set(self.granted.get().saturating_add_unsigned(missing));
        Ok(())
    }
}
