//! The runtime of an open workspace: its state, its appender, its consumer and the running operations.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::responses;
use crate::access::Access;
use crate::append::appender::Appender;
use crate::consumer::plugins::agent_registration::register_scripted;
use crate::consumer::{Consumer, WorkerSlot};
use crate::error::Result;
use crate::mailbox::leases::Renewals;
use crate::mailbox::members::Members;
use crate::mailbox::selection;
use crate::mailbox::timers::Timers;
use crate::model::agent::is_agent;
use crate::named_locks::NamedLocks;
use crate::state::State;
use crate::state::background::Background;
use crate::state::upload_cleanup::keep_clearing;
use crate::store::Database;

/// The maximum time that a stopping workspace waits for running operations. Operations may continue after their clients
/// have disconnected, so the wait has a limit.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// A workspace that is open in this process, with its tasks. Dropping the runtime ends the tasks.
pub struct Runtime {
    pub state: Arc<State>,
    pub appender: Appender,
    /// The appender's task. The task is never aborted, since it may be committing. The task ends when all handles to
    /// the appender are dropped.
    appending: JoinHandle<()>,
    consumer: tokio::sync::Mutex<Option<Consumer>>,
    timers: tokio::sync::Mutex<Option<Timers>>,
    pub worker_slot: Arc<WorkerSlot>,
    pub operations: Operations,
    /// The locks for requests whose responses are stored, by idempotency key.
    pub turns: Arc<NamedLocks>,
    pub renewals: Arc<Renewals>,
    forgetting: Background,
    /// The task that writes the presence of agents.
    attending: Background,
    /// The task that writes renewed leases.
    renewing: Background,
    clearing: Background,
}

impl Runtime {
    /// Registers the agents of plugins in a loaded workspace, and starts its tasks. If the registration fails, no task
    /// is left running.
    pub async fn open(state: State, db: Database, access: Arc<Access>) -> Result<Runtime> {
        let state = Arc::new(state);
        let (appender, appending) = Appender::start(state.clone(), db.clone());
        if let Err(error) = register_scripted(&state, &appender).await {
            drop(appender);
            appended(appending, &state).await;
            return Err(error);
        }
        let members = Members::new(access, state.record.id.clone());
        let worker_slot = Arc::new(WorkerSlot::new(members.clone()));
        let consumer = Consumer::start(state.clone(), appender.clone(), worker_slot.clone());
        let renewals = Arc::new(Renewals::new(db.clone(), state.is_exclusive()));
        let timers = Timers::start(state.clone(), appender.clone(), members, renewals.clone());
        let (renewing, workspace_id) = (renewals.clone(), state.record.id.clone());
        let loaded = state.clone();
        // Nothing waits for this task: if a list needs the columns before this task ends, the list builds them.
        drop(tokio::task::spawn_blocking(move || selection::prepare(&loaded.folded)));
        Ok(Runtime {
            appender,
            appending,
            consumer: tokio::sync::Mutex::new(Some(consumer)),
            timers: tokio::sync::Mutex::new(Some(timers)),
            worker_slot,
            operations: Operations::default(),
            turns: Arc::default(),
            renewals,
            renewing: Background::spawn(async move { renewing.keep_writing(&workspace_id).await }),
            forgetting: Background::spawn(responses::keep_forgetting(state.clone(), db.clone())),
            attending: Background::spawn(keep_writing_presence(state.clone())),
            clearing: Background::spawn(keep_clearing(state.clone(), db)),
            state,
        })
    }

    /// Waits a short time for running operations to end, then a short time for the consumer to catch up with the log.
    /// Stops all tasks except the appender, writes the presence of agents and renewed leases, and releases the
    /// leadership of the workspace. `is_needed` states whether another server must continue to run the plugins and
    /// timers of the workspace.
    pub async fn stop(&self, is_needed: bool) {
        if tokio::time::timeout(STOP_WITHIN, self.operations.ended()).await.is_err() {
            tracing::warn!(workspace = %self.state.record.id, "closing a workspace while operations are still running");
        }
        if let Some(timers) = self.timers.lock().await.take() {
            timers.stop().await;
        }
        if let Some(consumer) = self.consumer.lock().await.take() {
            consumer.stop().await;
        }
        self.forgetting.abort();
        self.attending.abort();
        if let Err(error) = self.state.presence.write().await {
            tracing::warn!(%error, workspace = %self.state.record.id, "failed to write the presence of agents");
        }
        self.renewing.abort();
        if let Err(error) = self.renewals.write().await {
            tracing::warn!(%error, workspace = %self.state.record.id, "failed to write renewed leases");
        }
        self.clearing.abort();
        self.state.leadership.release(is_needed).await;
    }

    /// Stops an idle workspace and its appender. Queued appends are committed first, even if no client waits for them.
    pub async fn close(self) {
        self.stop(false).await;
        let Runtime { state, appender, appending, worker_slot, .. } = self;
        // The worker in the slot still holds the queue of the appender, although the consumer has ended.
        drop(worker_slot);
        drop(appender);
        appended(appending, &state).await;
    }
}

/// Waits until the appender has ended.
async fn appended(appending: JoinHandle<()>, state: &State) {
    if let Err(error) = appending.await {
        tracing::error!(%error, workspace = %state.record.id, "the appender failed");
    }
}

async fn keep_writing_presence(state: Arc<State>) {
    if let Err(error) = forget_absent(&state).await {
        tracing::debug!(%error, workspace = %state.record.id, "failed to remove the presence of deleted agents");
    }
    state.presence.keep_writing(&state.record.id).await;
}

/// Removes the presence rows of deleted agents. The row of a deleted agent is left over if its removal failed when the
/// agent was deleted.
async fn forget_absent(state: &State) -> Result<()> {
    let kept = state.presence.kept().await?;
    // Every agent with a presence row is in the log, so after a refresh no agent is missing.
    state.refresh().await?;
    let is_there = |id: &Arc<str>| state.folded.get(id).is_some_and(|found| is_agent(&found));
    let gone: Vec<Arc<str>> = kept.into_iter().filter(|id| !is_there(id)).collect();
    state.presence.forget(&gone).await
}

/// The number of running operations.
#[derive(Default)]
pub struct Operations {
    running: watch::Sender<usize>,
}

/// A running operation. Dropping the guard marks the operation as ended.
pub struct OperationGuard(watch::Sender<usize>);

impl Operations {
    pub fn begin(&self) -> OperationGuard {
        self.running.send_modify(|running| *running += 1);
        OperationGuard(self.running.clone())
    }

    /// Waits until no operation is running.
    pub async fn ended(&self) {
        // The wait never fails, since `self` holds the sender.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}
