//! Replay: runs one of a plugin's hooks again over the log, or counts the events for which a replay would call the
//! plugin.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::dispatch;
use super::enrich;
use super::parking::step_id;
use super::replay_work;
use super::route::{self, PreparedRoute};
use crate::consumer::event_context::{EventContext, recall};
use crate::consumer::worker::Worker;
use crate::error::Result;
use crate::hook::Hook;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::id::AggregateId;
use crate::model::task::Task;
use crate::model::value::Value;
use crate::state::State;
use crate::state::batches::BATCH;
use crate::state::plugins::PluginIndex;
use crate::store::workspace::parked::StepId;

/// The field of a task that names the event for which the task was assigned.
const SOURCE: &str = "source";

/// The number of aggregates whose facts are applied in one commit.
const PAGE: usize = 512;

/// The counts of calls and changes during a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayTally {
    /// The number of events for which the plugin was called. For the hook `work`, this is the number of tasks. The
    /// function [`count`] calls no plugin. Its tally contains the number of events or tasks for which a replay would
    /// call the plugin.
    pub events: u64,
    /// The number of calls that failed, or that returned something that the log rejected. The step of such a call is
    /// parked, with one exception: if the call itself failed and the plugin's `on_error` ignores failures, the step is
    /// not parked.
    pub failed: u64,
    /// The number of aggregates for which the plugin's facts changed.
    pub changed: u64,
    pub edges_opened: u64,
    pub edges_closed: u64,
    /// The number of events for which tasks were assigned.
    pub assigned: u64,
    /// The number of events that were not routed, because the plugin has already assigned tasks for these events.
    pub assigned_before: u64,
    /// The number of tasks for which the plugin's agent returned an answer that was not rejected. Includes answers that
    /// were dropped, because the task no longer waited for an answer.
    pub delivered: u64,
}

impl ReplayTally {
    /// Returns the sums of these counts and the counts of another hook's replay over the same events. Only `events` is
    /// not a sum but the larger of the two numbers, so that an event for which both hooks were called counts once.
    pub fn with(&self, other: &ReplayTally) -> ReplayTally {
        ReplayTally {
            events: self.events.max(other.events),
            failed: self.failed + other.failed,
            changed: self.changed + other.changed,
            edges_opened: self.edges_opened + other.edges_opened,
            edges_closed: self.edges_closed + other.edges_closed,
            assigned: self.assigned + other.assigned,
            assigned_before: self.assigned_before + other.assigned_before,
            delivered: self.delivered + other.delivered,
        }
    }
}

/// Runs one of a plugin's hooks again for the events after a position. `enrich`: new facts replace the earlier facts.
/// `route`: tasks are assigned only for events for which the plugin has not assigned tasks yet. `work`: work is done
/// again only for tasks that wait for the plugin's agent or have failed.
pub async fn replay_plugin(
    worker: &mut Worker,
    plugin: PluginIndex,
    hook: Hook,
    from_position: u64,
) -> Result<ReplayTally> {
    if hook == Hook::Work {
        return replay_work::replay(worker, plugin, from_position).await;
    }
    let dispatched = dispatched(&worker.state, plugin, hook).await;
    let mut replay = PluginReplay { worker, plugin, dispatched, tally: ReplayTally::default(), last: IndexMap::new() };
    let contexts = Contexts { state: replay.worker.state.clone(), plugin, end: replay.worker.position() };
    let mut states = FxHashMap::default();
    let mut position = from_position;
    while let Some(page) = contexts.page(&mut position, &mut states).await? {
        // If another server has taken over, the store rejects the writes of this replay, so the replay ends early.
        replay.worker.check_lead()?;
        match hook {
            Hook::Route => replay.route(page).await?,
            _ => replay.enrich(page).await?,
        }
    }
    replay.apply().await
}

/// Counts the events, or for the hook `work` the tasks, for which a replay would call a plugin. Does not call the
/// plugin.
pub async fn count(state: &Arc<State>, plugin: PluginIndex, hook: Hook, from_position: u64) -> Result<ReplayTally> {
    let mut tally = ReplayTally::default();
    if hook == Hook::Work {
        tally.events = replay_work::count(state, plugin, from_position).await?;
        return Ok(tally);
    }
    let dispatched = dispatched(state, plugin, hook).await;
    let contexts = Contexts { state: state.clone(), plugin, end: state.graph_progress.position() };
    let mut position = from_position;
    while let Some(events) = contexts.events(&mut position).await? {
        let assigned = events.iter().filter(|event| dispatched.contains(&event.event_id)).count();
        tally.events += (events.len() - assigned) as u64;
        tally.assigned_before += assigned as u64;
    }
    Ok(tally)
}

