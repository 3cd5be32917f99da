//! Errors of the store.

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another writer changed the same data first. The caller may read the data again and retry.
    #[error("another writer changed the same data first")]
    Conflict,
    /// A read or a write of the disk failed. Nothing was written.
    #[error("a disk operation failed: {0}")]
    Disk(surrealdb::Error),
    #[error("the database failed: {0}")]
    Database(#[from] surrealdb::Error),
    #[error("the store cannot be opened: {0}")]
    Opening(String),
    /// The state of a workspace failed to load.
    #[error("the workspace '{workspace_id}' failed to load: {reason}")]
    Loading { workspace_id: std::sync::Arc<str>, reason: String },
    /// Another process has the store open.
    #[error("the store cannot be opened: another process has it open")]
    Locked,
    /// A record of the database, a stored file, or an object in the archive of backups cannot be read.
    #[error("{} cannot be read: {reason}", record.as_deref().unwrap_or("a stored record"))]
    Corrupt {
        /// The name of the record in the message, such as `the key '0198'`. `None` if the record is not known.
        record: Option<String>,
        reason: String,
    },
    #[error("the store accepts no writes: {0}")]
    Unwritable(String),
    #[error("the storage for files failed: {0}")]
    Blobs(#[from] object_store::Error),
    /// The archive of backups cannot be read or written.
    #[error("an operation on the archive of backups failed: {0}")]
    Archive(object_store::Error),
    #[error("the workspace is closing")]
    Closing,
    /// The store or the archive of backups did not respond in time. The store may still execute a write later.
    #[error("the store does not respond")]
    Unresponsive,
    /// A batch of one or more requests failed. Each request of the batch fails with the same reason. The batch may
    /// still have been written, for example if the connection to the store was lost.
    #[error("the batch failed: {0}")]
    Batch(std::sync::Arc<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Returns the error for stored data that cannot be read. [`convert::named`](super::convert::named) adds the name
    /// of the record.
    pub fn corrupt(reason: impl Into<String>) -> Error {
        Error::Corrupt { record: None, reason: reason.into() }
    }

    /// Returns whether the connection to the store was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, Error::Database(error) if error.is_connection())
    }

    /// Returns the kind of the failure as it is named in metrics, such as `disk`. Returns `None` for a conflict and a
    /// closing workspace. Also returns `None` for [`Error::Batch`], because metrics count the failure of a batch only
    /// once.
    pub fn kind(&self) -> Option<&'static str> {
        Some(match self {
            Error::Conflict | Error::Closing | Error::Batch(_) => return None,
            Error::Disk(_) => "disk",
            Error::Unresponsive => "connection",
            Error::Database(error) if error.is_connection() => "connection",
            Error::Database(_) => "database",
            Error::Opening(_) | Error::Loading { .. } | Error::Locked => "opening",
            Error::Corrupt { .. } => "corrupt",
            Error::Unwritable(_) => "unwritable",
            Error::Blobs(_) => "blobs",
            Error::Archive(_) => "archive",
        })
    }
}

/// The result of an operation of the store.
pub type Result<T> = std::result::Result<T, Error>;
