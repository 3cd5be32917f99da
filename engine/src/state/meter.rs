//! Measures the calls of a plugin in one workspace: their number, duration and last failure.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::hook::{Failure, Outcome};
use crate::metric;

/// The number of recent calls whose durations are kept for the percentiles.
const REMEMBERED: usize = 1_024;

/// The measurements of a plugin's calls since the workspace was opened.
#[derive(Default)]
pub struct CallMeter {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    runs: u64,
    errors: u64,
    operations: u64,
    /// The durations of the last [`REMEMBERED`] calls, in microseconds.
    times: VecDeque<u64>,
    last_error: Option<Failure>,
}

/// The measured results of a plugin's calls.
#[derive(Debug, Clone, Default)]
pub struct Measures {
    pub runs: u64,
    pub errors: u64,
    /// The number of script operations in all successful calls.
    pub operations: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub last_error: Option<Failure>,
}

impl CallMeter {
    pub fn record<T>(&self, plugin: &str, microseconds: u64, outcome: &Outcome<T>) {
        metric::PLUGIN_CALL_SECONDS.record(&[plugin], microseconds as f64 / 1e6);
        let mut inner = self.inner.lock();
        inner.runs += 1;
        match outcome {
            Ok(done) => {
                inner.operations += done.operations;
                metric::PLUGIN_OPERATIONS.add(&[plugin], done.operations);
            }
            Err(failure) => {
                inner.errors += 1;
                inner.last_error = Some(failure.clone());
                metric::PLUGIN_ERRORS.add(&[plugin], 1);
            }
        }
        if inner.times.len() == REMEMBERED {
            inner.times.pop_front();
        }
        inner.times.push_back(microseconds);
    }

    pub fn read(&self) -> Measures {
        let inner = self.inner.lock();
        let mut times: Vec<u64> = inner.times.iter().copied().collect();
        times.sort_unstable();
        let at = |share: f64| {
            let rank = ((times.len() as f64 * share).ceil() as usize).saturating_sub(1);
            times.get(rank).map_or(0.0, |microseconds| *microseconds as f64 / 1_000.0)
        };
        Measures {
            runs: inner.runs,
            errors: inner.errors,
            operations: inner.operations,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            last_error: inner.last_error.clone(),
        }
    }
}
