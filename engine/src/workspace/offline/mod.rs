//! A workspace that the commands of an operator, or a restore, read and write while no server has the workspace open.
//! The handle [`Offline`] can also append events that otherwise only the program itself appends.
//!
//! Requests for a workspace have no access to the handle. Of the background work that a server does for a workspace,
//! only the appender runs. No plugin is called, no deadline is applied and no agent is registered, so that an imported
//! workspace equals the exported one.

mod definitions;
mod events;
mod files;

use std::sync::Arc;

use tokio::task::JoinHandle;

pub use self::files::FileBytes;
use crate::append::appender::Appender;
use crate::error::{Error, Result};
use crate::model::access::WorkspaceRecord;
use crate::state::State;
use crate::store::Database;
pub use crate::workspace::types::DefinitionVersion;

/// A workspace that no server has open.
pub struct Offline {
    state: Arc<State>,
    appender: Appender,
    appending: JoinHandle<()>,
}

impl Offline {
    /// Opens a loaded workspace for an operator. First removes the uploads that are not in progress and that no file
    /// refers to, for example the uploads of an unfinished import.
    pub(crate) async fn open(state: State, db: Database) -> Result<Offline> {
        let state = Arc::new(state);
        state.storage.clear_leftovers(&db, &state.record.id).await?;
        let (appender, appending) = Appender::start(state.clone(), db);
        Ok(Offline { state, appender, appending })
    }

    /// Returns the record of the workspace.
    pub fn record(&self) -> &WorkspaceRecord {
        &self.state.record
    }

    /// Returns the position of the log's last event.
    pub fn position(&self) -> u64 {
        self.state.folded.position()
    }

    /// Waits until all appended events are committed, and removes the bytes of files that were replaced or deleted.
    pub async fn close(self) -> Result<()> {
        let Offline { state, appender, appending } = self;
        let db = appender.database().clone();
        drop(appender);
        appending.await.map_err(Error::internal)?;
        state.storage.clear_leftovers(&db, &state.record.id).await.map(drop)
    }
}
