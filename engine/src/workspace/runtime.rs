//! A workspace at work: its state, its appender and its consumer, from the moment it is opened until it is closed.

use std::sync::Arc;

use crate::consumer::{Consumer, Working};
use crate::core::State;
use crate::core::append::Appender;

/// A workspace that is open in this process, with what works on it.
pub struct Runtime {
    pub state: Arc<State>,
    pub appender: Appender,
    appending: tokio::task::JoinHandle<()>,
    consumer: tokio::sync::Mutex<Option<Consumer>>,
    pub working: Working,
}

impl Runtime {
    /// Starts what works on a loaded workspace.
    pub fn start(state: State) -> Runtime {
        let state = Arc::new(state);
        let (appender, appending) = Appender::start(state.clone());
        let working = Working::default();
        let consumer = Consumer::start(state.clone(), appender.clone(), working.clone());
        Runtime { appender, appending, consumer: tokio::sync::Mutex::new(Some(consumer)), working, state }
    }

    /// Lets the consumer catch up with the log and ends it. Appends are answered before their requests end.
    pub async fn stop(&self) {
        if let Some(consumer) = self.consumer.lock().await.take() {
            consumer.stop().await;
        }
    }

    /// Ends all that works on the workspace. Appends that nobody waits for any more are committed before.
    pub async fn close(self) {
        self.stop().await;
        let Runtime { state, appender, appending, consumer: _, working } = self;
        // The follower that has ended holds the queue too.
        drop(working);
        drop(appender);
        if let Err(error) = appending.await {
            tracing::error!(%error, workspace = %state.record.id, "the appender did not end well");
        }
    }
}
