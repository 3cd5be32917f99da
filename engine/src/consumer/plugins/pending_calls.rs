//! The calls of one hook for the events of a batch. The calls are first recorded with their inputs, and then made
//! plugin by plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attempt::{Calls, RequestsAppends, RetryPolicy};
use super::circuit::CallSubject;
use super::circuits::Circuits;
use super::parking::ParkingBuffer;
use super::step_end::StepEnd;
use crate::consumer::event_context::EventContext;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::state::State;
use crate::state::plugins::{HookCall, HookInput, HookValue, PluginIndex};

/// The input of a hook that is called for an event.
pub trait Input: HookInput {
    fn context(&self) -> &Arc<EventContext>;

    /// Returns the id of the aggregate whose content the hook works on. By default, this is the event's aggregate.
    fn aggregate_id(&self) -> &str {
        self.context().event.aggregate_id.as_str()
    }

    /// Returns the event for which the hook is called, and the aggregate whose content the hook works on.
    fn call_subject(&self) -> CallSubject<'_> {
        CallSubject { event: &self.context().event, aggregate_id: self.aggregate_id() }
    }
}

/// The calls of a hook that are recorded but not yet made.
pub struct PendingCalls<I> {
    state: Arc<State>,
    hook: Hook,
    by_plugin: BTreeMap<PluginIndex, Vec<Arc<I>>>,
}

/// The results of the calls of one plugin. The step of a failed call is parked, even if the step is retried later. If
/// the plugin's `on_error` ignores failures, the step is not parked.
pub struct CallResults<I, T> {
    pub plugin: PluginIndex,
    /// The values that the successful calls returned.
    pub values: Vec<(Arc<I>, T)>,
    /// The calls that failed and are not retried.
    pub given_up: Vec<(Arc<I>, Failure)>,
}

impl<I: Input> PendingCalls<I> {
    pub fn new(state: &Arc<State>, hook: Hook) -> PendingCalls<I> {
        PendingCalls { state: state.clone(), hook, by_plugin: BTreeMap::new() }
    }

    pub fn push(&mut self, plugin: PluginIndex, input: Arc<I>) {
        self.by_plugin.entry(plugin).or_default().push(input);
    }

    /// Removes and returns all recorded calls. The calls stay removed even if the caller fails to make them.
    pub fn drain(&mut self) -> PendingCalls<I> {
        PendingCalls { by_plugin: std::mem::take(&mut self.by_plugin), ..PendingCalls::new(&self.state, self.hook) }
    }

    /// Makes all recorded calls of the next plugin, and returns their results. Returns `None` if no recorded calls are
    /// left.
    pub async fn next<T: RequestsAppends + HookValue>(
        &mut self,
        circuits: &mut Circuits,
        parking: &mut ParkingBuffer,
        call: HookCall<I, T>,
    ) -> Result<Option<CallResults<I, T>>, StepEnd> {
        let Some((plugin, inputs)) = self.by_plugin.pop_first() else { return Ok(None) };
        let circuit = &mut circuits.by_plugin[plugin];
        let mut calls = Calls { state: &self.state, plugin, circuit, policy: RetryPolicy::Later(&parking.retries) };
        let attempts = calls.run(&inputs, I::call_subject, call).await?;
        let (mut values, mut given_up) = (Vec::with_capacity(inputs.len()), Vec::new());
        for (input, attempt) in inputs.into_iter().zip(attempts) {
            given_up.extend(attempt.given_up().map(|failure| (input.clone(), failure.clone())));
            let value = parking.receive(circuits, plugin, self.hook, input.context(), attempt);
            values.extend(value.map(|value| (input, value)));
        }
        Ok(Some(CallResults { plugin, values, given_up }))
    }
}
