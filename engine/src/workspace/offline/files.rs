//! Reads and stores the bytes of the workspace's files.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256 as SHA256_HASH};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::Offline;
use crate::append::request::AppendOutcome;
use crate::error::{Error, Result};
use crate::model::event::NewEvent;
use crate::model::file::{self, MIME_TYPE, PATH, SHA256, SIZE, UPLOAD_ID};
use crate::model::file_path::FilePath;
use crate::model::value::Value;
use crate::state::storage::Storage;
use crate::store::blobs::BlobKind;
use crate::workspace::files::{Incoming, RunningUpload};

/// The bytes of a file to import.
pub struct FileBytes {
    pub bytes: Incoming,
    /// The value of the header `content-disposition` that an object store sends with the file.
    pub content_disposition: String,
}

/// The upload that an event of a file refers to.
struct UploadReference {
    path: String,
    upload: Arc<str>,
    size: u64,
    sha256: String,
}

impl Offline {
    /// Returns the bytes of an upload, or `None` if the file at the path does not refer to the upload any longer.
    pub async fn read_upload(&self, path: &str, upload_id: &str) -> Result<Option<BoxStream<'static, Result<Bytes>>>> {
        let found = self.state.folded.get(FilePath::aggregate_id(path).as_str());
        let named = file::upload_of(found.as_deref()).filter(|(upload, _)| **upload == *upload_id);
        let Some((upload, size)) = named else { return Ok(None) };
        let key = Storage::key(&self.state.record.id, &upload);
        let blocks = self.state.storage.blobs().read(&key, 0..size).await?;
        Ok(Some(blocks.map(|block| block.map_err(Error::from)).boxed()))
    }

    /// Stores the bytes of a file, then appends the event that refers to the bytes. If a later event replaces or
    /// deletes the file, the bytes no longer exist, and `bytes` is `None`.
    pub async fn append_file(&self, event: NewEvent, bytes: Option<FileBytes>) -> Result<AppendOutcome> {
        // An event that is already in the log is only compared with the logged event. Storing the bytes again would
        // remove the bytes that the file refers to.
        let is_known = match &event.event_id {
            Some(id) => self.has_event(id).await?,
            None => return Err(Error::invalid_at("/event_id", "an event of a file must have an id")),
        };
        if is_known {
            return self.append(vec![event]).await;
        }
        let named = self.check_file(&event)?;
        let key = Storage::key(&self.state.record.id, &named.upload);
        if self.state.storage.blobs().read(&key, 0..1).await.is_ok() {
            let message = "the storage of the workspace already has bytes for this upload id";
            return Err(Error::invalid_at(format!("/payload/{UPLOAD_ID}"), message));
        }
        self.store_file(event, named, bytes).await
    }

    /// Does the same as [`Offline::append_file`] for an event of an archive. The log must not have the event yet. The
    /// bytes may already be stored, because the workspace may have lost its store but kept its files. Keeps stored
    /// bytes that have the right hash. Removes stored bytes that have another hash, and stores `bytes` instead. Also
    /// returns whether the bytes of the file are now stored.
    pub async fn append_archived_file(
        &self,
        event: NewEvent,
        bytes: Option<FileBytes>,
    ) -> Result<(AppendOutcome, bool)> {
        let named = self.check_file(&event)?;
        let key = Storage::key(&self.state.record.id, &named.upload);
        if self.hash_of(&key, named.size).await.is_some_and(|found| found == named.sha256) {
            return Ok((self.store_file(event, named, None).await?, true));
        }
        self.state.storage.blobs().remove(&key, None).await?;
        let has_bytes = bytes.is_some();
        Ok((self.store_file(event, named, bytes).await?, has_bytes))
    }

    /// Returns the SHA-256 of stored bytes, or `None` if the bytes cannot be read.
    async fn hash_of(&self, key: &str, size: u64) -> Option<String> {
        let mut blocks = self.state.storage.blobs().read(key, 0..size).await.ok()?;
        let mut context = Context::new(&SHA256_HASH);
        while let Some(block) = blocks.next().await {
            context.update(&block.ok()?);
        }
        Some(hex::encode(context.finish()))
    }

    /// Stores the bytes of a file, if there are bytes. Then appends the event that refers to the bytes.
    async fn store_file(
        &self,
        event: NewEvent,
        named: UploadReference,
        bytes: Option<FileBytes>,
    ) -> Result<AppendOutcome> {
        let UploadReference { path, upload, size, sha256 } = named;
        let mut receiving = RunningUpload::new(&self.state, self.appender.database(), upload.clone(), None);
        let outcome = async {
            match bytes {
                Some(FileBytes { bytes, content_disposition }) => {
                    let mime_type = event.payload.get(MIME_TYPE).and_then(Value::as_str).unwrap_or_default();
                    let kind = BlobKind { mime_type: mime_type.to_owned(), content_disposition };
                    let received = receiving.write(Some(size), bytes, kind).await?;
                    if received.sha256 != sha256 {
                        let message = format!("expected {}, the SHA-256 of the bytes of '{path}'", received.sha256);
                        return Err(Error::invalid_at("/payload/sha256", message));
                    }
                }
                // There are no bytes to write: the bytes no longer exist, or are already stored.
                None => receiving.reserve(size).await?,
            }
            self.append_naming(vec![event.clone()], Some(upload.clone())).await
        };
        let appended = outcome.await;
        // This call has no effect if the file refers to the bytes.
        receiving.give_up().await;
        appended
    }

    /// Checks an event that refers to the bytes of a file. The file must belong to this workspace. Returns the path,
    /// the upload, the size and the hash that the event contains.
    fn check_file(&self, event: &NewEvent) -> Result<UploadReference> {
        let at = |name: &str| format!("/payload/{name}");
        let text = |name: &str| {
            let found = event.payload.get(name).and_then(Value::as_str);
            found.map(str::to_owned).ok_or_else(|| Error::invalid_at(at(name), "required string"))
        };
        let (path, upload, sha256) = (text(PATH)?, text(UPLOAD_ID)?, text(SHA256)?);
        let (workspace, place, filename) =
            FilePath::read(&path).map_err(|message| Error::invalid_at(at(PATH), message))?;
        FilePath::new(&workspace, &place, &filename).map_err(|(_, message)| Error::invalid_at(at(PATH), message))?;
        if *workspace != *self.state.record.id {
            let message = format!(
                "the file belongs to the workspace '{workspace}' and cannot be added to the workspace '{}'",
                self.state.record.id
            );
            return Err(Error::invalid_at(at(PATH), message));
        }
        let file_id = FilePath::aggregate_id(&path);
        if event.aggregate_id != file_id.as_str() {
            let message = format!("expected '{file_id}', the id of the file at the payload's path");
            return Err(Error::invalid_at("/aggregate_id", message));
        }
        if uuid::Uuid::try_parse(&upload).is_err() {
            return Err(Error::invalid_at(at(UPLOAD_ID), "expected a UUID"));
        }
        let size = event.payload.get(SIZE).and_then(Value::as_int).and_then(|size| u64::try_from(size).ok());
        let size = size.ok_or_else(|| Error::invalid_at(at(SIZE), "expected a number of bytes"))?;
        Ok(UploadReference { path, upload: upload.into(), size, sha256 })
    }
}
