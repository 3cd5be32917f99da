//! Calls a plugin for several events, with retries. Failed steps are parked, or retried later, after other events. An
//! open circuit prevents further calls.

use std::sync::Arc;
use std::time::Duration;

use super::circuit::{CallSubject, Circuit};
use super::retries::Retries;
use super::step_end::Interruption;
use crate::hook::{Failure, FailureKind, OnError, Outcome};
use crate::model::facts::{Assignment, Facts, Product};
use crate::state::State;
use crate::state::plugins::{HookCall, HookInput, HookValue, PluginIndex};

/// The delays before the retries of a failed call.
const RETRY_DELAYS: [Duration; 3] = [Duration::from_millis(5), Duration::from_millis(25), Duration::from_millis(100)];

/// The outcome of one call, including its retries.
pub enum Attempt<T> {
    Done(T),
    /// The call failed in every attempt, and the step must be parked.
    Failed {
        failure: Failure,
        /// The number of attempts, including the first call.
        attempts: u32,
        /// Whether this failure opened the plugin's circuit.
        opened: bool,
    },
    /// The call failed, or was not made because the plugin is paused. The step is retried later.
    Postponed(Option<Failure>),
    /// No call was made and no retry is planned. Either the circuit is open, or the plugin is paused and the maximum
    /// number of its steps already wait for a retry.
    Refused,
    /// The call failed, and the plugin's `on_error` ignores failures.
    Skipped(Failure),
}

impl<T> Attempt<T> {
    /// Returns the failure of a call that is not retried.
    pub fn given_up(&self) -> Option<&Failure> {
        match self {
            Attempt::Failed { failure, .. } | Attempt::Skipped(failure) => Some(failure),
            Attempt::Done(_) | Attempt::Refused | Attempt::Postponed(_) => None,
        }
    }
}

/// Returns the failure of a call whose result is rejected.
pub fn refused_result(message: String) -> Failure {
    Failure { kind: FailureKind::Result, message, line: None, column: None }
}

/// A value that a hook returned. The value may request appends to the log.
pub trait RequestsAppends {
    /// Returns whether the value requests appends to the log. If so, the step is done only after the appends.
    fn requests_appends(&self) -> bool;
}

impl RequestsAppends for Facts {
    fn requests_appends(&self) -> bool {
        !self.events.is_empty()
    }
}

impl RequestsAppends for Vec<Assignment> {
    fn requests_appends(&self) -> bool {
        !self.is_empty()
    }
}

impl RequestsAppends for Product {
    fn requests_appends(&self) -> bool {
        true
    }
}

/// The policy for a plugin with `on_error = "retry"`.
#[derive(Clone, Copy)]
pub enum RetryPolicy<'a> {
    /// Retries a failed step later, so that no other plugin and no other event waits for the step.
    Later(&'a Retries),
    /// Retries a failed step immediately, as with `on_error = "park"`.
    AtOnce,
}

/// The calls of one plugin in one workspace.
pub struct Calls<'a> {
    pub state: &'a State,
    pub plugin: PluginIndex,
    pub circuit: &'a mut Circuit,
    pub policy: RetryPolicy<'a>,
}

