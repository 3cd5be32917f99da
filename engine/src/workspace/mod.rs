//! The operations, each scoped to one workspace; a file per resource.
//!
//! A [`Workspace`] exists only for a caller who holds a scope that the operation asked for. No query text and no wire
//! types here.

pub mod agents;
pub mod aggregates;
pub mod answers;
pub mod append;
pub mod articles;
pub mod events;
pub mod graph;
pub mod keys;
pub mod parked;
pub mod plugins;
pub mod projects;
pub mod query;
pub mod search;
pub mod staging;
pub mod state;
pub mod system;
pub mod types;
pub mod vectors;

use std::sync::Arc;

use append::{Append, Appended, Appender, Decide};
use state::Open;

use crate::consumer::{Consumer, Working};
use crate::engine::Engine;
use crate::error::Result;
use crate::model::access::{Caller, WorkspaceRecord};

/// A workspace that is open in this process, with what works on it.
pub struct Running {
    pub open: Arc<Open>,
    appender: Appender,
    appending: tokio::task::JoinHandle<()>,
    consumer: tokio::sync::Mutex<Option<Consumer>>,
    working: Working,
}

impl Running {
    /// Starts what works on a loaded workspace.
    pub fn start(open: Open) -> Running {
        let open = Arc::new(open);
        let (appender, appending) = Appender::start(open.clone());
        let working = Working::default();
        let consumer = Consumer::start(open.clone(), appender.clone(), working.clone());
        Running { appender, appending, consumer: tokio::sync::Mutex::new(Some(consumer)), working, open }
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
        let Running { open, appender, appending, consumer: _, working } = self;
        // The follower that has ended holds the queue too.
        drop(working);
        drop(appender);
        if let Err(error) = appending.await {
            tracing::error!(%error, workspace = %open.record.id, "the appender did not end well");
        }
    }
}

/// One workspace, for one caller.
#[derive(Clone)]
pub struct Workspace {
    engine: Arc<Engine>,
    running: Arc<Running>,
    caller: Caller,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
}

impl Workspace {
    pub(crate) fn new(engine: Arc<Engine>, running: Arc<Running>, caller: Caller) -> Workspace {
        Workspace { engine, running, caller }
    }

    /// The workspace itself.
    pub fn record(&self) -> &WorkspaceRecord {
        &self.open().record
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    fn open(&self) -> &Open {
        &self.running.open
    }

    fn actor(&self) -> Arc<str> {
        match &self.caller.key_id {
            Some(key) => format!("key:{key}").into(),
            None => format!("user:{}", self.caller.user_id).into(),
        }
    }

    /// Appends to managed types too; what an operation of this room writes.
    async fn append(&self, decide: Decide, event_id: Option<String>) -> Result<Appended> {
        let event_ids = event_id.into_iter().map(Arc::from).collect();
        let append = Append { decide, event_ids, actor: self.actor(), managed: true, size_bytes: 1_024 };
        self.running.appender.append(append).await
    }
}
