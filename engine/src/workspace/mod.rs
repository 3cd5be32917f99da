//! The operations, each scoped to one workspace; a file per resource.
//!
//! A [`Workspace`] exists only for a caller who holds a scope that the operation asked for. No query text and no wire
//! types here.

pub mod agents;
pub mod aggregates;
pub mod answers;
pub mod articles;
pub mod events;
pub mod graph;
pub mod keys;
pub mod parked;
pub mod plugins;
pub mod projects;
pub mod query;
pub mod runtime;
pub mod search;
pub mod system;
pub mod types;

use std::sync::Arc;

use runtime::Runtime;

use crate::access::Access;
use crate::core::State;
use crate::core::append::{Append, Appended, Decide};
use crate::error::Result;
use crate::model::access::{Caller, WorkspaceRecord};

/// One workspace, for one caller.
#[derive(Clone)]
pub struct Workspace {
    access: Arc<Access>,
    runtime: Arc<Runtime>,
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
    pub(crate) fn new(access: Arc<Access>, runtime: Arc<Runtime>, caller: Caller) -> Workspace {
        Workspace { access, runtime, caller }
    }

    /// The workspace itself.
    pub fn record(&self) -> &WorkspaceRecord {
        &self.state().record
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    fn state(&self) -> &State {
        &self.runtime.state
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
        self.runtime.appender.append(append).await
    }
}
