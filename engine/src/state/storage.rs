//! The storage of a workspace's files, and the accounting of their size.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::error::Result;
use crate::store::Database;
use crate::store::blobs::Blobs;
use crate::store::workspace::uploads::Leftovers;

/// The storage that all workspaces of one engine share.
#[derive(Clone)]
pub struct SharedStorage {
    pub blobs: Arc<Blobs>,
    /// The name that distinguishes this process from others that write to the store. The first upload sets the name.
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
    /// The lock that serializes changes to the number of used bytes. Concurrent changes would only conflict in the
    /// store.
    counting: tokio::sync::Mutex<()>,
    /// Whether the number of used bytes may have changed since it was last read for metrics.
    has_changed: AtomicBool,
    /// Notified when the removal of an upload has failed.
    removal_failed: Notify,
}

impl Storage {
    pub fn new(shared: SharedStorage) -> Storage {
        Storage {
            shared,
            counting: tokio::sync::Mutex::new(()),
            has_changed: AtomicBool::new(true),
            removal_failed: Notify::new(),
        }
    }

    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.shared.blobs
    }

    /// Returns the name that distinguishes this process from others that write to the store.
    pub fn server(&self, clock: &dyn Clock) -> Arc<str> {
        self.shared.server.get_or_init(|| clock.new_id().to_string().into()).clone()
    }

    /// Locks the number of used bytes. Callers hold the lock while they change the number. The next call of
    /// [`Storage::take_changed`] returns `true`.
    pub async fn counting(&self) -> tokio::sync::MutexGuard<'_, ()> {
        let counting = self.counting.lock().await;
        self.has_changed.store(true, Ordering::Release);
        counting
    }

    /// Returns whether the number of used bytes may have changed since the last call. Also returns `true` on the first
    /// call.
    pub async fn take_changed(&self) -> bool {
        // A change in progress sets the number before it releases the lock.
        let _counting = self.counting.lock().await;
        self.has_changed.swap(false, Ordering::AcqRel)
    }

    /// Returns the storage key of an upload's bytes.
    pub fn key(workspace_id: &str, upload_id: &str) -> String {
        format!("{workspace_id}/{upload_id}")
    }

    /// Removes the bytes of an upload that no file refers to. Then removes the upload's record, and no longer counts
    /// the bytes as used. If the process ends between these two steps, the record remains, and a later cleanup removes
    /// the record.
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

    /// Reports that the removal of an upload has failed, so that the periodic cleanup runs soon.
    pub fn report_failed_removal(&self) {
        self.removal_failed.notify_one();
    }

    /// Waits until the removal of an upload has failed. Returns immediately if a removal has failed since the last call.
    pub async fn failed_removal(&self) {
        self.removal_failed.notified().await;
    }

    /// Removes all uploads that are not in progress and that no file refers to. Returns whether any upload is in
    /// progress.
    pub async fn clear_leftovers(&self, log: &Database, workspace_id: &str) -> Result<bool> {
        // A process without a name has never uploaded a file, so it has no uploads in progress.
        let server = self.shared.server.get().cloned().unwrap_or_default();
        loop {
            let Leftovers { uploads, has_active } = log.take_leftovers(&server).await?;
            let mut cleared = Ok(());
            for leftover in &uploads {
                // A failure for one upload must not prevent the removal of the others.
                let removed = self.clear(log, workspace_id, &leftover.upload_id, leftover.parts_id.as_deref()).await;
                cleared = cleared.and(removed);
            }
            cleared?;
            if uploads.is_empty() {
                return Ok(has_active);
            }
        }
    }
}