/// Returns the ids of the events for which a plugin has assigned tasks, including deleted tasks. Returns no ids for
/// hooks other than `route`, because replays of these hooks do not need the ids.
async fn dispatched(state: &State, plugin: PluginIndex, hook: Hook) -> FxHashSet<Arc<str>> {
    if hook != Hook::Route {
        return FxHashSet::default();
    }
    let name = state.plugins.name(plugin);
    let dispatched_for = |task: &Arc<Aggregate>| {
        let source = Task::new(task).get(SOURCE).and_then(Value::as_object)?;
        let text = |field: &str| source.get(field).and_then(Value::as_str);
        let event_id = text("event_id").filter(|_| text("plugin") == Some(name))?;
        let is_for_owner = *task.id.as_str() == dispatch::stopped_task_id(event_id, name);
        (!is_for_owner).then(|| Arc::from(event_id))
    };
    let mut dispatched = FxHashSet::default();
    let mut tasks = state.folded.newest(Some(TASK), u64::MAX);
    while let Some(block) = tasks.next_block() {
        dispatched.extend(block.filter_map(dispatched_for));
        tokio::task::yield_now().await;
    }
    dispatched
}

/// The events for which a plugin is called again.
struct Contexts {
    state: Arc<State>,
    plugin: PluginIndex,
    /// The position of the last event that the follower has processed.
    end: u64,
}

impl Contexts {
    /// Returns the next events with the states after the events. Continues folding from the states of the previous
    /// page.
    async fn page(
        &self,
        position: &mut u64,
        states: &mut FxHashMap<AggregateId, Arc<Aggregate>>,
    ) -> Result<Option<Vec<Arc<EventContext>>>> {
        let Some(events) = self.events(position).await? else { return Ok(None) };
        let mut contexts = Vec::new();
        for event in events {
            contexts.extend(self.revisit(event, states).await?.map(Arc::new));
        }
        Ok(Some(contexts))
    }

    /// Reads the next batch of events after `position`, and advances `position` to the end of the batch. Returns the
    /// events of the batch for which the plugin is called. Returns `None` at the end of the replay.
    async fn events(&self, position: &mut u64) -> Result<Option<Vec<Arc<Event>>>> {
        if *position >= self.end {
            return Ok(None);
        }
        let mut events = self.state.batch_after(*position, BATCH).await?;
        let Some(last) = events.last() else { return Ok(None) };
        *position = last.position;
        let about = self.state.plugins.about(self.plugin);
        events.retain(|event| {
            let definition = self.state.types.get(&event.aggregate_type);
            event.position <= self.end
                && definition.is_some_and(|definition| about.on.admits(&event.event_type, &definition.traits))
        });
        Ok(Some(events))
    }

    async fn revisit(
        &self,
        event: Arc<Event>,
        states: &mut FxHashMap<AggregateId, Arc<Aggregate>>,
    ) -> Result<Option<EventContext>> {
        let known = states.get(&event.aggregate_id).filter(|known| known.version + 1 == event.version).cloned();
        let context = match (known, self.state.types.get(&event.aggregate_type)) {
            (Some(before), Some(definition)) => {
                let after = Arc::new(Aggregate::fold(Some(&before), &event, &definition));
                Some(EventContext { event, before: Some(before), after, definition })
            }
            _ => recall(&self.state, event).await?,
        };
        if let Some(context) = &context {
            states.insert(context.after.id.clone(), context.after.clone());
        }
        Ok(context)
    }
}

/// The result of a replay for one aggregate: the last facts, and the parked steps that are done after these facts are
/// applied.
struct AggregateReplay {
    event: Arc<Event>,
    facts: Facts,
    done: Vec<StepId>,
}

struct PluginReplay<'a> {
    worker: &'a mut Worker,
    plugin: PluginIndex,
    /// The ids of the events for which the plugin has assigned tasks.
    dispatched: FxHashSet<Arc<str>>,
    tally: ReplayTally,
    last: IndexMap<AggregateId, AggregateReplay>,
}

