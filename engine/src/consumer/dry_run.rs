//! A dry run: calls a plugin for events and returns the results, without writing anything.

use std::sync::Arc;

use super::enrich;
use super::event_context::{EventContext, FollowerView};
use super::roster::Roster;
use super::route::{self, RouteInput};
use crate::core::State;
use crate::core::plugins::{HookCall, PluginIndex};
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::facts::{Assignment, Facts};
use crate::model::graph::PluginFacts;
use crate::resident::graph::StateView;

/// The result of a plugin's hook for one event.
pub struct Trial {
    pub context: Arc<EventContext>,
    pub hook: Hook,
    pub result: std::result::Result<HookResult, Failure>,
    pub operations: u64,
    pub ms: f64,
}

pub enum HookResult {
    /// The facts of this call, and the facts that the plugin has found about the aggregate so far.
    Facts(Facts, Option<PluginFacts>),
    Assignments(Vec<Assignment>),
}

/// Calls a plugin's hooks for an event, as if the event were appended now.
pub async fn dry_run(state: &State, plugin: PluginIndex, context: Arc<EventContext>) -> Result<Vec<Trial>> {
    let about = state.plugins.about(plugin);
    let mut trials = Vec::new();
    for hook in about.hooks.iter().copied() {
        match hook {
            Hook::Enrich => {
                let found = state.graph.facts(context.after.id.as_str());
                let known = found.and_then(|found| found.get(&about.name).cloned());
                let found = |facts| HookResult::Facts(facts, known);
                trials.push(trial(state, plugin, hook, &context, context.clone(), enrich::call, found).await);
            }
            Hook::Route => {
                let input = Arc::new(route_input(state, plugin, &context));
                trials.push(trial(state, plugin, hook, &context, input, route::call, HookResult::Assignments).await);
            }
            Hook::Work | Hook::Tool | Hook::Mount => {}
        }
    }
    Ok(trials)
}

fn route_input(state: &State, plugin: PluginIndex, context: &Arc<EventContext>) -> RouteInput {
    let mut roster = Roster::default();
    FollowerView::new(state).aggregates().for_each(|aggregate| roster.observe(&aggregate));
    RouteInput::prepare(state, &mut roster, plugin, context)
}

async fn trial<I, T>(
    state: &State,
    plugin: PluginIndex,
    hook: Hook,
    context: &Arc<EventContext>,
    input: Arc<I>,
    call: HookCall<I, T>,
    found: impl FnOnce(T) -> HookResult,
) -> Trial
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    let (outcome, ms) = state.plugins.try_once(plugin, input, call).await;
    let (result, operations) = match outcome {
        Ok(done) => (Ok(found(done.value)), done.operations),
        Err(failure) => (Err(failure), 0),
    };
    Trial { context: context.clone(), hook, result, operations, ms }
}
