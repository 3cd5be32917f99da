//! Late calls: calls plugins for parked steps. A step gets a late call when a request replays the step, or when the
//! retry of the step is due.
//!
//! Like the first call, a late call gets the event and the state that the aggregate had right after the event. Facts of
//! a late call never replace facts of a later event of the aggregate. The events and tasks that a late call requests
//! are appended when the call succeeds.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::dispatch;
use super::enrich;
use super::parking::step_id;
use super::route::{self, PreparedRoute};
use super::work;
use crate::consumer::event_context::{EventContext, FollowerView};
use crate::consumer::worker::Worker;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::aggregate::Aggregate;
use crate::model::event::Event;
use crate::model::fold::StreamFold;
use crate::model::id::AggregateId;
use crate::state::State;
use crate::state::plugins::{HookCall, HookInput, HookValue, PluginIndex};
use crate::state::stream_pages::StreamPages;
use crate::state::stride::Stride;
use crate::store::workspace::parked::{ParkedStep, Reason, StepId};

/// The maximum number of steps that are retried in one turn of the worker. New events are processed between two turns.
pub const STEPS_PER_TURN: usize = 64;

/// Retries parked steps, in the order of their events. Skips steps that are no longer parked: while the caller waited
/// for its turn, a retry may have completed these steps, or another request may have completed or deleted them. Returns
/// the number of steps that succeeded, and the steps that failed again. The failed steps stay parked with the reason of
/// the new failure. If the plugin cannot be called for a step, the step also counts as failed, but the stored reason
/// does not change.
pub async fn replay_parked(worker: &mut Worker, steps: &[StepId]) -> Result<(u64, Vec<ParkedStep>)> {
    let mut parked = worker.state.db.find_parked_steps(steps).await?;
    parked.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let mut streams = StreamData::default();
    let (mut done, mut failed) = (0, Vec::new());
    for step in parked {
        match replay_step(worker, step, &mut streams).await? {
            Ok(()) => done += 1,
            Err(step) => failed.push(step),
        }
    }
    Ok((done, failed))
}

async fn replay_step(
    worker: &mut Worker,
    parked: ParkedStep,
    streams: &mut StreamData,
) -> Result<Result<(), ParkedStep>> {
    let state = worker.state.clone();
    let called = match LateCall::prepare(&state, &parked, streams).await? {
        Ok(called) => called,
        Err(message) => return Ok(Err(with_message(parked, message))),
    };
    let outcome = match called.make(worker, streams, LateCause::Request).await? {
        Ok(()) => {
            worker.parking.release(parked.id);
            Ok(())
        }
        Err(failure) => {
            // If the step still waits for a retry, the scripted agent may still answer its task.
            if parked.reason.retry_at.is_none() {
                called.give_up(worker, &failure).await?;
            }
            let failed_again = failed_again(parked, failure, &state.plugins.about(called.plugin).version);
            worker.parking.park_again(failed_again.clone());
            Err(failed_again)
        }
    };
    worker.commit(worker.position()).await?;
    Ok(outcome)
}

/// The data read from streams during one turn. Each stream is folded only once for all of its parked steps.
#[derive(Default)]
pub(super) struct StreamData {
    states: FxHashMap<AggregateId, Arc<Aggregate>>,
    newest: FxHashMap<(PluginIndex, AggregateId), NewestStep>,
}

/// The newest step that one plugin has done for one stream. Only steps for events after the version `after` count.
/// `done` is the version of the step's event, or `None` if no such step is done.
#[derive(Clone, Copy)]
struct NewestStep {
    done: Option<u64>,
    after: u64,
}

impl StreamData {
    /// Returns the event with the aggregate before and after the event, or `None` if the type of the aggregate is not
    /// defined. Continues folding the stream from the previous step.
    async fn recall(&mut self, state: &State, event: Arc<Event>) -> Result<Option<EventContext>> {
        let Some(definition) = state.types.get(&event.aggregate_type) else { return Ok(None) };
        let known = self.states.remove(&event.aggregate_id).filter(|known| known.version < event.version);
        let mut pages = StreamPages::new(
            event.aggregate_id.clone(),
            known.as_ref().map_or(1, |known| known.version + 1)..=event.version.saturating_sub(1),
        );
        let mut folding = known.map(|known| StreamFold::from(Arc::unwrap_or_clone(known)));
        while let Some(events) = pages.next(&state.db).await? {
            for event in &events {
                folding.get_or_insert_with(|| StreamFold::new(event)).fold(event, &definition);
            }
            tokio::task::yield_now().await;
        }
        let before = folding.map(|folding| Arc::new(folding.into_aggregate()));
        let after = Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
        // Keeps the state before the event, because several plugins may have parked steps for the same event.
        self.states.extend(before.iter().map(|before| (before.id.clone(), before.clone())));
        Ok(Some(EventContext { event, before, after, definition }))
    }

