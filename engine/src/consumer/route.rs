//! Routing: calls the `route` hooks for events and appends the tasks that the hooks assign.

use std::sync::Arc;

use super::circuits::Circuits;
use super::dispatch::{self, Dispatcher};
use super::ended::Ended;
use super::event_context::EventContext;
use super::interrupt::Interrupt;
use super::parking::Parking;
use super::roster::Roster;
use super::waiting::{Input, Waiting};
use crate::core::State;
use crate::core::plugins::PluginIndex;
use crate::error::Result;
use crate::hook::{Failure, Hook, Outcome, Plugin, Route};
use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::facts::Assignment;
use crate::model::graph::facts_of;
use crate::model::value::Value;

/// The input of a `route` hook.
pub struct RouteInput {
    context: Arc<EventContext>,
    /// The aggregate after the event, with its facts.
    aggregate: Arc<Aggregate>,
    agents: Arc<[Value]>,
}

impl RouteInput {
    /// Prepares the input of a plugin's hook for an event, with the current facts and agents.
    pub fn prepare(state: &State, roster: &mut Roster, plugin: PluginIndex, context: &Arc<EventContext>) -> RouteInput {
        let candidates = state.plugins.about(plugin).candidates;
        let facts = state.graph.facts(context.after.id.as_str());
        let facts = facts.map_or_else(no_facts, |facts| facts_of(&facts));
        let aggregate = Arc::new(Aggregate { facts, ..Aggregate::clone(&context.after) });
        RouteInput { context: context.clone(), aggregate, agents: roster.shown(candidates, &context.definition.traits) }
    }
}

impl Input for RouteInput {
    fn context(&self) -> &Arc<EventContext> {
        &self.context
    }
}

/// Calls the hook `route`.
pub fn call(plugin: &dyn Plugin, input: &RouteInput) -> Outcome<Vec<Assignment>> {
    plugin.route(&Route {
        event: &input.context.event,
        aggregate: &input.aggregate,
        definition: &input.context.definition,
        agents: &input.agents,
    })
}

/// The waiting calls of `route` for the events of a batch.
pub struct Router {
    state: Arc<State>,
    waiting: Waiting<RouteInput>,
}

impl Router {
    pub fn new(state: &Arc<State>) -> Router {
        Router { state: state.clone(), waiting: Waiting::new(state, Hook::Route) }
    }

    /// Records the calls that an event requires, with their inputs.
    pub fn note(&mut self, roster: &mut Roster, context: &Arc<EventContext>) {
        let plugins = &self.state.plugins;
        let called = plugins.called(Hook::Route, &context.event.event_type, &context.definition.traits);
        for plugin in called {
            let input = RouteInput::prepare(&self.state, roster, plugin, context);
            self.waiting.push(plugin, Arc::new(input));
        }
    }

    /// Calls the hooks and appends the tasks that they return.
    pub async fn run(
        &mut self,
        circuits: &mut Circuits,
        roster: &Roster,
        parking: &mut Parking,
        dispatcher: &Dispatcher,
        interrupt: &Interrupt,
    ) -> Result<(), Ended> {
        let mut waiting = self.waiting.take();
        while let Some(completed) = waiting.next(circuits, parking, interrupt, call).await? {
            let plugin = completed.plugin;
            for (input, assigned) in completed.values.into_iter().filter(|(_, assigned)| !assigned.is_empty()) {
                let outcome = self.assign(plugin, &input.context, roster, assigned, dispatcher).await?;
                parking.settle(circuits, plugin, Hook::Route, input.requested(), outcome);
            }
        }
        Ok(())
    }

    /// Appends the tasks of a plugin's assignments. Returns the reason if they are rejected.
    pub async fn assign(
        &self,
        plugin: PluginIndex,
        context: &EventContext,
        roster: &Roster,
        assigned: Vec<Assignment>,
        dispatcher: &Dispatcher,
    ) -> Result<Result<(), Failure>> {
        let name = self.state.plugins.name(plugin);
        match dispatch::tasks(context, name, roster, assigned) {
            Ok(tasks) => dispatcher.append_each(name, tasks).await,
            Err(failure) => Ok(Err(failure)),
        }
    }
}
