//! Where the bytes of a workspace's files are, and how many there may be.

use std::sync::{Arc, OnceLock};

use crate::clock::Clock;
use crate::error::Result;
use crate::store::Database;
use crate::store::blobs::Blobs;

/// What the workspaces of one engine have in common.
#[derive(Clone)]
pub struct SharedStorage {
    pub blobs: Arc<Blobs>,
    /// Names this process among those that write to one store, from its first upload on.
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
    /// Two who count at a time would only be in each other's way.
    counting: tokio::sync::Mutex<()>,
}

impl Storage {
    pub fn new(shared: SharedStorage) -> Storage {
        Storage { shared, counting: tokio::sync::Mutex::new(()) }
    }

    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.shared.blobs
    }

    /// The name of this process among those that write to the store.
    pub fn server(&self, clock: &dyn Clock) -> Arc<str> {
        self.shared.server.get_or_init(|| clock.new_id().to_string().into()).clone()
    }

    /// Held by whoever changes how many bytes are counted.
    pub async fn counting(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.counting.lock().await
    }

    /// Where the bytes of an upload are.
    pub fn key(workspace_id: &str, upload_id: &str) -> String {
        format!("{workspace_id}/{upload_id}")
    }

    /// Removes bytes that no file names, and then gives their room back: whoever dies in between leaves what tells of them.
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

    /// Clears all that no file names and nobody is about to.
    pub async fn clear_leftovers(&self, log: &Database, workspace_id: &str) -> Result<()> {
        // A process that uploaded nothing yet has no uploads under way.
        let server = self.shared.server.get().cloned().unwrap_or_default();
        loop {
            let leftovers = log.take_leftovers(&server).await?;
            let mut cleared = Ok(());
            for left in &leftovers {
                // One that stays keeps none of the others.
                let removed = self.clear(log, workspace_id, &left.upload_id, left.parts_id.as_deref()).await;
                cleared = cleared.and(removed);
            }
            cleared?;
            if leftovers.is_empty() {
                return Ok(());
            }
        }
    }
}
