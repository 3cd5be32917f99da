//! The calls of one hook for the events of a batch. The calls are first recorded with their inputs, and then made
//! plugin by plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attempt::{Calls, RequestsAppends, RetryPolicy};
use super::circuit::Step;
use super::circuits::Circuits;
use super::ended::Ended;
use super::event_context::EventContext;
use super::interrupt::Interrupt;
use super::parking::{Parking, Requested};
use crate::core::State;
use crate::core::plugins::{HookCall, PluginIndex};
use crate::error::Result;
use crate::hook::Hook;

/// The input of a hook that is called for an event.
pub trait Input: Send + Sync + 'static {
    fn context(&self) -> &Arc<EventContext>;

    /// Returns the id of the aggregate whose content the hook works on. By default, this is the event's aggregate.
    fn aggregate_id(&self) -> &str {
        self.context().event.aggregate_id.as_str()
    }

    /// Returns the event and the aggregate of what the hook requests.
    fn requested(&self) -> Requested<'_> {
        Requested { event: &self.context().event, aggregate_id: self.aggregate_id() }
    }
}

/// The calls of a hook that are recorded but not yet made.
pub struct Waiting<I> {
    state: Arc<State>,
    hook: Hook,
    by_plugin: BTreeMap<PluginIndex, Vec<Arc<I>>>,
}

/// The values that the successful calls of one plugin returned. Failed calls are parked.
pub struct Completed<I, T> {
    pub plugin: PluginIndex,
    pub values: Vec<(Arc<I>, T)>,
}

impl<I: Input> Waiting<I> {
    pub fn new(state: &Arc<State>, hook: Hook) -> Waiting<I> {
        Waiting { state: state.clone(), hook, by_plugin: BTreeMap::new() }
    }

    pub fn push(&mut self, plugin: PluginIndex, input: Arc<I>) {
        self.by_plugin.entry(plugin).or_default().push(input);
    }

    /// Takes all waiting calls. No calls are left, even if the caller fails to make them.
    pub fn take(&mut self) -> Waiting<I> {
        Waiting { by_plugin: std::mem::take(&mut self.by_plugin), ..Waiting::new(&self.state, self.hook) }
    }

    /// Makes all calls of the next plugin that has waiting calls. Returns `None` if no calls are left.
    pub async fn next<T: RequestsAppends + Send + 'static>(
        &mut self,
        circuits: &mut Circuits,
        parking: &mut Parking,
        interrupt: &Interrupt,
        call: HookCall<I, T>,
    ) -> Result<Option<Completed<I, T>>, Ended> {
        let Some((plugin, inputs)) = self.by_plugin.pop_first() else { return Ok(None) };
        let circuit = circuits.get_mut(plugin);
        let mut calls = Calls { state: &self.state, plugin, circuit, policy: RetryPolicy::UntilInterrupted(interrupt) };
        let attempts = calls.run(&inputs, step_of, call).await?;
        let values = inputs.into_iter().zip(attempts).filter_map(|(input, attempt)| {
            let value = parking.receive(circuits, plugin, self.hook, input.context(), attempt)?;
            Some((input, value))
        });
        Ok(Some(Completed { plugin, values: values.collect() }))
    }
}

fn step_of<I: Input>(input: &I) -> Step<'_> {
    Step { event_id: &input.context().event.event_id, aggregate_id: input.aggregate_id() }
}
