//! Shares the worker between the follower and requests that repair the graph.
//!
//! A worker that failed, or whose work was cancelled, may differ from the store. Such a worker is dropped, and the next
//! turn starts from the stored state.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use super::interrupt::{Interrupt, Wanted};
use super::worker::Worker;
use crate::core::State;
use crate::core::append::Appender;
use crate::error::{Error, Result};

/// The worker of one open workspace, once it has resumed.
pub type Working = Arc<WorkerSlot>;

#[derive(Default)]
pub struct WorkerSlot {
    worker: Mutex<Option<Worker>>,
    interrupt: Interrupt,
    rebuilding: Mutex<()>,
}

/// Exclusive access to the worker.
///
/// The worker is kept for the next turn only by [`WorkerTurn::keep`]. If the turn ends otherwise, by a failure or a
/// cancelled request, the next turn starts from the stored state.
pub struct WorkerTurn<'a> {
    slot: MutexGuard<'a, Option<Worker>>,
    worker: Worker,
}

impl WorkerSlot {
    /// Waits for the worker. Retries of a failing plugin end early meanwhile.
    pub async fn turn(&self, state: &Arc<State>, appender: &Appender) -> Result<WorkerTurn<'_>> {
        let wanted = self.interrupt.want();
        let slot = self.worker.lock().await;
        drop(wanted);
        self.begin(slot, state, appender).await
    }

    /// Takes the follower's turn. Waits for other turns without interrupting them.
    pub(super) async fn next_step(&self, state: &Arc<State>, appender: &Appender) -> Result<WorkerTurn<'_>> {
        let slot = self.worker.lock().await;
        self.begin(slot, state, appender).await
    }

    async fn begin<'a>(
        &'a self,
        mut slot: MutexGuard<'a, Option<Worker>>,
        state: &Arc<State>,
        appender: &Appender,
    ) -> Result<WorkerTurn<'a>> {
        let worker = match slot.take() {
            Some(worker) => worker,
            None => Worker::resume(state.clone(), appender.clone(), self.interrupt.clone()).await?,
        };
        Ok(WorkerTurn { slot, worker })
    }

    /// Pauses the worker while the caller writes the same records.
    pub async fn pause(&self) -> impl Drop + Send {
        let wanted = self.interrupt.want();
        let paused = self.worker.lock().await;
        drop(wanted);
        paused
    }

    /// Writes the worker's checkpoint for the next start.
    pub(super) async fn settle(&self) -> Result<()> {
        let mut slot = self.worker.lock().await;
        let Some(mut worker) = slot.take() else { return Ok(()) };
        worker.settle().await?;
        *slot = Some(worker);
        Ok(())
    }

    /// Ends waits for failing plugins until the returned value is dropped.
    pub fn hurry(&self) -> Wanted {
        self.interrupt.want()
    }

    /// Acquires the right to rebuild the graph. Only one rebuild runs at a time.
    pub(super) fn begin_rebuild(&self) -> Result<impl Drop + Send> {
        self.rebuilding.try_lock().map_err(|_| Error::conflict("rebuild_running", "the graph is already being rebuilt"))
    }
}

impl WorkerTurn<'_> {
    /// Keeps the worker for the next turn. Everything that the turn began must be written.
    pub fn keep(self) {
        let WorkerTurn { mut slot, worker } = self;
        *slot = Some(worker);
    }
}

impl Deref for WorkerTurn<'_> {
    type Target = Worker;

    fn deref(&self) -> &Worker {
        &self.worker
    }
}

impl DerefMut for WorkerTurn<'_> {
    fn deref_mut(&mut self) -> &mut Worker {
        &mut self.worker
    }
}
