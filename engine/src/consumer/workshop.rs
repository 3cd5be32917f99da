//! The workshop: calls the `work` hooks of scripted agents for their tasks and delivers their output.

use std::sync::Arc;

use super::circuits::Circuits;
use super::dispatch::Dispatcher;
use super::ended::Ended;
use super::event_context::{EventContext, FollowerView};
use super::interrupt::Interrupt;
use super::mentions::Mentions;
use super::parking::Parking;
use super::roster::Roster;
use super::waiting::{Input, Waiting};
use super::work::{self, WorkInput};
use crate::core::State;
use crate::core::plugins::PluginIndex;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::facts::Product;

/// The waiting calls of `work` for the events of a batch.
pub struct Workshop {
    state: Arc<State>,
    mentions: Mentions,
    waiting: Waiting<WorkInput>,
}

impl Workshop {
    pub fn new(state: &Arc<State>) -> Workshop {
        Workshop { state: state.clone(), mentions: Mentions::default(), waiting: Waiting::new(state, Hook::Work) }
    }

    /// Applies an event to the index of mentions, and records the call that the event requires. The view must show the
    /// aggregates right after the event.
    pub fn note(&mut self, view: &FollowerView<'_>, roster: &Roster, context: &Arc<EventContext>) {
        self.mentions.observe(context.before.as_deref(), &context.after, &context.definition);
        if let Some(plugin) = work::worker(&self.state.plugins, roster, context) {
            let input = Arc::new(self.prepare(view, context));
            self.waiting.push(plugin, input);
        }
    }

    /// Prepares the input of the hook `work` for a task.
    pub fn prepare(&mut self, view: &FollowerView<'_>, context: &Arc<EventContext>) -> WorkInput {
        WorkInput::prepare(&self.state, view, &mut self.mentions, context)
    }

    /// Calls the hooks and delivers their output.
    pub async fn run(
        &mut self,
        circuits: &mut Circuits,
        parking: &mut Parking,
        dispatcher: &Dispatcher,
        interrupt: &Interrupt,
    ) -> Result<(), Ended> {
        let mut waiting = self.waiting.take();
        while let Some(completed) = waiting.next(circuits, parking, interrupt, work::call).await? {
            let plugin = completed.plugin;
            for (input, product) in completed.values {
                let outcome = self.deliver(plugin, &input.context, product, dispatcher).await?;
                parking.settle(circuits, plugin, Hook::Work, input.requested(), outcome);
            }
        }
        Ok(())
    }

    /// Appends the output of a scripted agent to its task. Returns the reason if the output is rejected.
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
