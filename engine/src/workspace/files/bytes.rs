//! The bytes that files name: where they are, and that they are removed once no file names them.

use std::sync::{Arc, Mutex, PoisonError};

use crate::core::storage::Storage;
use crate::error::Error;
use crate::model::aggregate::Aggregate;
use crate::model::builtin::FILE;
use crate::model::file::named_bytes;
use crate::workspace::entered::Operation;

/// The upload that a file leaves by an event, as it was when that was decided last.
#[derive(Clone, Default)]
pub struct Left(Arc<Mutex<Option<Arc<str>>>>);

impl Left {
    /// Notes what a file names before the event.
    pub fn note(&self, before: Option<&Aggregate>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = named_bytes(before).map(|(id, _)| id);
    }

    fn take(&self) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Operation {
    /// Removes what a file left. Where that fails, it is done later.
    pub(super) async fn clear(&self, left: Left) {
        let Some(upload) = left.take() else { return };
        let state = self.state();
        if let Err(error) = state.storage.clear(&state.log, &state.record.id, &upload, None).await {
            tracing::warn!(%error, %upload, "the bytes that a file left are not removed yet");
        }
    }
}

/// Whether there is a file still.
pub fn is_live(found: &Aggregate) -> bool {
    &*found.aggregate_type == FILE && !found.deleted
}

/// There is no file at a path.
pub fn not_found(path: &str) -> Error {
    Error::not_found("file", path)
}

/// Where the bytes that a file names are.
pub fn key_of(workspace_id: &str, found: &Aggregate) -> Option<String> {
    named_bytes(Some(found)).map(|(upload, _)| Storage::key(workspace_id, &upload))
}
