//! Replay: parked steps once more, and a plugin's enrichment once more over the log.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::dispatch;
use super::enrich;
use super::event_context::{EventContext, FollowerView, recall};
use super::project::{Routing, call_route};
use super::work;
use super::worker::Worker;
use crate::core::plugins::PluginIndex;
use crate::error::Result;
use crate::hook::{Failure, Hook, Outcome, Plugin};
use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::graph::facts_of;
use crate::model::id::AggregateId;
use crate::resident::graph::Changes;
use crate::store::parked::{Parked, Reason, StepId};

/// Events of a replay that are called for at a time.
const PAGE: usize = 512;

/// What a replay changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events for which the plugin was called.
    pub events: u64,
    /// Calls that failed; their steps are parked.
    pub failed: u64,
    /// Aggregates of which the plugin says something else now.
    pub changed: u64,
    pub edges_opened: u64,
    pub edges_closed: u64,
}

impl Worker {
    /// Tries a parked step again. It stays parked, with the new reason, if it fails again.
    pub async fn replay_parked(&mut self, parked: Parked) -> Result<std::result::Result<(), Parked>> {
        let state = self.state.clone();
        let event = state.events_after(parked.id.position.saturating_sub(1), 1).await?.into_iter().next();
        let plugin = state.plugins.find(&parked.id.plugin);
        let hook = Hook::ALL.into_iter().find(|hook| hook.name() == &*parked.id.hook);
        let (Some(event), Some(plugin), Some(hook)) = (event, plugin, hook) else {
            return Ok(Err(with_message(parked, "no plugin of this name and hook is enabled")));
        };
        let Some(seen) = recall(&state, event).await?.map(Arc::new) else {
            return Ok(Err(with_message(parked, "the type of its aggregate is not defined")));
        };
        let result = match hook {
            Hook::Enrich => self.enrich_late(plugin, &seen).await?,
            Hook::Route => self.route_late(plugin, &seen).await?,
            Hook::Work => self.work_late(plugin, &seen).await?,
            Hook::Mount => Ok(()),
        };
        let outcome = match result {
            Ok(()) => {
                self.unwritten.released.push(parked.id);
                Ok(())
            }
            Err(failure) => {
                let again = again(parked, failure, &state.plugins.about(plugin).version);
                self.unwritten.parked.push(again.clone());
                Err(again)
            }
        };
        self.commit(self.stand.position).await?;
        Ok(outcome)
    }

    async fn enrich_late(
        &mut self,
        plugin: PluginIndex,
        seen: &Arc<EventContext>,
    ) -> Result<std::result::Result<(), Failure>> {
        let name = self.state.plugins.name(plugin).clone();
        let mut facts = match self.call_once(plugin, seen.clone(), enrich::call).await {
            Ok(facts) => facts,
            Err(failure) => return Ok(Err(failure)),
        };
        let events = dispatch::derived_events(seen, &name, std::mem::take(&mut facts.events));
        if let Err(failure) = refused(dispatch::append(&self.appender, &name, events).await)? {
            return Ok(Err(failure));
        }
        if !self.is_superseded(plugin, &seen.event).await? {
            let state = self.state.clone();
            let changes = state.graph.amend(&FollowerView::new(&state), &name, &seen.event, facts, self.stand.position);
            self.note(changes);
        }
        Ok(Ok(()))
    }