    /// Returns whether a step of the plugin for a later event of the stream is already done.
    async fn is_superseded(&mut self, worker: &Worker, plugin: PluginIndex, event: &Event) -> Result<bool> {
        let key = (plugin, event.aggregate_id.clone());
        let newest = match self.newest.get(&key).filter(|newest| newest.after <= event.version) {
            Some(newest) => *newest,
            None => {
                let done = newest_done(worker, plugin, event).await?;
                let newest = NewestStep { done, after: event.version };
                self.newest.insert(key, newest);
                newest
            }
        };
        Ok(newest.done.is_some_and(|done| done > event.version))
    }

    /// Records that the plugin's step for an event is done.
    fn done(&mut self, plugin: PluginIndex, event: &Event) {
        if let Some(newest) = self.newest.get_mut(&(plugin, event.aggregate_id.clone())) {
            newest.done = newest.done.max(Some(event.version));
        }
    }
}

/// Returns the version of the newest event of the stream for which the plugin's step is done. Returns `None` if no step
/// is done for an event after `event`. A step is done if the plugin was called and the step is not parked. Searches the
/// stream from its end.
async fn newest_done(worker: &Worker, plugin: PluginIndex, event: &Event) -> Result<Option<u64>> {
    let state = &worker.state;
    let about = state.plugins.about(plugin);
    let Some(definition) = state.types.get(&event.aggregate_type) else { return Ok(None) };
    let at_follower = state.folded.at_follower(event.aggregate_id.as_str());
    let mut last = at_follower.map_or(event.version, |aggregate| aggregate.version);
    let mut stride = Stride::new(Stride::FIRST);
    while last > event.version {
        let first = last.saturating_sub(stride.events() as u64 - 1).max(event.version + 1);
        let events = state.db.read_stream(&event.aggregate_id, first, last).await?;
        stride.adapt(&events);
        let called = |event: &&Event| {
            event.position <= worker.position() && about.on.admits(&event.event_type, &definition.traits)
        };
        let steps: Vec<(StepId, u64)> = events
            .iter()
            .filter(called)
            .map(|event| (step_id(event, Hook::Enrich, &about.name), event.version))
            .collect();
        let parked = state.db.parked_among(steps.iter().map(|(step, _)| step)).await?;
        if let Some((_, version)) = steps.into_iter().rev().find(|(step, _)| !parked.contains(step)) {
            return Ok(Some(version));
        }
        last = first - 1;
        tokio::task::yield_now().await;
    }
    Ok(None)
}

/// The cause of a late call, which is a call of a plugin for a parked step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LateCause {
    /// A request replays the step.
    Request,
    /// The retry of the step is due.
    Time,
}

/// The call of a parked step.
pub(super) struct LateCall {
    pub plugin: PluginIndex,
    pub hook: Hook,
    pub context: Arc<EventContext>,
}

