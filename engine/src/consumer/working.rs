//! Shares the worker between the log's follower and requests that repair the graph.
//!
//! A worker that failed or was cancelled may differ from the store. Such a worker is dropped, and the next turn starts
//! from the stored state.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use super::interrupt::{Interrupt, InterruptRequest};
use super::worker::Worker;
use crate::core::State;
use crate::core::append::Appender;
use crate::error::{Error, Result};

/// The slot for the worker of one open workspace, shared by the tasks that use the worker.
pub type Working = Arc<WorkerSlot>;

#[derive(Default)]
pub struct WorkerSlot {
    worker: Mutex<Option<Worker>>,
    interrupt: Interrupt,
    rebuilding: Mutex<()>,
}

/// Exclusive access to the worker.
///
/// [`WorkerTurn::keep`] keeps the worker for the next turn. If the turn ends without it, by a failure or a cancelled
/// request, the next turn starts from the stored state.
pub struct WorkerTurn<'a> {
    slot: MutexGuard<'a, Option<Worker>>,
    worker: Worker,
}

impl WorkerSlot {
    /// Waits for the worker and takes a turn. While a task waits, the worker ends its retries of failing plugins early.
    pub async fn turn(&self, state: &Arc<State>, appender: &Appender) -> Result<WorkerTurn<'_>> {
        let request = self.interrupt.request();
        let slot = self.worker.lock().await;
        drop(request);
        self.begin(slot, state, appender).await
    }

    /// Waits for other turns without interrupting them, then takes the follower's turn.
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

    /// Pauses the worker until the returned guard is dropped, so that the caller can write records that the worker
    /// writes as well.
    pub async fn pause(&self) -> impl Drop + Send {
        let request = self.interrupt.request();
        let paused = self.worker.lock().await;
        drop(request);
        paused
    }

    /// Writes the worker's checkpoint. The next start resumes there.
    pub(super) async fn settle(&self) -> Result<()> {
        let mut slot = self.worker.lock().await;
        let Some(mut worker) = slot.take() else { return Ok(()) };
        worker.settle().await?;
        *slot = Some(worker);
        Ok(())
    }

    /// Ends retries of failing plugins early until the returned value is dropped.
    pub fn hurry(&self) -> InterruptRequest {
        self.interrupt.request()
    }

    /// Acquires the right to rebuild the graph until the returned guard is dropped. Only one rebuild runs at a time.
    pub(super) fn begin_rebuild(&self) -> Result<impl Drop + Send> {
        self.rebuilding.try_lock().map_err(|_| Error::conflict("rebuild_running", "the graph is already being rebuilt"))
    }
}

impl WorkerTurn<'_> {
    /// Ends the turn and keeps the worker for the next turn. All changes of the turn must be written before.
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
