//! The storage of a workspace's files, and the accounting of their size.

use std::sync::{Arc, OnceLock};

use crate::clock::Clock;
use crate::error::Result;
use crate::store::Database;
use crate::store::blobs::Blobs;

/// The storage that all workspaces of one engine share.
#[derive(Clone)]
pub struct SharedStorage {
    pub blobs: Arc<Blobs>,
    /// The name of this process among those that write to one store. Set by the first upload.
    server: Arc<OnceLock<Arc<str>>>,
}

impl SharedStorage {
    pub fn new(blobs: Arc<Blobs>) -> SharedStorage {
        SharedStorage { blobs, server: Arc::default() }
    }
}

/// The storage of one workspace.
pub struct Storage {
    shared: SharedStorage,
    /// Serializes changes to the accounting, since concurrent ones would only conflict.
    counting: tokio::sync::Mutex<()>,
}

impl Storage {
    pub fn new(shared: SharedStorage) -> Storage {
        Storage { shared, counting: tokio::sync::Mutex::new(()) }
    }

    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.shared.blobs
    }

    /// Returns the name of this process among those that write to the store.
    pub fn server(&self, clock: &dyn Clock) -> Arc<str> {
        self.shared.server.get_or_init(|| clock.new_id().to_string().into()).clone()
    }

    /// Locks the accounting. Held while the number of used bytes changes.
    pub async fn counting(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.counting.lock().await
    }

    /// Returns the key of an upload's bytes.
    pub fn key(workspace_id: &str, upload_id: &str) -> String {
        format!("{workspace_id}/{upload_id}")
    }

    /// Removes bytes that no file refers to, and then releases their storage. If the process dies in between, the
    /// upload's record remains, so that the cleanup is repeated.
    pub async fn clear(
        &self,
        log: &Database,
        workspace_id: &str,
        upload_id: &str,
        parts_id: Option<&str>,
    ) -> Result<()> {
        self.blobs().remove(&Storage::key(workspace_id, upload_id), parts_id).await?;
        let _counting = self.counting().await;
        Ok(log.forget_upload(upload_id).await?)
    }

    /// Removes all uploads that no file refers to and that are not running.
    pub async fn clear_leftovers(&self, log: &Database, workspace_id: &str) -> Result<()> {
        // A process without a name has not uploaded anything, so it has no running uploads.
        let server = self.shared.server.get().cloned().unwrap_or_default();
        loop {
            let leftovers = log.take_leftovers(&server).await?;
            let mut cleared = Ok(());
            for leftover in &leftovers {
                // A failure must not keep the other uploads from being removed.
                let removed = self.clear(log, workspace_id, &leftover.upload_id, leftover.parts_id.as_deref()).await;
                cleared = cleared.and(removed);
            }
            cleared?;
            if leftovers.is_empty() {
                return Ok(());
            }
        }
    }
}