impl LateCall {
    /// Reads the event of a parked step and the aggregate before and after the event. Returns the reason if the plugin
    /// cannot be called for the step.
    pub async fn prepare(
        state: &State,
        parked: &ParkedStep,
        streams: &mut StreamData,
    ) -> Result<std::result::Result<LateCall, &'static str>> {
        let event = state.events_after(parked.id.position.saturating_sub(1), 1).await?.into_iter().next();
        let plugin = state.plugins.find(&parked.id.plugin);
        let (Some(plugin), Some(hook)) = (plugin, Hook::parse(&parked.id.hook)) else {
            return Ok(Err("no plugin with this name and hook is enabled"));
        };
        let Some(event) = event else { return Ok(Err("the log has no event at this position")) };
        let context = streams.recall(state, event).await?.map(Arc::new);
        Ok(context.map(|context| LateCall { plugin, hook, context }).ok_or("the type of the aggregate is not defined"))
    }

    /// Returns the id of the aggregate whose content the hook works on.
    pub fn aggregate_id(&self) -> Arc<str> {
        let subject = if self.hook == Hook::Work { work::subject(&self.context) } else { None };
        subject.unwrap_or_else(|| self.context.event.aggregate_id.text())
    }

    pub async fn make(
        &self,
        worker: &mut Worker,
        streams: &mut StreamData,
        cause: LateCause,
    ) -> Result<Result<(), Failure>> {
        match self.hook {
            Hook::Enrich => self.enrich(worker, streams).await,
            Hook::Route => self.route(worker).await,
            Hook::Work => self.work(worker, cause).await,
            Hook::Tool | Hook::Mount => Ok(Ok(())),
        }
    }

    /// Ends the scripted agent's task after a step of the hook `work` has failed and is not retried. Does nothing for
    /// other hooks.
    pub async fn give_up(&self, worker: &Worker, failure: &Failure) -> Result<()> {
        if self.hook == Hook::Work {
            let Worker { scripted_agents, dispatcher, .. } = worker;
            scripted_agents.give_up(self.plugin, &self.context, failure, dispatcher).await?;
        }
        Ok(())
    }

    async fn enrich(&self, worker: &mut Worker, streams: &mut StreamData) -> Result<Result<(), Failure>> {
        let (state, plugin, context) = (worker.state.clone(), self.plugin, &self.context);
        let name = state.plugins.name(plugin);
        let mut facts = match self.call(&state, context.clone(), enrich::call).await {
            Ok(facts) => facts,
            Err(failure) => return Ok(Err(failure)),
        };
        let workspace = &*state.record.id;
        let events = dispatch::derived_events(workspace, context, name, std::mem::take(&mut facts.events));
        if let Err(failure) = worker.dispatcher.append(name, events).await? {
            return Ok(Err(failure));
        }
        if !streams.is_superseded(worker, plugin, &context.event).await? {
            worker.amend(plugin, &context.event, facts);
        }
        streams.done(plugin, &context.event);
        Ok(Ok(()))
    }

    async fn route(&self, worker: &mut Worker) -> Result<Result<(), Failure>> {
        let state = worker.state.clone();
        let candidates = state.plugins.about(self.plugin).candidates;
        let input = PreparedRoute::prepare(&state, &mut worker.projection.roster, candidates, &self.context);
        let assigned = match self.call(&state, Arc::new(input), route::call).await {
            Ok(assigned) => assigned,
            Err(failure) => return Ok(Err(failure)),
        };
        let Worker { router, projection, dispatcher, .. } = worker;
        router.assign(self.plugin, &self.context, &projection.roster, assigned, dispatcher).await
    }

    async fn work(&self, worker: &mut Worker, cause: LateCause) -> Result<Result<(), Failure>> {
        let state = worker.state.clone();
        // Since the first call, the task may have ended or been assigned to another agent.
        if cause == LateCause::Time && !work::is_waiting(&state, &self.context) {
            return Ok(Ok(()));
        }
        let Worker { scripted_agents, dispatcher, .. } = worker;
        let input = Arc::new(scripted_agents.prepare(&FollowerView::new(&state), &self.context));
        match self.call(&state, input.clone(), work::call).await {
            Ok(product) => {
                let is_replayed = cause == LateCause::Request;
                scripted_agents.deliver(self.plugin, &input, product, is_replayed, dispatcher).await
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn call<I: HookInput, T: HookValue>(
        &self,
        state: &State,
        input: Arc<I>,
        hook: HookCall<I, T>,
    ) -> Result<T, Failure> {
        let (plugins, plugin) = (&state.plugins, self.plugin);
        plugins.call_version(plugin, &plugins.about(plugin), input, hook).await.map(|done| done.value)
    }
}

pub(super) fn with_message(parked: ParkedStep, message: &str) -> ParkedStep {
    ParkedStep { reason: Reason { message: message.to_owned(), ..parked.reason }, ..parked }
}

pub(super) fn failed_again(parked: ParkedStep, failure: Failure, version: &str) -> ParkedStep {
    let reason = Reason {
        kind: failure.kind.name().into(),
        message: failure.message,
        line: failure.line,
        column: failure.column,
        version: version.to_owned(),
        attempts: parked.reason.attempts + 1,
        ..parked.reason
    };
    ParkedStep { reason, ..parked }
}
