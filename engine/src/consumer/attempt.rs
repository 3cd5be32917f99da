//! Calls a plugin for a run of events: tried again where it fails, put aside, and left alone once its circuit opens.

use std::sync::Arc;
use std::time::Duration;

use super::circuit::Circuit;
use crate::core::State;
use crate::core::plugins::PluginIndex;
use crate::hook::{Failure, OnError, Outcome, Plugin};

/// Waits before a failed call is tried again.
const WAITS: [Duration; 3] = [Duration::from_millis(5), Duration::from_millis(25), Duration::from_millis(100)];
/// Waits of a plugin whose failures hold the log up grow to this.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What became of one call.
pub enum Attempt<T> {
    Done(T),
    /// To be put aside, after so many tries.
    Failed {
        failure: Failure,
        attempts: u32,
        /// The circuit opened with it.
        opened: bool,
    },
    /// Not called: the circuit is open.
    Refused,
    /// Failed, and nobody minds.
    Skipped,
}

/// One plugin at work in one workspace.
pub struct Calls<'a> {
    pub state: &'a State,
    pub plugin: PluginIndex,
    pub circuit: &'a mut Circuit,
}

impl Calls<'_> {
    /// Calls a hook for each input, in order. `event_of` tells an input's event.
    pub async fn run<I, T>(
        &mut self,
        inputs: &[Arc<I>],
        event_of: impl Fn(&I) -> &Arc<str>,
        hook: fn(&dyn Plugin, &I) -> Outcome<T>,
    ) -> Vec<Attempt<T>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let on_error = self.state.plugins.about(self.plugin).on_error;
        let mut attempts = Vec::with_capacity(inputs.len());
        while let Some(rest) = inputs.get(attempts.len()..).filter(|rest| !rest.is_empty()) {
            if self.circuit.is_open() {
                attempts.extend(rest.iter().map(|_| Attempt::Refused));
                break;
            }
            let outcomes = self.call(rest.to_vec(), hook).await;
            if outcomes.is_empty() {
                break;
            }
            let outcomes = self.again(rest, outcomes, hook, on_error).await;
            for (input, (outcome, tries)) in rest.iter().zip(outcomes) {
                let attempt = match outcome {
                    Ok(done) => {
                        self.circuit.succeeded();
                        Attempt::Done(done.value)
                    }
                    Err(_) if on_error == OnError::Skip => Attempt::Skipped,
                    Err(failure) => {
                        let opened = self.circuit.failed(event_of(input));
                        Attempt::Failed { failure, attempts: tries, opened }
                    }
                };
                attempts.push(attempt);
                if self.circuit.is_open() {
                    break;
                }
            }
        }
        attempts
    }

    async fn call<I, T>(&self, inputs: Vec<Arc<I>>, hook: fn(&dyn Plugin, &I) -> Outcome<T>) -> Vec<Outcome<T>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.state.plugins.call(self.plugin, inputs, hook, self.circuit.bears()).await
    }

    /// Tries the failed ones again, all of them after each wait. Answers how often each was tried.
    async fn again<I, T>(
        &self,
        inputs: &[Arc<I>],
        outcomes: Vec<Outcome<T>>,
        hook: fn(&dyn Plugin, &I) -> Outcome<T>,
        on_error: OnError,
    ) -> Vec<(Outcome<T>, u32)>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let mut outcomes: Vec<(Outcome<T>, u32)> = outcomes.into_iter().map(|outcome| (outcome, 1)).collect();
        let mut waits = waits(on_error);
        loop {
            let failed: Vec<usize> =
                outcomes.iter().enumerate().filter(|(_, (outcome, _))| outcome.is_err()).map(|(at, _)| at).collect();
            let Some(wait) = waits.next().filter(|_| !failed.is_empty()) else { return outcomes };
            tokio::time::sleep(wait).await;
            let retried: Vec<Arc<I>> = failed.iter().filter_map(|at| inputs.get(*at).cloned()).collect();
            for (at, outcome) in failed.into_iter().zip(self.call(retried, hook).await) {
                if let Some(slot) = outcomes.get_mut(at) {
                    *slot = (outcome, slot.1 + 1);
                }
            }
        }
    }
}

fn waits(on_error: OnError) -> Box<dyn Iterator<Item = Duration> + Send> {
    match on_error {
        OnError::Park => Box::new(WAITS.into_iter()),
        OnError::Skip => Box::new(std::iter::empty()),
        OnError::Retry => {
            let doubled = |wait: &Duration| Some((*wait * 2).min(LONGEST_WAIT));
            Box::new(std::iter::successors(Some(WAITS[0]), doubled))
        }
    }
}
