//! A dry run: calls a plugin for events and returns the results, without writing anything.

use std::sync::Arc;

use super::enrich;
use super::roster::Roster;
use super::route::{self, Assignees, PreparedRoute};
use crate::consumer::event_context::EventContext;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::mailbox::members::Members;
use crate::model::builtin::{AGENT, TASK};
use crate::model::facts::{Assignment, Facts};
use crate::model::graph::PluginFacts;
use crate::state::State;
use crate::state::plugins::{HookCall, HookInput, HookValue, PluginVersion};

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

/// Dry runs of a plugin version. All events of a request share one roster, because building a roster visits every agent
/// and every task.
pub struct DryRuns<'a> {
    state: &'a State,
    members: &'a Members,
    version: &'a PluginVersion,
    roster: Roster,
}

impl<'a> DryRuns<'a> {
    pub async fn new(state: &'a State, members: &'a Members, version: &'a PluginVersion) -> DryRuns<'a> {
        let mut roster = Roster::new(state.plugins.with_agents());
        if version.hooks.contains(&Hook::Route) {
            for aggregate_type in [AGENT, TASK] {
                let mut known = Vec::new();
                let mut newest = state.folded.newest(Some(aggregate_type), u64::MAX);
                while let Some(block) = newest.next_block() {
                    known.extend(block.filter_map(|found| state.folded.at_follower(found.id.as_str())));
                    tokio::task::yield_now().await;
                }
                // The roster lists the agents in the order of their registration.
                known.iter().rev().for_each(|aggregate| roster.observe(aggregate));
            }
        }
        DryRuns { state, members, version, roster }
    }

    /// Calls the plugin's hooks `enrich` and `route` for an event, with the current agents and tasks.
    pub async fn run(&mut self, context: Arc<EventContext>) -> Result<Vec<Trial>> {
        let (state, version) = (self.state, self.version);
        let mut trials = Vec::new();
        for hook in version.hooks.iter().copied() {
            match hook {
                Hook::Enrich => {
                    let found = state.graph.facts(context.after.id.as_str());
                    let known = found.and_then(|found| found.get(&version.name).cloned());
                    let found = |facts| HookResult::Facts(facts, known);
                    trials.push(trial(state, version, hook, &context, context.clone(), enrich::call, found).await);
                }
                Hook::Route => {
                    let input = PreparedRoute::prepare(state, &mut self.roster, version.candidates, &context);
                    let (input, assigned) = (Arc::new(input), HookResult::Assignments);
                    let mut trial = trial(state, version, hook, &context, input, route::call, assigned).await;
                    if let Ok(HookResult::Assignments(assigned)) = &trial.result
                        && let Err(failure) = Assignees::new(self.members.clone()).check(&self.roster, assigned).await?
                    {
                        trial.result = Err(failure);
                    }
                    trials.push(trial);
                }
                Hook::Work | Hook::Tool | Hook::Mount => {}
            }
        }
        Ok(trials)
    }
}

async fn trial<I: HookInput, T: HookValue>(
    state: &State,
    version: &PluginVersion,
    hook: Hook,
    context: &Arc<EventContext>,
    input: Arc<I>,
    call: HookCall<I, T>,
    found: impl FnOnce(T) -> HookResult,
) -> Trial {
    let (outcome, ms) = state.plugins.try_once(version, input, call).await;
    let (result, operations) = match outcome {
        Ok(done) => (Ok(found(done.value)), done.operations),
        Err(failure) => (Err(failure), 0),
    };
    Trial { context: context.clone(), hook, result, operations, ms }
}
