//! Divides the time of a run among its steps.

use std::cell::Cell;

use crate::pipeline::value::context::Context;

/// A stopwatch that measures one step at a time.
pub struct Stopwatch<'a> {
    query: &'a Context<'a>,
    /// The step that is being measured.
    running: Cell<usize>,
    /// The time at which the measurement of the step began or continued, in microseconds.
    since: Cell<u64>,
    spent: Vec<Cell<u64>>,
}

impl<'a> Stopwatch<'a> {
    pub fn new(query: &'a Context<'a>, steps: usize) -> Stopwatch<'a> {
        // The last entry contains the time that belongs to no step.
        let spent = vec![Cell::new(0); steps + 1];
        Stopwatch { query, running: Cell::new(steps), since: Cell::new((query.elapsed_us)()), spent }
    }

    /// Measures `step` until the next call. Returns the step that was measured until this call.
    pub fn enter(&self, step: usize) -> usize {
        let now = (self.query.elapsed_us)();
        let before = self.running.replace(step);
        let since = self.since.replace(now);
        if let Some(spent) = self.spent.get(before) {
            spent.set(spent.get().saturating_add(now.saturating_sub(since)));
        }
        before
    }

    /// Measures `work` as a part of `step`.
    pub fn timed<T>(&self, step: usize, work: impl FnOnce() -> T) -> T {
        let before = self.enter(step);
        let done = work();
        self.enter(before);
        done
    }

    /// Returns the time of a step in microseconds, or 0 if there is no such step.
    pub fn us(&self, step: usize) -> u64 {
        self.spent.get(step).map_or(0, Cell::get)
    }
}
