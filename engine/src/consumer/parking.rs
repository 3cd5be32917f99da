//! Parking: stores a failed step with its reason, so that the follower can continue with the log.

use std::sync::Arc;

use super::attempt::Attempt;
use super::circuit::Step;
use super::circuits::Circuits;
use super::event_context::EventContext;
use crate::hook::{Failure, Hook, OnError};
use crate::metric;
use crate::model::event::Event;
use crate::state::State;
use crate::state::plugins::PluginIndex;
use crate::store::parked::{Parked, Reason, StepId};

/// The failure kind recorded for a step that was not attempted because its plugin's circuit was open.
const CIRCUIT_OPEN: &str = "circuit_open";

/// The event for which a plugin requested appends, and the aggregate whose content the plugin worked on.
pub struct Requested<'a> {
    pub event: &'a Arc<Event>,
    pub aggregate_id: &'a str,
}

/// The parked and released steps that are not yet written.
pub struct Parking {
    state: Arc<State>,
    parked: Vec<Parked>,
    released: Vec<StepId>,
}

impl Parking {
    pub fn new(state: &Arc<State>) -> Parking {
        Parking { state: state.clone(), parked: Vec::new(), released: Vec::new() }
    }

    /// Returns the value of a successful call. Parks the step of a failed call.
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
            Attempt::Failed { failure, attempts, opened } => {
                self.park(plugin, hook, &context.event, failure, attempts);
                if opened {
                    circuits.note_opened(plugin, &context.event);
                }
            }
            Attempt::Refused => {
                let opened_by = circuits.get(plugin).opened_by();
                let opened_by = opened_by.map(|event| format!(" by the event {event}")).unwrap_or_default();
                let message = format!("the plugin is stopped: its circuit was opened{opened_by}");
                let mut parked = self.step(plugin, hook, &context.event, message);
                parked.reason.kind = CIRCUIT_OPEN.into();
                self.parked.push(parked);
            }
        }
        None
    }

    /// Records the result of the appends that a plugin requested. A rejection is a failure of the step: the step is
    /// parked, and the failure counts towards the plugin's circuit.
    pub fn settle(
        &mut self,
        circuits: &mut Circuits,
        plugin: PluginIndex,
        hook: Hook,
        requested: Requested<'_>,
        outcome: Result<(), Failure>,
    ) {
        let Requested { event, aggregate_id } = requested;
        let Err(failure) = outcome else { return circuits.get_mut(plugin).succeeded() };
        self.park(plugin, hook, event, failure, 1);
        let counts = self.state.plugins.about(plugin).on_error != OnError::Skip;
        if counts && circuits.get_mut(plugin).failed(Step { event_id: &event.event_id, aggregate_id }) {
            circuits.note_opened(plugin, event);
        }
    }

    /// Parks a step that failed after this many attempts.
    pub fn park(&mut self, plugin: PluginIndex, hook: Hook, event: &Event, failure: Failure, attempts: u32) {
        let name = self.state.plugins.name(plugin).clone();
        tracing::warn!(plugin = %name, hook = hook.name(), event = %event.event_id, %failure, "step parked");
        metric::STEPS_PARKED.add(&[&name], 1);
        let mut parked = self.step(plugin, hook, event, failure.message);
        let (line, column) = (failure.line, failure.column);
        parked.reason = Reason { kind: failure.kind.name().into(), line, column, attempts, ..parked.reason };
        self.parked.push(parked);
    }

    /// Parks a step again, with the reason of its new failure.
    pub fn park_again(&mut self, parked: Parked) {
        self.parked.push(parked);
    }

    /// Releases a parked step that is done.
    pub fn release(&mut self, step: StepId) {
        self.released.push(step);
    }

    pub fn is_empty(&self) -> bool {
        self.parked.is_empty() && self.released.is_empty()
    }

    /// Takes the unwritten changes: the parked steps and the released steps.
    pub fn take(&mut self) -> (Vec<Parked>, Vec<StepId>) {
        (std::mem::take(&mut self.parked), std::mem::take(&mut self.released))
    }

    fn step(&self, plugin: PluginIndex, hook: Hook, event: &Event, message: String) -> Parked {
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
        };
        Parked { id: step_id(event, hook, &about.name), reason }
    }
}

/// Returns the id of a step: the call of a plugin's hook for an event.
pub fn step_id(event: &Event, hook: Hook, plugin: &Arc<str>) -> StepId {
    StepId { position: event.position, hook: hook.name().into(), plugin: plugin.clone() }
}
