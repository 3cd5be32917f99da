//! Measures the calls of a plugin in one workspace: their number, duration and last failure.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

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
    /// The measures without the percentiles.
    measures: Measures,
    /// The durations of the last [`REMEMBERED`] calls, in microseconds.
    times: VecDeque<u64>,
}

/// The measured results of a plugin's calls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measures {
    pub runs: u64,
    pub errors: u64,
    /// The number of script operations in all successful calls.
    pub operations: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// The time of the last call, in milliseconds since the epoch.
    pub called_at: i64,
    pub last_error: Option<Failure>,
    /// The time of the last failed call, in milliseconds since the epoch.
    pub failed_at: i64,
}

impl Measures {
    /// Adds the measures of other calls of the same plugin. The counts are summed. The percentiles come from the
    /// measures with the later last call. The last error comes from the measures with the later last failure.
    pub fn add(&mut self, other: &Measures) {
        self.runs += other.runs;
        self.errors += other.errors;
        self.operations += other.operations;
        if other.called_at >= self.called_at {
            (self.p50_ms, self.p99_ms, self.called_at) = (other.p50_ms, other.p99_ms, other.called_at);
        }
        if other.last_error.is_some() && other.failed_at >= self.failed_at {
            (self.last_error, self.failed_at) = (other.last_error.clone(), other.failed_at);
        }
    }
}

impl CallMeter {
    /// Records a call that ended at the time `now_ms`, in milliseconds since the epoch.
    pub fn record<T>(&self, plugin: &str, now_ms: i64, microseconds: u64, outcome: &Outcome<T>) {
        metric::PLUGIN_CALL_SECONDS.record(&[plugin], microseconds as f64 / 1e6);
        let mut inner = self.inner.lock();
        inner.measures.runs += 1;
        inner.measures.called_at = now_ms;
        match outcome {
            Ok(done) => {
                inner.measures.operations += done.operations;
                metric::PLUGIN_OPERATIONS.add(&[plugin], done.operations);
            }
            Err(failure) => {
                inner.measures.errors += 1;
                inner.measures.last_error = Some(failure.clone());
                inner.measures.failed_at = now_ms;
                metric::PLUGIN_ERRORS.add(&[plugin], 1);
            }
        }
        if inner.times.len() == REMEMBERED {
            inner.times.pop_front();
        }
        inner.times.push_back(microseconds);
    }

    /// Returns the number of calls.
    pub fn runs(&self) -> u64 {
        self.inner.lock().measures.runs
    }

    pub fn read(&self) -> Measures {
        let inner = self.inner.lock();
        let mut times: Vec<u64> = inner.times.iter().copied().collect();
        times.sort_unstable();
        let at = |share: f64| {
            let rank = ((times.len() as f64 * share).ceil() as usize).saturating_sub(1);
            times.get(rank).map_or(0.0, |microseconds| *microseconds as f64 / 1_000.0)
        };
        Measures { p50_ms: at(0.5), p99_ms: at(0.99), ..inner.measures.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::{FailureKind, HookOutput};

    #[test]
    fn a_sum_of_measures_has_the_latest_error_and_the_percentiles_of_the_latest_call() {
        let failed = |message: &str| Failure {
            kind: FailureKind::Thrown,
            message: message.to_owned(),
            line: Some(1),
            column: None,
        };
        let (one, two) = (CallMeter::default(), CallMeter::default());
        one.record("p", 10, 1_000, &Err::<HookOutput<()>, _>(failed("one")));
        one.record("p", 40, 3_000, &Ok(HookOutput { value: (), operations: 7 }));
        two.record("p", 20, 9_000, &Err::<HookOutput<()>, _>(failed("two")));
        let expected = Measures {
            runs: 3,
            errors: 2,
            operations: 7,
            p50_ms: 1.0,
            p99_ms: 3.0,
            called_at: 40,
            last_error: Some(failed("two")),
            failed_at: 20,
        };
        for (first, second) in [(&one, &two), (&two, &one)] {
            let mut sum = first.read();
            sum.add(&second.read());
            assert_eq!(sum, expected);
        }
    }
}
