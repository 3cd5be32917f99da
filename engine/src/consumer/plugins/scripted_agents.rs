//! Scripted agents: calls the `work` hook of an agent's plugin for each task of the agent, and delivers the output.

use std::sync::Arc;

use super::circuits::Circuits;
use super::dispatch::Dispatcher;
use super::mentions::Mentions;
use super::parking::ParkingBuffer;
use super::pending_calls::{Input, PendingCalls};
use super::roster::Roster;
use super::step_end::StepEnd;
use super::work::{self, PreparedWork};
use crate::consumer::event_context::{EventContext, FollowerView};
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::facts::Product;
use crate::state::State;
use crate::state::plugins::PluginIndex;

/// The scripted agents of a workspace. Records the calls of the hook `work` for the events of a batch, then makes the
/// calls and delivers the output.
pub struct ScriptedAgents {
    state: Arc<State>,
    mentions: Mentions,
    waiting: PendingCalls<PreparedWork>,
}

impl ScriptedAgents {
    pub fn new(state: &Arc<State>) -> ScriptedAgents {
        ScriptedAgents {
            state: state.clone(),
            mentions: Mentions::default(),
            waiting: PendingCalls::new(state, Hook::Work),
        }
    }

    /// Applies an event to the index of mentions, and records the call that the event requires. The view must show the
    /// aggregates right after the event.
    pub fn record(&mut self, view: &FollowerView<'_>, roster: &Roster, context: &Arc<EventContext>) {
        self.mentions.observe(context.before.as_deref(), &context.after, &context.definition);
        if let Some(plugin) = work::worker(&self.state.plugins, roster, context) {
            let input = Arc::new(self.prepare(view, context));
            self.waiting.push(plugin, input);
        }
    }

    /// Discards the index of mentions, because aggregates were folded again. The next search builds a new index.
    pub fn forget_mentions(&mut self) {
        self.mentions = Mentions::default();
    }

    /// Prepares the input of the hook `work` for a task.
    pub fn prepare(&mut self, view: &FollowerView<'_>, context: &Arc<EventContext>) -> PreparedWork {
        PreparedWork::prepare(&self.state, view, &mut self.mentions, context)
    }

    /// Calls the hooks and delivers their output.
    pub async fn run(
        &mut self,
        circuits: &mut Circuits,
        parking: &mut ParkingBuffer,
        dispatcher: &Dispatcher,
    ) -> Result<(), StepEnd> {
        let mut waiting = self.waiting.drain();
        while let Some(completed) = waiting.next(circuits, parking, work::call).await? {
            let plugin = completed.plugin;
            for (input, failure) in completed.given_up {
                self.give_up(plugin, &input.context, &failure, dispatcher).await?;
            }
            for (input, product) in completed.values {
                let outcome = self.deliver(plugin, &input, product, false, dispatcher).await?;
                let given_up = parking.settle(circuits, plugin, Hook::Work, input.call_subject(), outcome);
                if let Some(failure) = given_up {
                    self.give_up(plugin, &input.context, &failure, dispatcher).await?;
                }
            }
        }
        Ok(())
    }

    /// Appends the answer of a scripted agent to its task. Returns the reason if the answer is rejected. A task that
    /// has failed accepts the answer only if `is_replayed` is set.
    pub async fn deliver(
        &self,
        plugin: PluginIndex,
        input: &PreparedWork,
        product: Product,
        is_replayed: bool,
        dispatcher: &Dispatcher,
    ) -> Result<Result<(), Failure>> {
        let name = self.state.plugins.name(plugin);
        dispatcher.deliver(name, work::delivery(input, name, product, is_replayed)).await
    }

    /// Ends a task whose step failed and is not retried, so that the task does not wait forever.
    pub async fn give_up(
        &self,
        plugin: PluginIndex,
        context: &EventContext,
        failure: &Failure,
        dispatcher: &Dispatcher,
    ) -> Result<()> {
        let name = self.state.plugins.name(plugin);
        if let Err(failure) = dispatcher.deliver(name, work::given_up(context, name, failure)).await? {
            let (workspace, task) = (&*self.state.record.id, context.after.id.as_str());
            tracing::error!(workspace, plugin = %name, task, %failure, "failed to end a task after its plugin failed");
        }
        Ok(())
    }
}
