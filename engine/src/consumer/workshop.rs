//! The workshop: scripted agents get their tasks, and what they make of them is delivered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attempt::{Calls, RetryPolicy};
use super::circuits::Circuits;
use super::dispatch::Dispatcher;
use super::ended::Ended;
use super::event_context::{EventContext, FollowerView};
use super::interrupt::Interrupt;
use super::mentions::Mentions;
use super::parking::Parking;
use super::roster::Roster;
use super::work::{self, WorkInput};
use crate::core::State;
use crate::core::plugins::PluginIndex;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::facts::Product;

/// The calls of `work` that the events of a batch ask for.
pub struct Workshop {
    state: Arc<State>,
    mentions: Mentions,
    waiting: BTreeMap<PluginIndex, Vec<Arc<WorkInput>>>,
}

impl Workshop {
    pub fn new(state: &Arc<State>) -> Workshop {
        Workshop { state: state.clone(), mentions: Mentions::default(), waiting: BTreeMap::new() }
    }

    /// Takes an event in, and notes the call that it asks for. The view stands right after the event.
    pub fn note(&mut self, view: &FollowerView<'_>, roster: &Roster, context: &Arc<EventContext>) {
        self.mentions.observe(context.before.as_deref(), &context.after, &context.definition);
        if let Some(plugin) = work::worker(&self.state.plugins, roster, context) {
            let input = Arc::new(self.prepare(view, context));
            self.waiting.entry(plugin).or_default().push(input);
        }
    }

    /// Puts together what the work on a task is about.
    pub fn prepare(&mut self, view: &FollowerView<'_>, context: &Arc<EventContext>) -> WorkInput {
        WorkInput::prepare(&self.state, view, &mut self.mentions, context)
    }

    /// Calls the hooks and delivers what they make.
    pub async fn run(
        &mut self,
        circuits: &mut Circuits,
        parking: &mut Parking,
        dispatcher: &Dispatcher,
        interrupt: &Interrupt,
    ) -> Result<(), Ended> {
        for (plugin, inputs) in std::mem::take(&mut self.waiting) {
            let circuit = circuits.get_mut(plugin);
            let mut calls = Calls { state: &self.state, plugin, circuit, policy: RetryPolicy::UntilWanted(interrupt) };
            let attempts = calls.run(&inputs, |input| &input.context.event.event_id, work::call).await?;
            for (input, attempt) in inputs.iter().zip(attempts) {
                let context = &input.context;
                let Some(product) = parking.receive(circuits, plugin, Hook::Work, context, attempt) else { continue };
                if let Err(failure) = self.deliver(plugin, context, product, dispatcher).await? {
                    parking.park(plugin, Hook::Work, &context.event, failure, 1);
                }
            }
        }
        Ok(())
    }

    /// Appends what a scripted agent made of its task. Returns why it is refused, where it is.
    pub async fn deliver(
        &self,
        plugin: PluginIndex,
        context: &EventContext,
        product: Product,
        dispatcher: &Dispatcher,
    ) -> Result<Result<(), Failure>> {
        let name = self.state.plugins.name(plugin);
        dispatcher.deliver(name, work::delivery(context, name, product)).await
    }
}
