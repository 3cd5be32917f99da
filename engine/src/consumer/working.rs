//! Whose turn it is to work on the graph: the follower's, or a request's that repairs something.
//!
//! A worker that failed, or whose work was cancelled, knows more or less than the store does. It is dropped, and the next
//! turn begins with what is stored.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use super::interrupt::{Interrupt, Wanted};
use super::worker::Worker;
use crate::core::State;
use crate::core::append::Appender;
use crate::error::{Error, Result};

/// The worker of one open workspace, once it has taken up its work.
pub type Working = Arc<WorkerSlot>;

#[derive(Default)]
pub struct WorkerSlot {
    worker: Mutex<Option<Worker>>,
    interrupt: Interrupt,
    rebuilding: Mutex<()>,
}

/// The worker, for as long as nobody else may have it.
///
/// It is kept for the next turn by [`WorkerTurn::keep`] only: whatever ends the turn otherwise, a failure or a request that went
/// away, leaves the next one to begin with what is stored.
pub struct WorkerTurn<'a> {
    slot: MutexGuard<'a, Option<Worker>>,
    worker: Worker,
}

impl WorkerSlot {
    /// Waits for the worker. A plugin that is tried again and again is left alone meanwhile.
    pub async fn turn(&self, state: &Arc<State>, appender: &Appender) -> Result<WorkerTurn<'_>> {
        let wanted = self.interrupt.want();
        let slot = self.worker.lock().await;
        drop(wanted);
        self.begin(slot, state, appender).await
    }

    /// The follower's turn: it waits for others, and interrupts nobody.
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

    /// Holds the worker up, for whoever writes what it writes too.
    pub async fn pause(&self) -> impl Drop + Send {
        let wanted = self.interrupt.want();
        let paused = self.worker.lock().await;
        drop(wanted);
        paused
    }

    /// Writes down where the worker stands, for the next start.
    pub(super) async fn settle(&self) -> Result<()> {
        let mut slot = self.worker.lock().await;
        let Some(mut worker) = slot.take() else { return Ok(()) };
        worker.settle().await?;
        *slot = Some(worker);
        Ok(())
    }

    /// Lets nobody wait for a plugin any more.
    pub fn hurry(&self) -> Wanted {
        self.interrupt.want()
    }

    /// The right to rebuild the graph; one rebuild at a time has it.
    pub(super) fn begin_rebuild(&self) -> Result<impl Drop + Send> {
        self.rebuilding.try_lock().map_err(|_| Error::conflict("rebuild_running", "the graph is being rebuilt already"))
    }
}

impl WorkerTurn<'_> {
    /// All that was begun was written: the next turn goes on from here.
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
