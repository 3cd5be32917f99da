//! The archive of one installation: a bucket and its contents.

use std::sync::Arc;

use super::bucket::Bucket;
use super::log::{self, check_id};
use super::seal::SealingKey;
use super::verify::{self, ArchiveVerification, Observer};
use crate::error::{Error, Result};

/// A bucket with the backups of one installation, and the key that seals the dumps of its control database.
#[derive(Clone)]
pub struct Archive {
    pub(super) bucket: Bucket,
    pub(super) key: Arc<SealingKey>,
}

/// A summary of one epoch of the archive of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedWorkspace {
    pub workspace_id: Arc<str>,
    /// The number that identifies the history of the log. A new history begins if the log no longer matches the end of
    /// the archive, because the store was reset to an earlier state.
    pub epoch: u64,
    /// The position up to which the log is archived.
    pub position: u64,
    /// The time at which the first event of the first segment was recorded, in milliseconds since 1970. `None` if the
    /// first segment contains only definitions, even if later segments contain events.
    pub from: Option<i64>,
    /// The time at which the last archived event was recorded, in milliseconds since 1970.
    pub to: Option<i64>,
    pub segments: u64,
    /// The size of the segments, in bytes.
    pub bytes: u64,
    pub verified: Option<ArchiveVerification>,
}

impl Archive {
    /// Opens the archive at `file://PATH`, `mem://`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or
    /// `az://CONTAINER/PREFIX`. `options` configures the object store. The options have the names of the environment
    /// variables that the crate `object_store` reads, such as `AWS_ACCESS_KEY_ID`. Unknown options are ignored.
    pub fn open(url: &str, options: impl IntoIterator<Item = (String, String)>, key: SealingKey) -> Result<Archive> {
        Ok(Archive { bucket: Bucket::open(url, options)?, key: Arc::new(key) })
    }

    /// Returns the ids of the workspaces that have a folder in the archive, sorted. In a `file://` archive, the empty
    /// folder of a removed archive may remain.
    pub async fn workspaces(&self) -> Result<Vec<Arc<str>>> {
        let folders = self.bucket.folders("").await?;
        let is_id = |name: &String| uuid::Uuid::try_parse(name).is_ok();
        Ok(folders.into_iter().filter(is_id).map(Arc::from).collect())
    }

    /// Describes the newest epoch of the archive of a workspace. Returns `None` if the workspace has no archive.
    pub async fn describe(&self, workspace_id: &str) -> Result<Option<ArchivedWorkspace>> {
        check_id(workspace_id)?;
        match log::epochs(&self.bucket, workspace_id).await?.last() {
            Some(newest) => self.describe_epoch(workspace_id, *newest).await,
            None => Ok(None),
        }
    }

    /// Describes an epoch of the archive of a workspace, with the earlier epochs that the epoch continues. Returns
    /// `None` if the archive lacks one of these epochs.
    pub async fn describe_epoch(&self, workspace_id: &str, epoch: u64) -> Result<Option<ArchivedWorkspace>> {
        check_id(workspace_id)?;
        // A folder may remain after its objects were removed.
        let segments = match log::history(&self.bucket, workspace_id, epoch).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let header = async |segment: Option<&log::SegmentRef>| match segment {
            Some(segment) => log::read_header(&self.bucket, workspace_id, segment).await,
            None => Ok(None),
        };
        let (first, last) = (header(segments.first()).await?, header(segments.last()).await?);
        Ok(Some(ArchivedWorkspace {
            workspace_id: workspace_id.into(),
            epoch,
            position: last.as_ref().map_or(0, |header| header.end.position),
            from: first.and_then(|header| header.from),
            to: last.and_then(|header| header.to),
            segments: segments.len() as u64,
            bytes: segments.iter().map(|segment| segment.size).sum(),
            verified: verify::last(&self.bucket, workspace_id).await?,
        }))
    }

    /// Verifies the archive of a workspace without reading the store, and records the result in the archive. `now_ms`
    /// is the current time, in milliseconds since 1970.
    pub async fn verify(&self, workspace_id: &str, now_ms: i64, progress: Observer<'_>) -> Result<ArchiveVerification> {
        check_id(workspace_id)?;
        verify::verify(&self.bucket, workspace_id, now_ms, progress).await
    }
}
