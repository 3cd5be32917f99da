//! Projection: a batch of events, with what was found in them, becomes the graph; and what it asks for is noted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dispatch;
use super::enrich::Enriched;
use super::event_context::{EventContext, FollowerView};
use super::work::{self, Job};
use super::worker::Worker;
use crate::core::plugins::PluginIndex;
use crate::hook::{Hook, Outcome, Plugin, Route};
use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::event::NewEvent;
use crate::model::facts::Assignment;
use crate::model::graph::facts_of;
use crate::model::value::Value;
use crate::resident::graph::EnrichedEvent;

/// What a `route` hook is called with.
pub struct Routing {
    pub seen: Arc<EventContext>,
    /// The aggregate after the event, with its facts.
    pub aggregate: Arc<Aggregate>,
    pub agents: Arc<[Value]>,
}

pub fn call_route(plugin: &dyn Plugin, routing: &Routing) -> Outcome<Vec<Assignment>> {
    plugin.route(&Route {
        event: &routing.seen.event,
        aggregate: &routing.aggregate,
        definition: &routing.seen.definition,
        agents: &routing.agents,
    })
}

/// What the events of a batch ask for, collected while they are taken in.
#[derive(Default)]
pub struct Asked {
    pub appends: Vec<(PluginIndex, Arc<EventContext>, Vec<NewEvent>)>,
    pub routings: BTreeMap<PluginIndex, Vec<Arc<Routing>>>,
    pub jobs: BTreeMap<PluginIndex, Vec<Arc<Job>>>,
}

impl Worker {
    /// Takes the events and what was found in them into the graph, one after the other.
    pub fn project(&mut self, seen: &[Arc<EventContext>], enriched: Vec<Vec<Enriched>>) -> Asked {
        let state = self.state.clone();
        let mut asked = Asked::default();
        let mut now = FollowerView::new(&state);
        for (seen, enriched) in seen.iter().zip(enriched) {
            let mut found = Vec::new();
            for Enriched { plugin, attempt } in enriched {
                if let Some(mut facts) = self.reconcile(plugin, Hook::Enrich, seen, attempt) {
                    let name = state.plugins.name(plugin).clone();
                    let events = dispatch::derived_events(seen, &name, std::mem::take(&mut facts.events));
                    if !events.is_empty() {
                        asked.appends.push((plugin, seen.clone(), events));
                    }
                    found.push((name, facts));
                }
            }
            now.changed.insert(seen.after.id.clone(), seen.after.clone());
            let turn = EnrichedEvent { event: &seen.event, before: seen.before.as_deref(), after: &seen.after, found };
            let changes = state.graph.take(&now, turn);
            self.note(changes);
            self.roster.observe(&seen.after);
            self.ask(&now, seen, &mut asked);
        }
        asked
    }

    /// Notes the calls of `route` and `work` that an event asks for, with what they are given.
    fn ask(&mut self, now: &FollowerView<'_>, seen: &Arc<EventContext>, asked: &mut Asked) {
        let state = self.state.clone();
        let routers = state.plugins.called(Hook::Route, &seen.event.event_type, &seen.definition.traits);
        let routers: Vec<PluginIndex> = routers.collect();
        if !routers.is_empty() {
            let facts = self.state.graph.findings(seen.after.id.as_str()).map(|findings| facts_of(&findings));
            let mut aggregate = Aggregate::clone(&seen.after);
            aggregate.facts = facts.unwrap_or_else(no_facts);
            let routing = Routing { seen: seen.clone(), aggregate: Arc::new(aggregate), agents: self.roster.shown() };
            let routing = Arc::new(routing);
            for plugin in routers {
                asked.routings.entry(plugin).or_default().push(routing.clone());
            }
        }
        if let Some(plugin) = work::worker(&state.plugins, &self.roster, seen) {
            let job = work::job(now, &self.state.graph, seen);
            asked.jobs.entry(plugin).or_default().push(Arc::new(job));
        }
    }
}
