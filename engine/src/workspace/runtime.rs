//! A workspace at work: its state, its appender, its consumer and the operations under way, from the moment it is
//! opened until it is closed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::answers;
use super::scripted::register_scripted;
use crate::consumer::{Consumer, Working};
use crate::core::State;
use crate::core::append::Appender;
use crate::core::background::Background;
use crate::core::clearing::keep_clearing;
use crate::error::Result;
use crate::mailbox::selection;
use crate::mailbox::timers::Timers;
use crate::model::agent::is_agent;
use crate::turns::Turns;

/// How long a workspace that stops waits for operations that nobody may be waiting for any more.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// A workspace that is open in this process, with what works on it. When it is dropped all of that ends.
pub struct Runtime {
    pub state: Arc<State>,
    pub appender: Appender,
    /// The appender's task. It is not aborted, since it may be committing; it ends when every handle to it is dropped.
    appending: JoinHandle<()>,
    consumer: tokio::sync::Mutex<Option<Consumer>>,
    timers: tokio::sync::Mutex<Option<Timers>>,
    pub working: Working,
    pub operations: Operations,
    /// Requests whose answers are kept as they were given.
    pub turns: Arc<Turns>,
    forgetting: Background,
    /// Writes which agents are there.
    attending: Background,
    clearing: Background,
}

impl Runtime {
    /// Registers the agents of plugins in a loaded workspace, and starts what works on it. Where the first fails, nothing
    /// is left running.
    pub async fn open(state: State) -> Result<Runtime> {
        let state = Arc::new(state);
        let (appender, appending) = Appender::start(state.clone());
        if let Err(error) = register_scripted(&state, &appender).await {
            drop(appender);
            appended(appending, &state).await;
            return Err(error);
        }
        let working = Working::default();
        let consumer = Consumer::start(state.clone(), appender.clone(), working.clone());
        let timers = Timers::start(state.clone(), appender.clone());
        let loaded = state.clone();
        // Nobody waits for it: lists make the columns themselves where they come first.
        drop(tokio::task::spawn_blocking(move || selection::prepare(&loaded.folded)));
        Ok(Runtime {
            appender,
            appending,
            consumer: tokio::sync::Mutex::new(Some(consumer)),
            timers: tokio::sync::Mutex::new(Some(timers)),
            working,
            operations: Operations::default(),
            turns: Arc::default(),
            forgetting: Background::spawn(answers::keep_forgetting(state.clone())),
            attending: Background::spawn(keep_writing_presence(state.clone())),
            clearing: Background::spawn(keep_clearing(state.clone())),
            state,
        })
    }

    /// Lets operations end, and the consumer catch up with the log.
    pub async fn stop(&self) {
        if tokio::time::timeout(STOP_WITHIN, self.operations.ended()).await.is_err() {
            tracing::warn!(workspace = %self.state.record.id, "operations are under way still");
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
            tracing::warn!(%error, workspace = %self.state.record.id, "which agents are there was not written");
        }
        self.clearing.abort();
    }

    /// Ends all that works on the workspace. Appends that nobody waits for any more are committed before.
    pub async fn close(self) {
        self.stop().await;
        let Runtime { state, appender, appending, working, .. } = self;
        // The follower that has ended holds the queue too.
        drop(working);
        drop(appender);
        appended(appending, &state).await;
    }
}

/// Returns when the appender has ended.
async fn appended(appending: JoinHandle<()>, state: &State) {
    if let Err(error) = appending.await {
        tracing::error!(%error, workspace = %state.record.id, "the appender did not end well");
    }
}

async fn keep_writing_presence(state: Arc<State>) {
    if let Err(error) = forget_absent(&state).await {
        tracing::debug!(%error, "what is kept of agents that are gone was not removed");
    }
    state.presence.keep_writing().await;
}

/// Removes the presence of agents that were deleted where nobody could remove it.
async fn forget_absent(state: &State) -> Result<()> {
    let kept = state.presence.kept().await?;
    // Who has a row is in the log: no agent is missing from then on.
    state.refresh().await?;
    let is_there = |id: &Arc<str>| state.folded.get(id).is_some_and(|found| is_agent(&found));
    let gone: Vec<Arc<str>> = kept.into_iter().filter(|id| !is_there(id)).collect();
    state.presence.forget(&gone).await
}

/// The operations under way, counted.
#[derive(Default)]
pub struct Operations {
    running: watch::Sender<usize>,
}

/// An operation under way; it has ended when this is dropped.
pub struct OperationGuard(watch::Sender<usize>);

impl Operations {
    pub fn begin(&self) -> OperationGuard {
        self.running.send_modify(|running| *running += 1);
        OperationGuard(self.running.clone())
    }

    /// Returns when none is under way.
    pub async fn ended(&self) {
        // The sender is held here.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}
