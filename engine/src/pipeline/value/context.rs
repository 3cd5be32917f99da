//! What one query is given besides its rows: the fixed time, the caller, and the budget that ends it.

use std::cell::Cell;
use std::sync::Arc;

use super::error::{Code, Error, Result};
use crate::model::pattern::Patterns;
use crate::model::value::Value;

/// One query's surroundings. Time comes in as data and as a stopwatch, so that this room needs no clock.
pub struct Context<'a> {
    /// `$$NOW`, milliseconds since the epoch, the same for the whole query.
    pub now_ms: i64,
    /// Seed of `$rand` and `$sample`.
    pub seed: u64,
    /// `$$USER` and `$$WORKSPACE`.
    pub user: Value,
    pub workspace: Value,
    /// Microseconds since the query began.
    pub elapsed_us: &'a dyn Fn() -> u64,
    pub limit_us: u64,
    /// Bytes that the query may still build, rows and intermediate values together.
    pub bytes_left: Cell<i64>,
    /// Asked for bytes of the memory that this query shares with others; `false` where there are not as many.
    pub share: Option<&'a dyn Fn(usize) -> bool>,
    limit_bytes: i64,
    /// What must be left of the bytes after each charge.
    floor: Cell<i64>,
    /// Bytes that were taken of the shared memory.
    granted: Cell<i64>,
    /// Where compiled patterns are kept for other queries; without it each pattern is compiled anew.
    pub patterns: Option<Arc<Patterns>>,
    /// Patterns that the pipeline holds compiled.
    pub patterns_held: Cell<usize>,
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
            floor: Cell::new(0),
            granted: Cell::new(0),
            patterns: None,
            patterns_held: Cell::new(0),
            ticks: Cell::new(0),
            draws: Cell::new(0),
        }
    }

    /// Called once for each row or item looked at; ends the query when its time is over.
    pub fn tick(&self) -> Result<()> {
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        // Reading the stopwatch costs more than most rows do.
        if ticks.is_multiple_of(256) { self.check_time() } else { Ok(()) }
    }

    /// A random number: the same in every run of a query with the same seed, whatever it reads from.
    pub fn draw(&self) -> f64 {
        let draw = self.draws.get().wrapping_add(1);
        self.draws.set(draw);
        fastrand::Rng::with_seed(self.seed ^ draw.wrapping_mul(0x9e37_79b9_7f4a_7c15)).f64()
    }

    /// As [`tick`](Context::tick), for many at once.
    pub fn tick_many(&self, count: usize) -> Result<()> {
        let before = self.ticks.get();
        let after = before.wrapping_add(count as u32);
        self.ticks.set(after);
        if before / 256 != after / 256 { self.check_time() } else { Ok(()) }
    }

    /// As [`tick`](Context::tick), for work that looks at so many bytes.
    pub fn tick_bytes(&self, bytes: usize) -> Result<()> {
        self.tick_many(1 + bytes / 256)
    }

    /// Ends the query if its time is over, and reads the stopwatch for it each time.
    pub fn check_time(&self) -> Result<()> {
        if (self.elapsed_us)() > self.limit_us { Err(self.timeout()) } else { Ok(()) }
    }

    /// The error that ends a query whose time is over.
    pub fn timeout(&self) -> Error {
        let message = "operation exceeded time limit".into();
        Error { code: Code::QueryTimeout, message, stage: None, hint: None }
    }

    /// Counts bytes no longer that were counted before.
    pub fn give_back(&self, bytes: usize) {
        self.bytes_left.set(self.bytes_left.get().saturating_add_unsigned(bytes as u64));
    }

    /// Bytes that may still be charged.
    pub fn room(&self) -> usize {
        usize::try_from(self.bytes_left.get().saturating_sub(self.floor.get())).unwrap_or(0)
    }

    /// Does work that may charge at most so many bytes, and gives them back.
    pub fn within<T>(&self, bytes: i64, work: impl FnOnce() -> T) -> T {
        let (left, floor) = (self.bytes_left.get(), self.floor.get());
        self.floor.set(floor.max(left.saturating_sub(bytes)));
        let done = work();
        self.floor.set(floor);
        self.bytes_left.set(left);
        done
    }

    /// Counts bytes that a value just built holds; ends the query when its memory is spent.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        let left = self.bytes_left.get().saturating_sub(bytes as i64);
        self.bytes_left.set(left);
        if left < self.floor.get() {
            return Err(Error::new(146, "the pipeline exceeded its memory limit"));
        }
        let used = self.limit_bytes.saturating_sub(left);
        if used > self.granted.get() { self.draw_on_share(used) } else { Ok(()) }
    }

    /// Takes as much of the shared memory as the query uses, in whole parts. What the query builds no longer is its own
    /// until it ends.
    fn draw_on_share(&self, used: i64) -> Result<()> {
        const PART: u64 = 1 << 20;
        let lacking = used.saturating_sub(self.granted.get()).unsigned_abs().next_multiple_of(PART);
        let bytes = usize::try_from(lacking).unwrap_or(usize::MAX);
        if self.share.is_some_and(|share| !share(bytes)) {
            return Err(Error::new(146, "the memory that queries share is used up"));
        }
        self.granted.set(self.granted.get().saturating_add_unsigned(lacking));
        Ok(())
    }
}
