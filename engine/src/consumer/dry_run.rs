//! A dry run: what a plugin would make of events, with nothing written.

use std::sync::Arc;

use super::enrich;
use super::measured::Measured;
use super::project::{Routing, call_route};
use super::roster::Roster;
use super::world::{Now, Seen};
use crate::error::Result;
use crate::hook::{Failure, Hook, Outcome, Plugin};
use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::facts::{Assignment, Facts};
use crate::model::graph::{Finding, facts_of};
use crate::resident::graph::World;
use crate::workspace::state::Open;

/// What a plugin would make of one event.
pub struct Trial {
    pub seen: Arc<Seen>,
    pub hook: Hook,
    pub result: std::result::Result<Found, Failure>,
    pub operations: u64,
    pub ms: f64,
}

pub enum Found {
    /// With what it found of the aggregate so far.
    Facts(Facts, Option<Finding>),
    Assignments(Vec<Assignment>),
}

/// Calls a plugin's hooks for an event, as they would be called were it appended now.
pub async fn dry_run(open: &Open, place: usize, seen: Arc<Seen>) -> Result<Vec<Trial>> {
    let Some(about) = open.plugins.get(place) else { return Ok(Vec::new()) };
    let mut trials = Vec::new();
    for hook in about.hooks.iter().copied() {
        match hook {
            Hook::Enrich => {
                let found = open.graph.findings(seen.after.id.as_str());
                let known = found.and_then(|findings| findings.get(&about.name).cloned());
                let found = |facts| Found::Facts(facts, known);
                trials.push(trial(open, place, hook, &seen, seen.clone(), enrich::call, found).await);
            }
            Hook::Route => {
                let routing = Arc::new(routing(open, &seen));
                trials.push(trial(open, place, hook, &seen, routing, call_route, Found::Assignments).await);
            }
            Hook::Work | Hook::Mount => {}
        }
    }
    Ok(trials)
}

fn routing(open: &Open, seen: &Arc<Seen>) -> Routing {
    let mut roster = Roster::default();
    Now::new(open).aggregates().for_each(|aggregate| roster.observe(&aggregate));
    let found = open.graph.findings(seen.after.id.as_str());
    let facts = found.map_or_else(no_facts, |findings| facts_of(&findings));
    let aggregate = Arc::new(Aggregate { facts, ..Aggregate::clone(&seen.after) });
    Routing { seen: seen.clone(), aggregate, agents: roster.shown() }
}

async fn trial<I, T>(
    open: &Open,
    place: usize,
    hook: Hook,
    seen: &Arc<Seen>,
    input: Arc<I>,
    call: fn(&dyn Plugin, &I) -> Outcome<T>,
    found: impl FnOnce(T) -> Found,
) -> Trial
where
    I: Send + Sync + 'static,
    T: Send + 'static,
{
    // Trials are not counted among the calls of the plugin.
    let measured: Arc<Measured> = Arc::default();
    let outcomes = open.plugins.call(place, vec![input], call, 1, (open.clock.clone(), measured.clone())).await;
    let ms = measured.read().p50_ms;
    let outcome = outcomes.into_iter().next().unwrap_or_else(|| Err(super::replay::lost()));
    let (result, operations) = match outcome {
        Ok(done) => (Ok(found(done.value)), done.operations),
        Err(failure) => (Err(failure), 0),
    };
    Trial { seen: seen.clone(), hook, result, operations, ms }
}
