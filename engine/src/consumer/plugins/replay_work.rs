//! Replay of work: calls a plugin's hook `work` again for the tasks of the plugin's agent that wait for the agent or
//! have failed.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::parking::step_id;
use super::replay::ReplayTally;
use super::work;
use crate::consumer::event_context::{EventContext, FollowerView};
use crate::consumer::worker::Worker;
use crate::error::Result;
use crate::hook::{Failure, Hook};
use crate::model::agent::{PLUGIN, is_agent};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::TASK;
use crate::model::id::AggregateId;
use crate::model::task::{Status, Task};
use crate::model::value::Value;
use crate::state::State;
use crate::state::plugins::PluginIndex;
use crate::state::stream_pages::StreamPages;

/// The number of tasks for which the plugin is called before the results are written.
const PAGE: usize = 64;

/// Calls the hook for each task of the plugin's agent that waits for the agent or has failed, if the event that last
/// made the task wait for the agent is after `from_position`. Delivers the answers.
pub async fn replay(worker: &mut Worker, plugin: PluginIndex, from_position: u64) -> Result<ReplayTally> {
    let state = worker.state.clone();
    let mut tally = ReplayTally::default();
    for ids in open_tasks(&state, plugin).await.chunks(PAGE) {
        let mut inputs = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(context) = asked(&state, id, from_position.saturating_add(1)..=worker.position()).await? {
                inputs.push(Arc::new(worker.scripted_agents.prepare(&FollowerView::new(&state), &Arc::new(context))));
            }
        }
        let version = state.plugins.about(plugin);
        let outcomes = state.plugins.call(plugin, &version, inputs.clone(), work::call, usize::MAX).await;
        for (input, outcome) in inputs.into_iter().zip(outcomes) {
            tally.events += 1;
            let Worker { scripted_agents, dispatcher, .. } = &*worker;
            let context = &input.context;
            match outcome {
                Ok(done) => {
                    let delivered = scripted_agents.deliver(plugin, &input, done.value, true, dispatcher).await?;
                    match delivered {
                        Ok(()) => tally.delivered += 1,
                        Err(_) => tally.failed += 1,
                    }
                    settle(worker, plugin, context, delivered).await?;
                }
                Err(failure) => {
                    tally.failed += 1;
                    scripted_agents.give_up(plugin, context, &failure, dispatcher).await?;
                    worker.parking.park_replayed(plugin, Hook::Work, &context.event, failure);
                }
            }
        }
        worker.commit(worker.position()).await?;
    }
    Ok(tally)
}

/// Counts the tasks for which [`replay`] would call the hook.
pub async fn count(state: &State, plugin: PluginIndex, from_position: u64) -> Result<u64> {
    let mut count = 0;
    for id in open_tasks(state, plugin).await {
        let positions = from_position.saturating_add(1)..=state.graph_progress.position();
        count += u64::from(asked(state, &id, positions).await?.is_some());
    }
    Ok(count)
}

/// Handles the outcome of a delivery. If the answer was accepted, or was dropped because it came too late, releases the
/// parked step, if any. If the answer was rejected, ends the task and parks the step.
async fn settle(
    worker: &mut Worker,
    plugin: PluginIndex,
    context: &EventContext,
    outcome: Result<(), Failure>,
) -> Result<()> {
    let state = worker.state.clone();
    match outcome {
        Ok(()) => {
            let step = step_id(&context.event, Hook::Work, state.plugins.name(plugin));
            let parked = state.db.find_parked(&step).await?;
            parked.into_iter().for_each(|parked| worker.parking.release(parked.id));
        }
        Err(failure) => {
            let Worker { scripted_agents, dispatcher, .. } = &*worker;
            scripted_agents.give_up(plugin, context, &failure, dispatcher).await?;
            worker.parking.park(plugin, Hook::Work, &context.event, failure, 1);
        }
    }
    Ok(())
}

/// Returns the ids of the tasks that wait for the plugin's agent or have failed, the oldest first.
async fn open_tasks(state: &State, plugin: PluginIndex) -> Vec<AggregateId> {
    let name = state.plugins.name(plugin);
    let is_its = |task: &Aggregate| {
        let task = Task::new(task);
        is_open(task.status()) && task.assigned_agent().is_some_and(|agent| works_by(state, agent, name))
    };
    let mut ids = Vec::new();
    let mut tasks = state.folded.newest(Some(TASK), u64::MAX);
    while let Some(block) = tasks.next_block() {
        ids.extend(block.filter(|task| !task.deleted && is_its(task)).map(|task| task.id.clone()));
        tokio::task::yield_now().await;
    }
    ids.reverse();
    ids
}

fn is_open(status: Status) -> bool {
    matches!(status, Status::Pending | Status::AwaitingReply | Status::Failed)
}

fn works_by(state: &State, agent: &str, plugin: &str) -> bool {
    let agent = state.folded.get(agent).filter(|agent| is_agent(agent));
    agent.is_some_and(|agent| agent.state.get(PLUGIN).and_then(Value::as_str) == Some(plugin))
}

/// Returns the last event that made a task wait for its current agent. Returns `None` if there is no such event, or if
/// the event's position is outside `positions`.
async fn asked(state: &State, id: &AggregateId, positions: RangeInclusive<u64>) -> Result<Option<EventContext>> {
    let (Some(now), Some(definition)) = (state.folded.get(id.as_str()), state.types.get(TASK)) else { return Ok(None) };
    let agent = Task::new(&now).assigned_agent();
    let mut pages = StreamPages::new(id.clone(), 1..=now.version);
    let (mut before, mut asked): (Option<Arc<Aggregate>>, Option<EventContext>) = (None, None);
    while let Some(events) = pages.next(&state.db).await? {
        for event in events.into_iter().map(Arc::new) {
            let after = Arc::new(Aggregate::fold(before.as_deref(), &event, &definition));
            let task = Task::new(&after);
            if work::asks(&event) && work::waits(&task) && task.assigned_agent() == agent {
                let definition = definition.clone();
                asked = Some(EventContext { event, before: before.take(), after: after.clone(), definition });
            }
            before = Some(after);
        }
        tokio::task::yield_now().await;
    }
    Ok(asked.filter(|asked| positions.contains(&asked.event.position)))
}
