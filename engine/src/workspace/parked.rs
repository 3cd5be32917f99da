//! Steps that failed and were put aside: seen, tried again, given up.

use super::entered::{Entered, Operation};
use super::rights::{Reader, Writer};
use crate::consumer::late_steps;
use crate::error::{Error, Result};

pub use crate::store::parked::{Parked, Reason, StepId};

/// Steps that one request replays at most.
pub const MAX_REPLAYED: usize = 1_000;

/// What became of the steps that were replayed.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    pub done: u64,
    /// Those that failed again.
    pub failed: Vec<Parked>,
    /// Steps that are still to be replayed.
    pub more: bool,
}

impl Reader {
    /// Parked steps in the order of their events, after one of them; of one plugin or all.
    pub async fn list_parked(&self, plugin: Option<&str>, after: Option<&StepId>, limit: usize) -> Result<Vec<Parked>> {
        Ok(self.entered.state().log.read_parked(plugin, after, limit).await?)
    }
}

impl Entered {
    async fn parked(&self, id: &str) -> Result<Parked> {
        let not_found = || Error::not_found("parked step", id);
        let step = StepId::parse(id).ok_or_else(not_found)?;
        self.state().log.find_parked(&step).await?.ok_or_else(not_found)
    }
}

impl Writer {
    /// Tries one parked step again.
    pub async fn replay_parked(&self, id: &str) -> Result<Replayed> {
        let parked = self.entered.parked(id).await?;
        Operation::perform(self, |operation| async move { replay_steps(&operation, vec![parked]).await }).await
    }

    /// Tries the parked steps of a plugin again, oldest first, or those of all.
    pub async fn replay_all_parked(&self, plugin: Option<&str>) -> Result<Replayed> {
        let mut parked = self.entered.state().log.read_parked(plugin, None, MAX_REPLAYED + 1).await?;
        let more = parked.len() > MAX_REPLAYED;
        parked.truncate(MAX_REPLAYED);
        let replayed =
            Operation::perform(self, |operation| async move { replay_steps(&operation, parked).await }).await?;
        Ok(Replayed { more, ..replayed })
    }

    /// Gives a parked step up.
    pub async fn delete_parked(&self, id: &str) -> Result<()> {
        let parked = self.entered.parked(id).await?;
        Operation::perform(self, |operation| async move {
            // Between two steps of the follower, so that neither writes over the other.
            let _paused = operation.working().pause().await;
            operation.state().log.delete_parked(&parked.id).await?;
            Ok(())
        })
        .await
    }
}

async fn replay_steps(operation: &Operation, parked: Vec<Parked>) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    let mut left = parked.into_iter();
    loop {
        let steps: Vec<Parked> = left.by_ref().take(late_steps::STEPS_PER_TURN).collect();
        if steps.is_empty() {
            return Ok(replayed);
        }
        // Another turn stands between two of these: plugins go on with what is appended meanwhile.
        let mut turn = operation.worker().await?;
        let count = steps.len() as u64;
        let failed = late_steps::replay_parked(&mut turn, steps).await?;
        turn.keep();
        replayed.done += count - failed.len() as u64;
        replayed.failed.extend(failed);
    }
}
