//! Files: managed aggregates, one per path. An event of an upload refers only to bytes that are completely stored. An
//! imported event may refer to bytes that no longer exist.
//!
//! The order is always the same: reserve storage, write the bytes, append the event, and then remove bytes that no file
//! refers to any more. Deleting an aggregate does not delete the files attached to it.
//!
//! 1. **Place** (`upload.rs`): the server builds the path from the project, type, aggregate and name. Only
//!    `model/file_path.rs` defines what a path may contain. The file's aggregate id is derived from its path, so all
//!    files that are ever stored at a path share one history.
//! 2. **Reservation**: an `upload` record and the counter of the workspace's bytes change in one transaction, which
//!    fails beyond the quota. The announced `Content-Length` is reserved before a byte is read. Without an announced
//!    length, the reservation grows with the arriving bytes. The excess is released at the end.
//! 3. **Bytes** (`receive.rs`): the body is read in blocks of 128 KiB, and must arrive at a minimum rate. Each block
//!    uses its share of the memory for bodies. The blocks are hashed, counted and written under a key that no event
//!    names yet: to a folder and synced, or to an object store in parts. The server renews the lease of the record
//!    until the event is appended or the upload is canceled.
//! 4. **Event**: `file.created` or `file.replaced` names the upload. The transaction of the event deletes the upload's
//!    record, and creates a record that marks the replaced bytes for removal. Staging finds the replaced upload in the
//!    file's state before the event, and the new upload in the state after the event. If the record of an upload no
//!    longer exists, another server has removed the upload, and no event can name the upload any more.
//! 5. **Removal**: bytes that no file refers to any more are deleted, and then subtracted from the counter. A process
//!    that ends during any of these steps leaves a record. A server that has the workspace open later removes the bytes
//!    and the record (`state/upload_cleanup.rs`). An upload in progress is removed only if its lease has expired, or if
//!    it belongs to another process and the store cannot be shared by several processes.
//!
//! A download link is signed by the object store, or by a server of this store with keys that rotate automatically.
//! The link is valid for an hour and for its path. An upload link covers the path, the media type, the largest size,
//! the version of the file's stream, which must be unchanged, and the creator of the link. Each use of the link checks
//! what the creator's key, role and plan allow at the time of the use. The upload then continues like any other upload.

mod attachment;
mod bytes;
mod download;
mod kind;
mod receive;
mod upload;
mod upload_link;

use std::ops::ControlFlow;
use std::sync::Arc;

pub use attachment::attachment;
use bytes::{PreviousUpload, is_live, not_found};
pub use download::{FileLink, SignedLink, StoredFile, check_link};
pub use kind::mime_type;
pub use receive::Incoming;
pub(super) use receive::RunningUpload;
pub use upload::{NewFile, UploadOutcome};
pub use upload_link::{CheckedLink, LinkedUpload, UploadLink, refusing};

use super::call_context::{CallContext, Operation, event_of};
use super::rights::{Reader, Writer};
use super::{Page, PageLimit};
use crate::append::request::Decide;
use crate::append::view::View;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::FILE;
use crate::model::file;
use crate::model::file_path::{FilePath, check_segments};
use crate::model::fold::DELETED;
use crate::model::value::Object;

/// The storage usage of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageUsage {
    /// The size of all files, running uploads and data yet to be removed, in bytes.
    pub used_bytes: u64,
    /// The limit for `used_bytes`. `None` means no limit.
    pub quota_bytes: Option<u64>,
    pub files: u64,
    /// The size of the existing files, in bytes.
    pub file_bytes: u64,
}

impl CallContext {
    /// Returns the storage quota in bytes: the lower of the quota in the settings and the quota of the plan. `None`
    /// means no limit. All checks of the quota use this function.
    async fn storage_quota(&self) -> Result<Option<u64>> {
        let quota = Some(self.state().settings.quota_bytes).filter(|quota| *quota > 0);
        Ok(quota.into_iter().chain(self.limits().await?.storage_bytes).min())
    }

    /// Returns the number of files, and their total size in bytes.
    pub(super) async fn file_usage(&self) -> (u64, u64) {
        let (mut files, mut bytes) = (0, 0);
        let visit = |found: &Arc<Aggregate>| {
            if is_live(found) {
                files += 1;
                bytes += file::size_bytes(found);
            }
            ControlFlow::Continue(())
        };
        self.visit_newest(Some(FILE), None, visit).await;
        (files, bytes)
    }

    /// Looks up the file at a path in memory. Fails if the path never had a file, or if the file is deleted.
    fn find_file(&self, path: &str) -> Result<Arc<Aggregate>> {
        let found = self.state().folded.get(FilePath::aggregate_id(path).as_str());
        found.filter(|found| is_live(found)).ok_or_else(|| not_found(path))
    }
}

impl Reader {
    /// Returns a page of files, sorted by the first use of their paths, newest first. `prefix` selects the files at or
    /// below a path, and matches only whole segments.
    pub async fn list_files(
        &self,
        prefix: Option<&str>,
        before: Option<u64>,
        limit: PageLimit,
    ) -> Result<Page<Arc<Aggregate>>> {
        let prefix =
            prefix.map(|prefix| prefix.strip_suffix('/').unwrap_or(prefix)).filter(|prefix| !prefix.is_empty());
        if let Some(prefix) = prefix {
            check_segments(prefix).map_err(|message| Error::invalid(format!("prefix: {message}")))?;
            let workspace = &*self.record().id;
            if prefix.split('/').next() != Some(workspace) {
                let message = format!("prefix: the first segment must be the workspace's id, '{workspace}'");
                return Err(Error::invalid(message));
            }
        }
        let is_below = |path: &str, prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let matches_prefix = |found: &Aggregate| {
            prefix.is_none_or(|prefix| file::text(found, file::PATH).is_some_and(|path| is_below(path, prefix)))
        };
        self.context.list(Some(FILE), before, limit, matches_prefix).await
    }

    /// Returns the storage usage of the workspace.
    pub async fn storage_usage(&self) -> Result<StorageUsage> {
        let state = self.context.state();
        self.context.refresh().await?;
        let (files, file_bytes) = self.context.file_usage().await;
        let quota_bytes = self.context.storage_quota().await?;
        Ok(StorageUsage { used_bytes: state.db.used_bytes().await?, quota_bytes, files, file_bytes })
    }
}

impl Writer {
    /// Deletes a file: removes its bytes and frees their storage. The file's history stays.
    pub async fn delete_file(&self, path: &str) -> Result<()> {
        let (path, aggregate_id) = (path.to_owned(), FilePath::aggregate_id(path));
        self.context.state().refresh().await?;
        self.context.find_file(&path)?;
        let previous = PreviousUpload::default();
        let recorder = previous.clone();
        let decide: Decide = Box::new(move |view: &View<'_>| {
            let found = view.aggregate(aggregate_id.as_str()).filter(|found| is_live(found));
            recorder.record(found.as_deref());
            found.ok_or_else(|| not_found(&path))?;
            Ok(vec![event_of(aggregate_id.as_str(), FILE, DELETED, Object::new())])
        });
        Operation::perform(self, |operation| async move {
            operation.append(decide, None, 0, None).await?;
            operation.clear(previous).await;
            Ok(())
        })
        .await
    }
}