impl PluginReplay<'_> {
    async fn enrich(&mut self, contexts: Vec<Arc<EventContext>>) -> Result<()> {
        let state = self.worker.state.clone();
        let name = state.plugins.name(self.plugin);
        let version = state.plugins.about(self.plugin);
        let outcomes = state.plugins.call(self.plugin, &version, contexts.clone(), enrich::call, usize::MAX).await;
        for (context, outcome) in contexts.into_iter().zip(outcomes) {
            self.tally.events += 1;
            let mut facts = match outcome {
                Ok(done) => done.value,
                Err(failure) => {
                    self.tally.failed += 1;
                    self.worker.parking.park_replayed(self.plugin, Hook::Enrich, &context.event, failure);
                    continue;
                }
            };
            let workspace = &*state.record.id;
            let events = dispatch::derived_events(workspace, &context, name, std::mem::take(&mut facts.events));
            let appended = self.worker.dispatcher.append(name, events).await?;
            let event = context.event.clone();
            let step = step_id(&event, Hook::Enrich, name);
            let done = match appended {
                Ok(()) => state.db.find_parked(&step).await?.map(|parked| parked.id),
                Err(failure) => {
                    self.tally.failed += 1;
                    self.worker.parking.park(self.plugin, Hook::Enrich, &event, failure, 1);
                    None
                }
            };
            let first = || AggregateReplay { event: event.clone(), facts: Facts::default(), done: Vec::new() };
            let replayed = self.last.entry(context.after.id.clone()).or_insert_with(first);
            (replayed.event, replayed.facts) = (event.clone(), facts);
            replayed.done.extend(done);
        }
        Ok(())
    }

    async fn route(&mut self, contexts: Vec<Arc<EventContext>>) -> Result<()> {
        let (state, plugin) = (self.worker.state.clone(), self.plugin);
        let all = contexts.len();
        let waiting: Vec<_> =
            contexts.into_iter().filter(|context| !self.dispatched.contains(&context.event.event_id)).collect();
        self.tally.assigned_before += (all - waiting.len()) as u64;
        self.tally.events += waiting.len() as u64;
        let roster = &mut self.worker.projection.roster;
        let version = state.plugins.about(plugin);
        let prepare = |context| Arc::new(PreparedRoute::prepare(&state, &mut *roster, version.candidates, context));
        let inputs = waiting.iter().map(prepare).collect();
        let outcomes = state.plugins.call(plugin, &version, inputs, route::call, usize::MAX).await;
        for (context, outcome) in waiting.into_iter().zip(outcomes) {
            let assigned = match outcome {
                Ok(done) => done.value,
                Err(failure) => {
                    self.tally.failed += 1;
                    self.worker.parking.park_replayed(plugin, Hook::Route, &context.event, failure);
                    continue;
                }
            };
            let Worker { router, projection, dispatcher, .. } = &mut *self.worker;
            let has_work = !assigned.is_empty();
            let appended = router.assign(plugin, &context, &projection.roster, assigned, dispatcher).await?;
            match appended {
                Ok(()) => {
                    self.tally.assigned += u64::from(has_work);
                    let step = step_id(&context.event, Hook::Route, state.plugins.name(plugin));
                    let parked = state.db.find_parked(&step).await?;
                    parked.into_iter().for_each(|parked| self.worker.parking.release(parked.id));
                }
                Err(failure) => {
                    self.tally.failed += 1;
                    self.worker.parking.park(plugin, Hook::Route, &context.event, failure, 1);
                }
            }
        }
        self.worker.commit(self.worker.position()).await
    }

    /// Applies the facts page by page. The commit that writes the facts of a parked step also removes the step from the
    /// parked steps, so a crash between two pages loses neither facts nor steps.
    async fn apply(self) -> Result<ReplayTally> {
        let PluginReplay { worker, plugin, mut tally, last, .. } = self;
        let mut remaining = last.into_values().peekable();
        while remaining.peek().is_some() {
            for AggregateReplay { event, facts, done } in remaining.by_ref().take(PAGE) {
                let (changed, opened, closed) = worker.amend(plugin, &event, facts);
                tally.changed += changed;
                tally.edges_opened += opened;
                tally.edges_closed += closed;
                done.into_iter().for_each(|step| worker.parking.release(step));
            }
            worker.commit(worker.position()).await?;
        }
        worker.commit(worker.position()).await?;
        Ok(tally)
    }
}
