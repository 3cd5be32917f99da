//! Every way in which the store can fail.

/// What the database answered when it did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another writer was faster; the same statements may be tried again after a fresh look.
    #[error("another writer was faster")]
    Conflict,
    /// The disk takes no writes, or cannot be read, at present. Nothing was written.
    #[error("the disk does not work at present: {0}")]
    Disk(surrealdb::Error),
    #[error("the database failed: {0}")]
    Database(#[from] surrealdb::Error),
    #[error("the store cannot be opened: {0}")]
    Opening(String),
    #[error("a stored record cannot be read: {0}")]
    Corrupt(String),
    #[error("the store takes no writes: {0}")]
    Unwritable(String),
    #[error("the store of files failed: {0}")]
    Blobs(#[from] object_store::Error),
    #[error("the workspace is closing")]
    Closing,
    /// What was to be written together with others was not written, for a reason that all of them are told.
    #[error("a batch was not written: {0}")]
    Batch(std::sync::Arc<dyn std::error::Error + Send + Sync>),
}

pub type Result<T> = std::result::Result<T, Error>;
