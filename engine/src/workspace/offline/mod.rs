//! A workspace that an operator works on while no server has it open: its whole content is read and written, with what
//! only the program itself may append.
//!
//! The handle belongs to whoever can open the store. No request has it, and nothing runs beside it: no plugin is called,
//! no task expires and no agent is registered, so that what is imported is what was exported.

mod definitions;
mod events;
mod files;

use std::sync::Arc;

use tokio::task::JoinHandle;

pub use self::definitions::Past;
pub use self::files::FileBytes;
use crate::core::State;
use crate::core::append::Appender;
use crate::error::{Error, Result};
use crate::model::access::WorkspaceRecord;
use crate::store::Database;

/// A workspace that no server has open.
pub struct Offline {
    state: Arc<State>,
    appender: Appender,
    appending: JoinHandle<()>,
}

impl Offline {
    /// Starts to work on a loaded workspace. Bytes that an import has left unfinished are removed first.
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
        state.storage.clear_leftovers(&db, &state.record.id).await
    }
}