    async fn route_late(
        &mut self,
        plugin: PluginIndex,
        seen: &Arc<EventContext>,
    ) -> Result<std::result::Result<(), Failure>> {
        let name = self.state.plugins.name(plugin).clone();
        let found = self.state.graph.findings(seen.after.id.as_str());
        let facts = found.map_or_else(no_facts, |findings| facts_of(&findings));
        let aggregate = Arc::new(Aggregate { facts, ..Aggregate::clone(&seen.after) });
        let routing = Routing { seen: seen.clone(), aggregate, agents: self.roster.shown() };
        let assigned = match self.call_once(plugin, Arc::new(routing), call_route).await {
            Ok(assigned) => assigned,
            Err(failure) => return Ok(Err(failure)),
        };
        match dispatch::tasks(seen, &name, &self.roster, assigned) {
            Ok(tasks) => refused(dispatch::append(&self.appender, &name, tasks).await),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn work_late(
        &mut self,
        plugin: PluginIndex,
        seen: &Arc<EventContext>,
    ) -> Result<std::result::Result<(), Failure>> {
        let state = self.state.clone();
        let job = Arc::new(work::job(&FollowerView::new(&state), &state.graph, seen));
        let product = match self.call_once(plugin, job, work::call).await {
            Ok(product) => product,
            Err(failure) => return Ok(Err(failure)),
        };
        self.deliver(plugin, seen, product).await
    }

    async fn call_once<I, T>(
        &self,
        plugin: PluginIndex,
        input: Arc<I>,
        hook: fn(&dyn Plugin, &I) -> Outcome<T>,
    ) -> std::result::Result<T, Failure>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.state.plugins.call_once(plugin, input, hook).await.map(|done| done.value)
    }

    /// Whether the plugin was called for a later event of the stream, and that step is not parked itself.
    async fn is_superseded(&self, plugin: PluginIndex, event: &Event) -> Result<bool> {
        let state = &self.state;
        let about = state.plugins.about(plugin);
        let Some(definition) = state.types.get(&event.aggregate_type) else { return Ok(false) };
        let later = state.log.read_stream(&event.aggregate_id, event.version + 1, u64::MAX >> 1).await?;
        for later in later.iter().filter(|later| later.position <= self.stand.position) {
            if about.on.admits(&later.event_type, &definition.traits) {
                let step = step_id(later, Hook::Enrich, &about.name);
                if state.log.find_parked(&step).await?.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Runs a plugin's enrichment again for the events after a position. What it found before is replaced.
    pub async fn replay_plugin(&mut self, plugin: PluginIndex, from_position: u64) -> Result<Tally> {
        let state = self.state.clone();
        let about = state.plugins.about(plugin);
        let mut tally = Tally::default();
        let mut states: FxHashMap<AggregateId, Arc<Aggregate>> = FxHashMap::default();
        let mut last: IndexMap<AggregateId, (Arc<Event>, Facts)> = IndexMap::new();
        let mut position = from_position;
        while position < self.stand.position {
            let events = state.events_after(position, PAGE).await?;
            let Some(end) = events.last() else { break };
            position = end.position;
            let mut seen = Vec::new();
            for event in events.into_iter().filter(|event| event.position <= self.stand.position) {
                if let Some(definition) = state.types.get(&event.aggregate_type)
                    && about.on.admits(&event.event_type, &definition.traits)
                {
                    seen.extend(self.revisit(event, &mut states).await?.map(Arc::new));
                }
            }
            self.replay_page(plugin, seen, &mut tally, &mut last).await?;
        }
        for page in last.into_iter().collect::<Vec<_>>().chunks(PAGE) {
            for (_, (event, facts)) in page {
                let changes = state.graph.amend(
                    &FollowerView::new(&state),
                    &about.name,
                    event,
                    facts.clone(),
                    self.stand.position,
                );
                count(&mut tally, &changes);
                self.note(changes);
            }
            self.commit(self.stand.position).await?;
        }
        self.commit(self.stand.position).await?;
        Ok(tally)
    }

    /// The event with the state after it, folded on from where the replay left the stream.
    async fn revisit(
        &self,
        event: Arc<Event>,
        states: &mut FxHashMap<AggregateId, Arc<Aggregate>>,
    ) -> Result<Option<EventContext>> {
        let known = states.get(&event.aggregate_id).filter(|known| known.version + 1 == event.version).cloned();
        let seen = match (known, self.state.types.get(&event.aggregate_type)) {
            (Some(before), Some(definition)) => {
                let after = Arc::new(Aggregate::fold(Some(&before), &event, &definition));
                Some(EventContext { event, before: Some(before), after, definition })
            }
            _ => recall(&self.state, event).await?,
        };
        if let Some(seen) = &seen {
            states.insert(seen.after.id.clone(), seen.after.clone());
        }
        Ok(seen)
    }

    async fn replay_page(
        &mut self,
        plugin: PluginIndex,
        seen: Vec<Arc<EventContext>>,
        tally: &mut Tally,
        last: &mut IndexMap<AggregateId, (Arc<Event>, Facts)>,
    ) -> Result<()> {
        let state = self.state.clone();
        let name = state.plugins.name(plugin).clone();
        let outcomes = state.plugins.call(plugin, seen.clone(), enrich::call, usize::MAX).await;
        for (seen, outcome) in seen.into_iter().zip(outcomes) {
            tally.events += 1;
            let step = step_id(&seen.event, Hook::Enrich, &name);
            match outcome {
                Ok(done) => {
                    let mut facts = done.value;
                    let events = dispatch::derived_events(&seen, &name, std::mem::take(&mut facts.events));
                    let result = dispatch::append(&self.appender, &name, events).await;
                    self.accept(plugin, Hook::Enrich, &seen, result)?;
                    if state.log.find_parked(&step).await?.is_some() {
                        self.unwritten.released.push(step);
                    }
                    last.insert(seen.after.id.clone(), (seen.event.clone(), facts));
                }
                Err(failure) => {
                    tally.failed += 1;
                    self.park(plugin, Hook::Enrich, &seen.event, failure, 1);
                }
            }
        }
        Ok(())
    }
}

fn step_id(event: &Event, hook: Hook, plugin: &Arc<str>) -> StepId {
    StepId { position: event.position, hook: hook.name().into(), plugin: plugin.clone() }
}

fn count(tally: &mut Tally, changes: &Changes) {
    tally.changed += changes.nodes.len() as u64;
    for edge in &changes.edges {
        match edge.valid_to {
            Some(_) => tally.edges_closed += 1,
            None => tally.edges_opened += 1,
        }
    }
}

/// Tells what a plugin did wrong from what the store did.
fn refused(result: Result<()>) -> Result<std::result::Result<(), Failure>> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(error) => dispatch::refusal(&error).map(Err).ok_or(error),
    }
}

fn with_message(parked: Parked, message: &str) -> Parked {
    Parked { reason: Reason { message: message.to_owned(), ..parked.reason }, ..parked }
}

fn again(parked: Parked, failure: Failure, version: &str) -> Parked {
    let reason = Reason {
        kind: failure.kind.name().into(),
        message: failure.message,
        line: failure.line,
        column: failure.column,
        version: version.to_owned(),
        attempts: parked.reason.attempts + 1,
        ..parked.reason
    };
    Parked { reason, ..parked }
}
