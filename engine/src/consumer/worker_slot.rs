//! Shares the worker between the log's follower and requests that repair the graph.
//!
//! A worker that failed or was canceled may differ from the store. Such a worker is dropped, and the next turn starts
//! from the stored state.

use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use super::graph::mirror::Mirror;
use super::worker::Worker;
use crate::append::appender::Appender;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::members::Members;
use crate::state::State;
use crate::state::leadership::Lead;
use crate::store::{self, retry};

/// The slot for the worker of one open workspace, shared by the tasks that use the worker.
pub struct WorkerSlot {
    members: Members,
    /// The mirror of the graph, which the follower uses while another server leads.
    pub(super) mirror: Mirror,
    worker: Mutex<Option<Worker>>,
    rebuilding: Mutex<()>,
}

/// A turn: exclusive access to the worker.
///
/// [`WorkerTurn::keep`] keeps the worker for the next turn. If the turn ends without this call, because of a failure or
/// a canceled request, the next turn starts from the stored state.
pub struct WorkerTurn<'a> {
    slot: MutexGuard<'a, Option<Worker>>,
    pub worker: Worker,
}

impl WorkerSlot {
    pub fn new(members: Members) -> WorkerSlot {
        let (mirror, worker, rebuilding) = Default::default();
        WorkerSlot { members, mirror, worker, rebuilding }
    }

    /// Waits for the worker and takes a turn. The worker of the turn has adopted the newest versions of the plugins. If
    /// another server leads, takes over from that server.
    pub async fn lock(&self, state: &Arc<State>, appender: &Appender) -> Result<WorkerTurn<'_>> {
        for _ in retry::delays() {
            let slot = self.worker.lock().await;
            // The caller changes the graph, so this server takes over from the server that leads.
            let lead = state.leadership.take_over().await?;
            let mut turn = self.begin(slot, state, appender, lead).await?;
            match turn.worker.adopt_versions().await {
                Ok(()) => return Ok(turn),
                // Another server has processed events or adopted versions. The next turn begins with the state that the
                // other server stored.
                Err(Error::Unavailable(store::Error::Conflict)) if !state.is_exclusive() => drop(turn),
                Err(error) => return Err(error),
            }
        }
        Err(Error::Unavailable(store::Error::Conflict))
    }

    /// Waits for the worker and takes a turn for the follower. Returns `None` if another server leads.
    pub(super) async fn next_step(&self, state: &Arc<State>, appender: &Appender) -> Result<Option<WorkerTurn<'_>>> {
        let mut slot = self.worker.lock().await;
        // Another server has written the graph, so that server leads now.
        if slot.as_ref().is_some_and(|worker| worker.writes() < state.reported.borrow().writes) {
            state.leadership.forget();
        }
        let is_behind = state.graph_progress.position() < state.folded.position();
        match state.leadership.acquire(is_behind).await? {
            Some(lead) => self.begin(slot, state, appender, lead).await.map(Some),
            None => {
                *slot = None;
                Ok(None)
            }
        }
    }

    async fn begin<'a>(
        &'a self,
        mut slot: MutexGuard<'a, Option<Worker>>,
        state: &Arc<State>,
        appender: &Appender,
        lead: Lead,
    ) -> Result<WorkerTurn<'a>> {
        // A worker of an earlier leadership is dropped, because other servers may have changed the graph since.
        let worker = match slot.take().filter(|worker| worker.lead() == lead) {
            Some(worker) => worker,
            None => {
                self.mirror.end().await;
                Worker::resume(state.clone(), appender.clone(), self.members.clone(), lead).await?
            }
        };
        Ok(WorkerTurn { slot, worker })
    }

    /// Prepares a read of the graph: if another server leads, applies all changes that the leader had written by the
    /// last [`State::refresh`].
    pub async fn apply_newest_changes(&self, state: &Arc<State>) -> Result<()> {
        if state.is_exclusive() {
            return Ok(());
        }
        let seen = state.seen_writes();
        if state.leadership.is_overtaken(seen.epoch) {
            // Waits for the step of the overtaken worker, which changes the graph in memory.
            let mut slot = self.worker.lock().await;
            if state.leadership.is_overtaken(seen.epoch) {
                *slot = None;
                state.leadership.forget_before(seen.epoch);
            }
        }
        self.mirror.apply_newest_changes(state, seen.graph_writes).await
    }

    /// Pauses the worker until the returned guard is dropped, so that the caller can write records that the worker
    /// writes as well.
    pub async fn pause(&self) -> impl Drop + Send {
        self.worker.lock().await
    }

    /// Writes the worker's checkpoint. The next start resumes at this checkpoint.
    pub(super) async fn write_checkpoint(&self) -> Result<()> {
        let mut slot = self.worker.lock().await;
        let Some(mut worker) = slot.take() else { return Ok(()) };
        worker.write_checkpoint().await?;
        *slot = Some(worker);
        Ok(())
    }

    /// Acquires the right to rebuild the graph until the returned guard is dropped. This server runs only one rebuild
    /// of the workspace at a time. Fails if a rebuild is already running.
    pub(super) fn begin_rebuild(&self) -> Result<impl Drop + Send> {
        self.rebuilding
            .try_lock()
            .map_err(|_| Error::conflict(ErrorCode::RebuildRunning, "the graph is already being rebuilt"))
    }
}

impl WorkerTurn<'_> {
    /// Ends the turn and keeps the worker for the next turn. The caller must first write all changes of the turn.
    pub fn keep(self) {
        let WorkerTurn { mut slot, worker } = self;
        *slot = Some(worker);
    }
}
