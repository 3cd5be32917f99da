//! Parking: stores a failed step with its reason, so that the follower can continue with the log. A step that is
//! retried later is stored with the time of the retry.

use std::sync::Arc;

use super::attempt::Attempt;
use super::circuit::CallSubject;
use super::circuits::Circuits;
use super::retries::{MAX_WAITING, Retries, retry_at};
use crate::consumer::event_context::EventContext;
use crate::hook::{Failure, Hook, OnError};
use crate::metric;
use crate::model::event::Event;
use crate::state::State;
use crate::state::plugins::PluginIndex;
use crate::store::workspace::parked::{ParkedStep, Reason, StepId};

/// The message of a step for which a paused plugin was not called.
const PAUSED: &str = "the plugin is paused, because its last steps failed and wait for a retry";

/// The failure kind of a step for which a stopped or paused plugin was not called.
const CIRCUIT_OPEN: &str = "circuit_open";

/// The parked and released steps that are not yet written, and the steps that wait for a retry.
pub struct ParkingBuffer {
    state: Arc<State>,
    parked: Vec<ParkedStep>,
    released: Vec<StepId>,
    pub retries: Retries,
}

impl ParkingBuffer {
    pub fn new(state: &Arc<State>, retries: Retries) -> ParkingBuffer {
        ParkingBuffer { state: state.clone(), parked: Vec::new(), released: Vec::new(), retries }
    }

    /// Returns the value of a successful call. Parks the step of a call that failed or was not made. The parked step
    /// waits for a retry or for a replay. Does not park a failed step if the plugin's `on_error` ignores failures.
    pub fn receive<T>(
        &mut self,
        circuits: &mut Circuits,
        plugin: PluginIndex,
        hook: Hook,
        context: &EventContext,
        attempt: Attempt<T>,
    ) -> Option<T> {
        match attempt {
            Attempt::Done(value) => return Some(value),
            Attempt::Skipped(_) => {}
            Attempt::Postponed(failure) => self.postpone(plugin, hook, &context.event, failure),
            Attempt::Failed { failure, attempts, opened } => {
                self.park(plugin, hook, &context.event, failure, attempts);
                if opened {
                    circuits.note_opened(plugin, &context.event);
                }
            }
            Attempt::Refused => {
                let message = match circuits.by_plugin[plugin].opened_by() {
                    Some(event) => format!(
                        "the plugin is stopped: it failed for several aggregates in a row, the last time at the event \
                         {event}"
                    ),
                    None => format!("{PAUSED}; at most {MAX_WAITING} steps may wait, so this step gets no retry"),
                };
                let mut parked = self.step(plugin, hook, &context.event, message);
                parked.reason.kind = CIRCUIT_OPEN.into();
                self.add(plugin, parked);
            }
        }
        None
    }

    /// Records the result of the appends that a plugin requested in a step. If the appends were rejected, the step has
    /// failed, and is retried later or parked. The failure of a step that is not retried counts toward the plugin's
    /// circuit, unless the plugin's `on_error` is `skip`. Returns the failure of a step that is not retried.
    pub fn settle(
        &mut self,
        circuits: &mut Circuits,
        plugin: PluginIndex,
        hook: Hook,
        subject: CallSubject<'_>,
        outcome: Result<(), Failure>,
    ) -> Option<Failure> {
        let event = subject.event;
        let circuit = &mut circuits.by_plugin[plugin];
        let Err(failure) = outcome else {
            circuit.succeeded();
            return None;
        };
        let on_error = self.state.plugins.about(plugin).on_error;
        if on_error == OnError::Retry && self.retries.free_capacity(plugin) > 0 {
            circuit.postponed(subject);
            self.postpone(plugin, hook, event, Some(failure));
            return None;
        }
        let has_opened = on_error != OnError::Skip && circuit.failed(subject);
        self.park(plugin, hook, event, failure.clone(), 1);
        if has_opened {
            circuits.note_opened(plugin, event);
        }
        Some(failure)
    }