impl Calls<'_> {
    /// Calls a hook for each input, in order, until the circuit opens or the plugin is paused. Returns one attempt for
    /// each input. `step_of` returns the event and aggregate of an input.
    ///
    /// A call whose result requests appends does not count as a success yet. The caller of this function must record
    /// whether the log accepts the appends.
    pub async fn run<I: HookInput, T: RequestsAppends + HookValue>(
        &mut self,
        inputs: &[Arc<I>],
        step_of: impl Fn(&I) -> CallSubject<'_>,
        hook: HookCall<I, T>,
    ) -> Result<Vec<Attempt<T>>, Interruption> {
        let on_error = self.state.plugins.about(self.plugin).on_error;
        let mut room = match (on_error, self.policy) {
            (OnError::Retry, RetryPolicy::Later(retries)) => Some(retries.free_capacity(self.plugin)),
            _ => None,
        };
        let mut attempts = Vec::with_capacity(inputs.len());
        while let Some(rest) = inputs.get(attempts.len()..).filter(|rest| !rest.is_empty()) {
            if self.circuit.is_open() {
                attempts.extend(rest.iter().map(|_| Attempt::Refused));
                break;
            }
            if let Some(room) = room.filter(|_| self.circuit.is_paused()) {
                let aside = |(at, _): (usize, _)| if at < room { Attempt::Postponed(None) } else { Attempt::Refused };
                attempts.extend(rest.iter().enumerate().map(aside));
                break;
            }
            let (plugins, left) = (&self.state.plugins, self.circuit.failures_left(room.is_some()));
            let outcomes = plugins.call(self.plugin, &plugins.about(self.plugin), rest.to_vec(), hook, left).await;
            if outcomes.is_empty() {
                // The plugin threads have ended, so the outcome of these events is unknown.
                return Err(Interruption);
            }
            let outcomes = match room {
                Some(_) => outcomes.into_iter().map(|outcome| (outcome, 1)).collect(),
                None => self.retry(rest, outcomes, &step_of, hook, on_error).await,
            };
            for (input, (outcome, tries)) in rest.iter().zip(outcomes) {
                let attempt = match outcome {
                    Ok(done) => {
                        if !done.value.requests_appends() {
                            self.circuit.succeeded();
                        }
                        Attempt::Done(done.value)
                    }
                    Err(failure) if on_error == OnError::Skip => Attempt::Skipped(failure),
                    Err(failure) if room.is_some_and(|room| room > 0) => {
                        room = room.map(|room| room - 1);
                        self.circuit.postponed(step_of(input));
                        Attempt::Postponed(Some(failure))
                    }
                    Err(failure) => {
                        let opened = self.circuit.failed(step_of(input));
                        Attempt::Failed { failure, attempts: tries, opened }
                    }
                };
                attempts.push(attempt);
                if self.circuit.is_open() || (room.is_some() && self.circuit.is_paused()) {
                    break;
                }
            }
        }
        Ok(attempts)
    }

    /// Retries the failed calls, unless the plugin's `on_error` ignores failures. Each delay applies to all failed
    /// calls together. Returns each outcome with the number of attempts.
    ///
    /// If the plugin is already failing for an aggregate, a failed step of this aggregate is parked without a retry.
    /// The failures of a single aggregate do not open the circuit. Retries for each event of the aggregate would
    /// therefore delay the log again and again.
    async fn retry<I: HookInput, T: HookValue>(
        &self,
        inputs: &[Arc<I>],
        outcomes: Vec<Outcome<T>>,
        step_of: &impl Fn(&I) -> CallSubject<'_>,
        hook: HookCall<I, T>,
        on_error: OnError,
    ) -> Vec<(Outcome<T>, u32)> {
        let mut outcomes: Vec<(Outcome<T>, u32)> = outcomes.into_iter().map(|outcome| (outcome, 1)).collect();
        let mut waits = RETRY_DELAYS.into_iter().filter(|_| on_error != OnError::Skip);
        let skips_retries: Vec<bool> =
            inputs.iter().map(|input| self.circuit.is_failing(step_of(input).aggregate_id)).collect();
        loop {
            let tried = outcomes.iter().zip(&skips_retries).enumerate();
            let failed = tried.filter(|(_, ((outcome, _), skips))| outcome.is_err() && !**skips);
            let failed: Vec<usize> = failed.map(|(at, _)| at).collect();
            let Some(wait) = waits.next().filter(|_| !failed.is_empty()) else { return outcomes };
            let plugins = &self.state.plugins;
            let plugin = plugins.name(self.plugin);
            let workspace = &*self.state.record.id;
            tracing::info!(
                workspace, %plugin, steps = failed.len(), wait_ms = wait.as_millis(), "retrying failed steps"
            );
            tokio::time::sleep(wait).await;
            let retried: Vec<Arc<I>> = failed.iter().filter_map(|at| inputs.get(*at).cloned()).collect();
            let left = self.circuit.failures_left(false);
            let new_outcomes = plugins.call(self.plugin, &plugins.about(self.plugin), retried, hook, left).await;
            for (at, outcome) in failed.into_iter().zip(new_outcomes) {
                if let Some(slot) = outcomes.get_mut(at) {
                    *slot = (outcome, slot.1 + 1);
                }
            }
        }
    }
}
