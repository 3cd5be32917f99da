//! Errors of the store.

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another writer changed the same data first. The caller may read the data again and retry.
    #[error("another writer changed the same data first")]
    Conflict,
    /// The disk cannot be written or read at the moment. Nothing was written.
    #[error("the disk is not working at the moment: {0}")]
    Disk(surrealdb::Error),
    #[error("the database failed: {0}")]
    Database(#[from] surrealdb::Error),
    #[error("the store cannot be opened: {0}")]
    Opening(String),
    #[error("a stored record cannot be read: {0}")]
    Corrupt(String),
    #[error("the store accepts no writes: {0}")]
    Unwritable(String),
    #[error("the storage for files failed: {0}")]
    Blobs(#[from] object_store::Error),
    #[error("the workspace is closing")]
    Closing,
    /// A batch of several requests was not written. Each request of the batch fails with the same reason.
    #[error("the batch was not written: {0}")]
    Batch(std::sync::Arc<dyn std::error::Error + Send + Sync>),
}

pub type Result<T> = std::result::Result<T, Error>;
