//! The stored bytes of files: their keys, and their removal when no file refers to the bytes any more.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Error;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::FILE;
use crate::model::file::upload_of;
use crate::state::storage::Storage;
use crate::workspace::call_context::Operation;

/// The upload that a file referred to before an event. Each attempt to append the event records the upload again,
/// because the file may have changed since the previous attempt.
#[derive(Clone, Default)]
pub struct PreviousUpload(Arc<Mutex<Option<Arc<str>>>>);

impl PreviousUpload {
    /// Records the upload that a file refers to before an event. `before` is the file's aggregate before the event.
    pub fn record(&self, before: Option<&Aggregate>) {
        *self.0.lock() = upload_of(before).map(|(id, _)| id);
    }

    fn take(&self) -> Option<Arc<str>> {
        self.0.lock().take()
    }
}

impl Operation {
    /// Removes the bytes that a file no longer refers to. If the removal fails, the periodic cleanup removes the bytes
    /// later.
    pub(super) async fn clear(&self, previous: PreviousUpload) {
        let Some(upload) = previous.take() else { return };
        let state = self.state();
        if let Err(error) = state.storage.clear(self.database(), &state.record.id, &upload, None).await {
            let workspace = &state.record.id;
            tracing::warn!(%error, %workspace, %upload, "failed to remove the old bytes of a file; will retry");
            state.storage.report_failed_removal();
        }
    }
}

/// Returns whether an aggregate is an existing file.
pub fn is_live(found: &Aggregate) -> bool {
    &*found.aggregate_type == FILE && !found.deleted
}

/// Returns the error for a path without a file.
pub fn not_found(path: &str) -> Error {
    Error::not_found("file", path)
}

/// Returns the key of the bytes that a file refers to, or `None` if the file refers to no upload.
pub fn key_of(workspace_id: &str, found: &Aggregate) -> Option<String> {
    upload_of(Some(found)).map(|(upload, _)| Storage::key(workspace_id, &upload))
}