    /// Parks a step until its first retry. If `failure` is `None`, the plugin was not called, because the plugin is
    /// paused.
    fn postpone(&mut self, plugin: PluginIndex, hook: Hook, event: &Event, failure: Option<Failure>) {
        let calls = u32::from(failure.is_some());
        let retry_at = retry_at(calls, self.state.clock.now_ms());
        let Some(failure) = failure else {
            let mut parked = self.step(plugin, hook, event, PAUSED.to_owned());
            (parked.reason.kind, parked.reason.retry_at) = (CIRCUIT_OPEN.into(), retry_at);
            return self.add(plugin, parked);
        };
        let (workspace, name) = (&*self.state.record.id, self.state.plugins.name(plugin));
        tracing::warn!(
            workspace, plugin = %name, hook = hook.name(), event = %event.event_id, %failure,
            "step failed; will retry"
        );
        let mut parked = self.failed(plugin, hook, event, failure, calls);
        parked.reason.retry_at = retry_at;
        self.add(plugin, parked);
    }

    /// Parks a step that failed after this many attempts.
    pub fn park(&mut self, plugin: PluginIndex, hook: Hook, event: &Event, failure: Failure, attempts: u32) {
        let name = self.state.plugins.name(plugin).clone();
        let workspace = &*self.state.record.id;
        tracing::warn!(
            workspace, plugin = %name, hook = hook.name(), event = %event.event_id, %failure, "step parked"
        );
        metric::STEPS_PARKED.add(&[&name], 1);
        let parked = self.failed(plugin, hook, event, failure, attempts);
        self.add(plugin, parked);
    }

    /// Parks the step of a replayed call that failed. Does not park the step if the plugin's `on_error` ignores
    /// failures.
    pub fn park_replayed(&mut self, plugin: PluginIndex, hook: Hook, event: &Event, failure: Failure) {
        if self.state.plugins.about(plugin).on_error != OnError::Skip {
            self.park(plugin, hook, event, failure, 1);
        }
    }

    /// Replaces the record of a parked step with `parked`, for example to store the reason for a new failure.
    pub fn park_again(&mut self, parked: ParkedStep) {
        match self.state.plugins.find(&parked.id.plugin) {
            Some(plugin) => self.add(plugin, parked),
            None => self.parked.push(parked),
        }
    }

    /// Removes a parked step with the next write.
    pub fn release(&mut self, step: StepId) {
        self.forget(&step);
        self.released.push(step);
    }

    /// Removes the scheduled retry of a step. Called if the step is no longer stored or will be removed.
    pub fn forget(&mut self, step: &StepId) {
        if let Some(plugin) = self.state.plugins.find(&step.plugin) {
            self.retries.remove(plugin, step);
        }
    }

    fn add(&mut self, plugin: PluginIndex, parked: ParkedStep) {
        self.retries.record(plugin, &parked);
        self.parked.push(parked);
    }

    pub fn is_empty(&self) -> bool {
        self.parked.is_empty() && self.released.is_empty()
    }

    /// Takes the unwritten changes: the parked steps and the released steps.
    pub fn drain(&mut self) -> (Vec<ParkedStep>, Vec<StepId>) {
        (std::mem::take(&mut self.parked), std::mem::take(&mut self.released))
    }

    fn failed(&self, plugin: PluginIndex, hook: Hook, event: &Event, failure: Failure, attempts: u32) -> ParkedStep {
        let Failure { kind, message, line, column } = failure;
        let ParkedStep { id, reason } = self.step(plugin, hook, event, message);
        ParkedStep { id, reason: Reason { kind: kind.name().into(), line, column, attempts, ..reason } }
    }

    fn step(&self, plugin: PluginIndex, hook: Hook, event: &Event, message: String) -> ParkedStep {
        let about = self.state.plugins.about(plugin);
        let reason = Reason {
            event_id: event.event_id.clone(),
            aggregate_id: event.aggregate_id.text(),
            event_type: event.event_type.clone(),
            kind: Arc::default(),
            message,
            line: None,
            column: None,
            version: about.version.clone(),
            attempts: 0,
            parked_at: self.state.clock.now_ms(),
            retry_at: None,
        };
        ParkedStep { id: step_id(event, hook, &about.name), reason }
    }
}

/// Returns the id of a step: the call of a plugin's hook for an event.
pub fn step_id(event: &Event, hook: Hook, plugin: &Arc<str>) -> StepId {
    StepId { position: event.position, hook: hook.name().into(), plugin: plugin.clone() }
}
