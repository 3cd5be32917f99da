//! Parked steps: listing, replaying and deleting steps that failed.

use std::sync::Arc;

use super::call_context::{CallContext, Operation};
use super::rights::{Reader, Writer};
use crate::consumer::late_steps;
use crate::error::{Error, Result};

pub use crate::store::parked::{Parked, Reason, StepId};

/// The maximum number of steps that one request replays.
pub const MAX_REPLAYED: usize = 1_000;

/// The result of replaying steps.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    pub done: u64,
    /// The steps that failed again.
    pub failed: Vec<Parked>,
    /// Whether more parked steps matched the request than one request replays.
    pub more: bool,
}

impl Reader {
    /// Returns parked steps in the order of their events, starting after the step `after`. `plugin` selects the steps
    /// of one plugin, which need not be enabled. Without it, the steps of enabled plugins are returned.
    pub async fn list_parked(&self, plugin: Option<&str>, after: Option<&StepId>, limit: usize) -> Result<Vec<Parked>> {
        Ok(self.context.state().db.read_parked(&self.context.parking(plugin), after, limit).await?)
    }
}

impl CallContext {
    /// Returns the names of the plugins whose parked steps are selected: the given one, or all that are enabled.
    fn parking(&self, plugin: Option<&str>) -> Vec<Arc<str>> {
        let plugins = &self.state().plugins;
        match plugin {
            Some(plugin) => vec![plugin.into()],
            None => plugins.indexes().map(|plugin| plugins.name(plugin).clone()).collect(),
        }
    }

    async fn parked(&self, id: &str) -> Result<Parked> {
        let not_found = || Error::not_found("parked step", id);
        let step = StepId::parse(id).ok_or_else(not_found)?;
        self.state().db.find_parked(&step).await?.ok_or_else(not_found)
    }
}

impl Writer {
    /// Replays one parked step.
    pub async fn replay_parked(&self, id: &str) -> Result<Replayed> {
        let parked = self.context.parked(id).await?;
        Operation::perform(self, |operation| async move { replay_steps(&operation, vec![parked]).await }).await
    }

    /// Replays the parked steps of one plugin or of all plugins, oldest first.
    pub async fn replay_all_parked(&self, plugin: Option<&str>) -> Result<Replayed> {
        let mut parked =
            self.context.state().db.read_parked(&self.context.parking(plugin), None, MAX_REPLAYED + 1).await?;
        let more = parked.len() > MAX_REPLAYED;
        parked.truncate(MAX_REPLAYED);
        let replayed =
            Operation::perform(self, |operation| async move { replay_steps(&operation, parked).await }).await?;
        Ok(Replayed { more, ..replayed })
    }

    /// Deletes a parked step without replaying it.
    pub async fn delete_parked(&self, id: &str) -> Result<()> {
        let parked = self.context.parked(id).await?;
        Operation::perform(self, |operation| async move {
            // Pauses the follower, so that the follower and the deletion do not overwrite each other's changes.
            let _paused = operation.working().pause().await;
            operation.database().delete_parked(&parked.id).await?;
            Ok(())
        })
        .await
    }
}

async fn replay_steps(operation: &Operation, parked: Vec<Parked>) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    let mut remaining = parked.into_iter();
    loop {
        let steps: Vec<Parked> = remaining.by_ref().take(late_steps::STEPS_PER_TURN).collect();
        if steps.is_empty() {
            return Ok(replayed);
        }
        // Takes a new turn for each batch, so that plugins can process new events between two batches.
        let mut turn = operation.worker().await?;
        let count = steps.len() as u64;
        let failed = late_steps::replay_parked(&mut turn, steps).await?;
        turn.keep();
        replayed.done += count - failed.len() as u64;
        replayed.failed.extend(failed);
    }
}
