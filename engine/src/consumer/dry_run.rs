//! A dry run: what a plugin would make of events, with nothing written.

use std::sync::Arc;

use super::enrich;
use super::event_context::{EventContext, FollowerView};
use super::project::{Routing, call_route};
use super::roster::Roster;
use crate::core::State;
use crate::core::plugins::PluginIndex;
use crate::error::Result;
use crate::hook::{Failure, Hook, Outcome, Plugin};
use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::facts::{Assignment, Facts};
use crate::model::graph::{PluginFacts, facts_of};
use crate::resident::graph::StateView;

/// What a plugin would make of one event.
pub struct Trial {
    pub seen: Arc<EventContext>,
    pub hook: Hook,
    pub result: std::result::Result<Found, Failure>,
    pub operations: u64,
    pub ms: f64,
}

pub enum Found {
    /// With what it found of the aggregate so far.
    Facts(Facts, Option<PluginFacts>),
    Assignments(Vec<Assignment>),
}

/// Calls a plugin's hooks for an event, as they would be called were it appended now.
pub async fn dry_run(state: &State, plugin: PluginIndex, seen: Arc<EventContext>) -> Result<Vec<Trial>> {
    let about = state.plugins.about(plugin);
    let mut trials = Vec::new();
    for hook in about.hooks.iter().copied() {
        match hook {
            Hook::Enrich => {
                let found = state.graph.findings(seen.after.id.as_str());
                let known = found.and_then(|findings| findings.get(&about.name).cloned());
                let found = |facts| Found::Facts(facts, known);
                trials.push(trial(state, plugin, hook, &seen, seen.clone(), enrich::call, found).await);
            }
            Hook::Route => {
                let routing = Arc::new(routing(state, &seen));
                trials.push(trial(state, plugin, hook, &seen, routing, call_route, Found::Assignments).await);
            }
            Hook::Work | Hook::Mount => {}
        }
    }
    Ok(trials)
}

fn routing(state: &State, seen: &Arc<EventContext>) -> Routing {
    let mut roster = Roster::default();
    FollowerView::new(state).aggregates().for_each(|aggregate| roster.observe(&aggregate));
    let found = state.graph.findings(seen.after.id.as_str());
    let facts = found.map_or_else(no_facts, |findings| facts_of(&findings));
    let aggregate = Arc::new(Aggregate { facts, ..Aggregate::clone(&seen.after) });
    Routing { seen: seen.clone(), aggregate, agents: roster.shown() }
}

async fn trial<I, T>(
    state: &State,
    plugin: PluginIndex,
    hook: Hook,
    seen: &Arc<EventContext>,
    input: Arc<I>,
    call: fn(&dyn Plugin, &I) -> Outcome<T>,
    found: impl FnOnce(T) -> Found,
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
    Trial { seen: seen.clone(), hook, result, operations, ms }
}
