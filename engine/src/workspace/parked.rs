//! Lists, replays and deletes parked steps, which are steps that failed, or that were not run because their plugin was
//! stopped or paused.

mod groups;
mod selection;

use std::sync::Arc;

use super::call_context::{CallContext, Operation};
use super::rights::{Reader, Writer};
use crate::consumer::plugins::late_steps;
use crate::error::{Error, Result};

pub use crate::store::workspace::parked::{ParkedStep, Reason, StepId};
pub use groups::{FailureCause, StepGroup, StepGroups};
pub use selection::{MAX_EXAMINED, StepChoice, StepSelection};

/// The maximum number of steps that one request replays, and the maximum number of step ids in a request.
pub const MAX_REPLAYED: usize = 1_000;
/// The maximum number of steps deleted in one transaction.
const DELETED_AT_ONCE: usize = 500;

/// The result of replaying steps.
#[derive(Debug, Clone, Default)]
pub struct ReplayOutcome {
    pub done: u64,
    /// The steps that failed again.
    pub failed: Vec<ParkedStep>,
    /// The number of selected steps. If `more` is set, the actual number may be higher.
    pub selected: u64,
    /// Whether the request selected more than [`MAX_REPLAYED`] steps.
    pub more: bool,
    /// The last of the replayed steps.
    pub last: Option<StepId>,
}

impl Reader {
    /// Returns parked steps in the order of their events, starting after the step `after`. `plugin` selects the steps
    /// of one plugin, which need not be enabled. `None` selects the steps of all enabled plugins.
    pub async fn list_parked(
        &self,
        plugin: Option<&str>,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<Vec<ParkedStep>> {
        Ok(self.context.state().db.read_parked(&self.context.parking(plugin), after, limit).await?)
    }
}

impl CallContext {
    /// Returns the names of the plugins whose parked steps are selected: the given plugin, or all enabled plugins.
    fn parking(&self, plugin: Option<&str>) -> Vec<Arc<str>> {
        let plugins = &self.state().plugins;
        match plugin {
            Some(plugin) => vec![plugin.into()],
            None => plugins.indexes().map(|plugin| plugins.name(plugin).clone()).collect(),
        }
    }

    async fn parked(&self, id: &str) -> Result<ParkedStep> {
        let not_found = || Error::not_found("parked step", id);
        let step = StepId::parse(id).ok_or_else(not_found)?;
        self.state().db.find_parked(&step).await?.ok_or_else(not_found)
    }
}

impl Writer {
    /// Replays one parked step.
    pub async fn replay_parked(&self, id: &str) -> Result<ReplayOutcome> {
        let parked = self.context.parked(id).await?;
        Operation::perform(self, |operation| async move { replay_steps(&operation, vec![parked]).await }).await
    }

    /// Replays the selected steps, oldest first, but at most [`MAX_REPLAYED`].
    pub async fn replay_selected(&self, selection: StepSelection) -> Result<ReplayOutcome> {
        let (steps, count) = self.context.select_parked(&selection, MAX_REPLAYED).await?;
        let more = count > steps.len();
        let replayed =
            Operation::perform(self, |operation| async move { replay_steps(&operation, steps).await }).await?;
        Ok(ReplayOutcome { more, selected: count as u64, ..replayed })
    }

    /// Counts the selected steps. Replays nothing.
    pub async fn count_selected(&self, selection: StepSelection) -> Result<ReplayOutcome> {
        let (_, count) = self.context.select_parked(&selection, MAX_EXAMINED).await?;
        Ok(ReplayOutcome { selected: count as u64, more: count > MAX_REPLAYED, ..ReplayOutcome::default() })
    }

    /// Deletes a parked step without replaying it.
    pub async fn delete_parked(&self, id: &str) -> Result<()> {
        let parked = self.context.parked(id).await?;
        Operation::perform(self, |operation| async move { delete_steps(&operation, &[parked.id]).await }).await
    }

    /// Deletes the selected steps, but at most [`MAX_EXAMINED`], without replaying them. Returns the number of deleted
    /// steps.
    pub async fn delete_selected(&self, selection: StepSelection) -> Result<u64> {
        let (steps, _) = self.context.select_parked(&selection, MAX_EXAMINED).await?;
        let steps: Vec<StepId> = steps.into_iter().map(|parked| parked.id).collect();
        let count = steps.len() as u64;
        Operation::perform(self, |operation| async move { delete_steps(&operation, &steps).await }).await?;
        Ok(count)
    }
}

async fn delete_steps(operation: &Operation, steps: &[StepId]) -> Result<()> {
    for steps in steps.chunks(DELETED_AT_ONCE) {
        // During a turn, no other server can park one of these steps again.
        let mut turn = operation.worker().await?;
        turn.worker.release_steps(steps).await?;
        turn.keep();
    }
    Ok(())
}

async fn replay_steps(operation: &Operation, parked: Vec<ParkedStep>) -> Result<ReplayOutcome> {
    let steps: Vec<StepId> = parked.into_iter().map(|parked| parked.id).collect();
    let (last, selected) = (steps.last().cloned(), steps.len() as u64);
    let mut replayed = ReplayOutcome { last, selected, ..ReplayOutcome::default() };
    for steps in steps.chunks(late_steps::STEPS_PER_TURN) {
        // Takes a new turn for each batch, so that plugins can process new events between two batches.
        let mut turn = operation.worker().await?;
        let (done, failed) = late_steps::replay_parked(&mut turn.worker, steps).await?;
        turn.keep();
        replayed.done += done;
        replayed.failed.extend(failed);
    }
    Ok(replayed)
}
