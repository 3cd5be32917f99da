//! Retries failed steps of plugins with `on_error = "retry"`, between two batches of events.

use super::circuit::CallSubject;
use super::late_steps::{LateCall, LateCause, STEPS_PER_TURN, StreamData, failed_again, with_message};
use super::retries::{MAX_WAITING, retry_at};
use super::step_end::StepEnd;
use crate::consumer::worker::Worker;
use crate::error::Result;
use crate::metric;
use crate::state::plugins::PluginIndex;
use crate::store::workspace::parked::{ParkedStep, Reason, StepId};

/// Retries at most [`STEPS_PER_TURN`] steps that are due, in log order. Stops after the first step that fails again, so
/// that a failing plugin delays new events by only one failed call. Returns the time of the next retry, or `None` if no
/// retry is planned. `position` is the position of the last event that the worker has processed or passed over.
pub async fn retry_due(worker: &mut Worker, position: u64) -> Result<Option<i64>, StepEnd> {
    let next_at = retry_steps(worker).await?;
    worker.state.plugins.retries.report(position, next_at);
    Ok(next_at)
}

async fn retry_steps(worker: &mut Worker) -> Result<Option<i64>> {
    let state = worker.state.clone();
    for plugin in state.plugins.indexes() {
        if worker.circuits.by_plugin[plugin].is_open() {
            end_retries(worker, plugin).await?;
        } else if !worker.parking.retries.has_called(plugin) {
            worker.circuits.by_plugin[plugin].end_pause();
        }
    }
    let due = worker.parking.retries.due(&worker.circuits, state.clock.now_ms(), STEPS_PER_TURN);
    let mut streams = StreamData::default();
    for parked in stored(worker, &due).await? {
        if !retry_step(worker, parked, &mut streams).await? {
            break;
        }
    }
    Ok(worker.parking.retries.next_at(&worker.circuits))
}

/// Reads parked steps, in log order. Removes the retries of steps that were deleted.
async fn stored(worker: &mut Worker, steps: &[StepId]) -> Result<Vec<ParkedStep>> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = worker.state.db.find_parked_steps(steps).await?;
    found.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    for step in steps {
        if found.binary_search_by(|parked| parked.id.cmp(step)).is_err() {
            worker.parking.forget(step);
        }
    }
    Ok(found)
}

/// Ends the retries of a stopped plugin. The steps that waited for a retry stay parked.
async fn end_retries(worker: &mut Worker, plugin: PluginIndex) -> Result<()> {
    let steps = worker.parking.retries.of(plugin);
    for steps in steps.chunks(MAX_WAITING / 4) {
        for parked in stored(worker, steps).await? {
            worker.parking.park_again(ParkedStep { reason: Reason { retry_at: None, ..parked.reason }, ..parked });
        }
        worker.commit(worker.position()).await?;
    }
    Ok(())
}

/// Retries one step. Returns `false` if the plugin failed again.
async fn retry_step(worker: &mut Worker, parked: ParkedStep, streams: &mut StreamData) -> Result<bool> {
    let state = worker.state.clone();
    let called = match LateCall::prepare(&state, &parked, streams).await? {
        Ok(called) => called,
        Err(message) => {
            let parked = with_message(parked, message);
            worker.parking.park_again(ParkedStep { reason: Reason { retry_at: None, ..parked.reason }, ..parked });
            worker.commit(worker.position()).await?;
            return Ok(true);
        }
    };
    let Err(failure) = called.make(worker, streams, LateCause::Time).await? else {
        let workspace = &*state.record.id;
        tracing::info!(workspace, plugin = %parked.id.plugin, step = %parked.id.text(), "retried step succeeded");
        worker.circuits.by_plugin[called.plugin].succeeded();
        worker.parking.release(parked.id);
        worker.commit(worker.position()).await?;
        return Ok(true);
    };
    let mut parked = failed_again(parked, failure.clone(), &state.plugins.about(called.plugin).version);
    parked.reason.retry_at = retry_at(parked.reason.attempts, state.clock.now_ms());
    let aggregate_id = called.aggregate_id();
    let step = CallSubject { event: &called.context.event, aggregate_id: &aggregate_id };
    let workspace = &*state.record.id;
    if parked.reason.retry_at.is_some() {
        tracing::warn!(
            workspace, plugin = %parked.id.plugin, step = %parked.id.text(), %failure, "step failed; will retry"
        );
        worker.circuits.by_plugin[called.plugin].postponed(step);
    } else {
        let Reason { attempts, .. } = parked.reason;
        tracing::warn!(
            workspace, plugin = %parked.id.plugin, step = %parked.id.text(), attempts, %failure, "step parked"
        );
        metric::STEPS_PARKED.add(&[&parked.id.plugin], 1);
        called.give_up(worker, &failure).await?;
        if worker.circuits.by_plugin[called.plugin].failed(step) {
            worker.circuits.note_opened(called.plugin, &called.context.event);
            worker.notify_owner().await?;
        }
    }
    worker.parking.park_again(parked);
    worker.commit(worker.position()).await?;
    if worker.circuits.by_plugin[called.plugin].is_open() {
        end_retries(worker, called.plugin).await?;
    }
    Ok(false)
}
