//! The bytes of files in the archive, stored under their SHA-256. Bytes to which no file refers any more stay for the
//! retention period.
//!
//! One server may remove bytes that no file has used for the retention period, while another server copies the same
//! bytes for a new file. Both servers use two objects: the record that the bytes are unused, and the note that the
//! bytes are being removed. A copy first removes the record, and then looks for the note. A removal first writes the
//! note, and then looks for the record. The copy therefore detects the removal, or the removal detects the copy.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::Instant;

use super::bucket::Bucket;
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::builtin::FILE;
use crate::model::event::Event;
use crate::model::file::{SHA256, SIZE, UPLOAD_ID, text};
use crate::model::value::Value;
use crate::state::storage::Storage;
use crate::store;
use crate::store::blobs::Blobs;

/// The maximum duration of a removal of bytes. If the note that a removal has written is older, the removal counts as
/// interrupted.
const MAX_REMOVAL: Duration = Duration::from_secs(600);

/// The bytes that an event of a file refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBytesRef {
    pub upload_id: Arc<str>,
    pub sha256: String,
    pub size: u64,
}

impl FileBytesRef {
    /// Returns the bytes that an event refers to. Returns `None` if the event refers to no bytes.
    pub fn of(event: &Event) -> Option<FileBytesRef> {
        if &*event.aggregate_type != FILE {
            return None;
        }
        let text = |name: &str| event.payload.get(name).and_then(Value::as_str);
        let size = event.payload.get(SIZE).and_then(Value::as_int)?;
        let sha256 = text(SHA256).filter(|sha256| is_hash(sha256))?.to_owned();
        Some(FileBytesRef { upload_id: text(UPLOAD_ID)?.into(), sha256, size: u64::try_from(size).ok()? })
    }
}

/// Returns whether a text is a SHA-256 in hexadecimal. Only such a text may become a part of an object key in the
/// archive.
fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

pub fn is_file(aggregate: &Aggregate) -> bool {
    &*aggregate.aggregate_type == FILE
}

/// Returns the object key of the bytes with this SHA-256 hash.
pub fn key(workspace_id: &str, sha256: &str) -> String {
    format!("{workspace_id}/files/{sha256}")
}

/// Returns the key of the object that records when bytes were first found to be unused.
fn unused_key(workspace_id: &str, sha256: &str) -> String {
    format!("{workspace_id}/unused/{sha256}")
}

/// Returns the key of the note that bytes are being removed.
fn removing_key(workspace_id: &str, sha256: &str) -> String {
    format!("{workspace_id}/removing/{sha256}")
}

/// Returns whether a sweep is removing the bytes with this SHA-256.
async fn is_being_removed(bucket: &Bucket, workspace_id: &str, sha256: &str, now_ms: i64) -> Result<bool> {
    let begun = bucket.read_time(&removing_key(workspace_id, sha256)).await?;
    Ok(begun.is_some_and(|begun| begun.saturating_add(MAX_REMOVAL.as_millis() as i64) > now_ms))
}

/// Returns whether an object contains a time that is not after `latest`.
async fn is_noted_by(bucket: &Bucket, key: &str, latest: i64) -> Result<bool> {
    Ok(bucket.read_time(key).await?.is_some_and(|noted| noted <= latest))
}

/// Returns the key of the object that records that bytes were deleted before they were archived.
fn missing_key(workspace_id: &str, sha256: &str) -> String {
    format!("{workspace_id}/missing/{sha256}")
}

/// Returns whether the bytes with this SHA-256 were deleted before they were archived.
pub async fn is_missing(bucket: &Bucket, workspace_id: &str, sha256: &str) -> Result<bool> {
    bucket.has(&missing_key(workspace_id, sha256), 0).await
}

/// Records that the bytes with this SHA-256 were deleted before they were archived.
pub async fn note_missing(bucket: &Bucket, workspace_id: &str, sha256: &str) -> Result<()> {
    bucket.put(&missing_key(workspace_id, sha256), Bytes::new()).await
}

/// Copies the bytes of a file into the archive, unless the archive has these bytes. Returns `false` if the stored bytes
/// are incomplete or no longer exist, usually because the file was replaced or deleted. Fails with a conflict while a
/// sweep removes the same bytes. After an interrupted removal, fails with a conflict for ten minutes.
pub async fn copy(
    bucket: &Bucket,
    blobs: &Blobs,
    workspace_id: &str,
    named: &FileBytesRef,
    now_ms: i64,
) -> Result<bool> {
    let key = key(workspace_id, &named.sha256);
    // The bytes may have been recorded as unused. The record is removed, so that the bytes are kept.
    bucket.remove(&unused_key(workspace_id, &named.sha256)).await?;
    if is_being_removed(bucket, workspace_id, &named.sha256, now_ms).await? {
        return Err(Error::Unavailable(store::Error::Conflict));
    }
    // Looks for the bytes last, because a removal that has already ended leaves no note.
    if bucket.has(&key, named.size).await? {
        return Ok(true);
    }
    let stored = Storage::key(workspace_id, &named.upload_id);
    let copied = match blobs.read(&stored, 0..named.size).await {
        Ok(bytes) => bucket.put_stream(&key, bytes.map(|block| block.map_err(Error::from)).boxed()).await,
        Err(error) => Err(error.into()),
    };
    match copied {
        Ok(()) => Ok(true),
        Err(error) if is_gone(&error) => Ok(false),
        // The bytes may have been removed while they were copied.
        Err(error) => match blobs.read(&stored, 0..named.size).await.map_err(Error::from) {
            Err(gone) if is_gone(&gone) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Returns whether an error means that stored bytes are missing or incomplete, so that a retry would fail as well.
fn is_gone(error: &Error) -> bool {
    use store::Error::{Blobs, Corrupt};
    let cause = match error {
        Error::Unavailable(error) => Some(error),
        Error::Internal(error) => error.downcast_ref::<store::Error>(),
        _ => None,
    };
    matches!(cause, Some(Blobs(object_store::Error::NotFound { .. }) | Corrupt { .. }))
}

/// Removes the bytes that no file has referred to for `retention_ms`. Records when bytes were first found to be unused,
/// and removes the notes of interrupted removals. Returns the number of hashes whose bytes were removed.
pub async fn sweep<'a>(
    bucket: &Bucket,
    workspace_id: &str,
    files: impl Iterator<Item = &'a Arc<Aggregate>>,
    now_ms: i64,
    retention_ms: i64,
) -> Result<u64> {
    let used: HashSet<&str> = files.filter(|file| !file.deleted).filter_map(|file| text(file, SHA256)).collect();
    let hash = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let (began, expired) = (Instant::now(), now_ms.saturating_sub(retention_ms));
    for interrupted in bucket.list(&format!("{workspace_id}/removing")).await? {
        if !is_being_removed(bucket, workspace_id, &hash(&interrupted.key), now_ms).await? {
            bucket.remove(&interrupted.key).await?;
        }
    }
    let unused = bucket.list(&format!("{workspace_id}/unused")).await?;
    let (mut removed, mut known) = (0, HashSet::new());
    for found in unused {
        let sha256 = hash(&found.key);
        if used.contains(sha256.as_str()) {
            bucket.remove(&found.key).await?;
            continue;
        }
        if is_noted_by(bucket, &found.key, expired).await? {
            let (removal, noted_at) = (removing_key(workspace_id, &sha256), Instant::now());
            let at = now_ms.saturating_add(began.elapsed().as_millis() as i64);
            bucket.put(&removal, Bytes::from(at.to_string())).await?;
            // A copy may need the bytes again. The time is checked because this process may have been suspended.
            if is_noted_by(bucket, &found.key, expired).await? && noted_at.elapsed() < MAX_REMOVAL / 2 {
                bucket.remove(&key(workspace_id, &sha256)).await?;
                bucket.remove(&found.key).await?;
                removed += 1;
            }
            bucket.remove(&removal).await?;
        }
        known.insert(sha256);
    }
    for found in bucket.list(&format!("{workspace_id}/files")).await? {
        let sha256 = hash(&found.key);
        if !used.contains(sha256.as_str()) && !known.contains(&sha256) {
            bucket.create(&unused_key(workspace_id, &sha256), Bytes::from(now_ms.to_string())).await?;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builtin;
    use crate::model::value::Object;

    #[tokio::test]
    async fn archived_bytes_that_no_file_uses_are_removed_after_the_retention_period() {
        let bucket = Bucket::open("mem://", []).expect("memory");
        let (used, unused) = ("a".repeat(64), "b".repeat(64));
        for hash in [&used, &unused] {
            bucket.put(&key("w", hash), Bytes::from_static(b"x")).await.expect("written");
        }
        let event = Event {
            payload: Arc::new(Object::from_iter([(SHA256, Value::from(used.as_str()))])),
            ..Event::sample("f", "file.created", 1)
        };
        let definition = builtin::definitions().into_iter().find(|definition| &*definition.type_name == FILE);
        let file = Arc::new(Aggregate::fold(None, &event, &definition.expect("files have a type")));
        let sweep = async |now_ms| sweep(&bucket, "w", [&file].into_iter(), now_ms, 100).await.expect("swept");
        assert_eq!((sweep(0).await, sweep(99).await), (0, 0));
        assert_eq!((sweep(100).await, sweep(500).await), (1, 0));
        assert!(bucket.has(&key("w", &used), 1).await.expect("a response"));
        assert!(!bucket.has(&key("w", &unused), 1).await.expect("a response"));
        assert_eq!(bucket.list("w/removing").await.expect("listed"), []);
    }

    #[tokio::test]
    async fn a_copy_fails_while_a_removal_of_the_same_bytes_runs() {
        let (bucket, blobs) = (Bucket::open("mem://", []).expect("memory"), Blobs::memory());
        let named = FileBytesRef { upload_id: "u".into(), sha256: "a".repeat(64), size: 1 };
        let (bytes, removal) = (key("w", &named.sha256), removing_key("w", &named.sha256));
        bucket.put(&bytes, Bytes::from_static(b"x")).await.expect("written");
        bucket.put(&unused_key("w", &named.sha256), Bytes::from_static(b"0")).await.expect("written");
        bucket.put(&removal, Bytes::from_static(b"1000")).await.expect("written");
        let copy = async |now_ms| copy(&bucket, &blobs, "w", &named, now_ms).await;
        for _ in 0..2 {
            assert!(matches!(copy(1_001).await, Err(Error::Unavailable(store::Error::Conflict))));
        }
        // The copy has removed the record that the bytes are unused, so a sweep keeps the bytes.
        assert_eq!(sweep(&bucket, "w", std::iter::empty(), 1_001, 100).await.expect("swept"), 0);
        assert!(bucket.has(&bytes, 1).await.expect("a response"));
        // The removal was interrupted.
        let later = 1_000 + MAX_REMOVAL.as_millis() as i64;
        assert!(copy(later).await.expect("archived"));
        sweep(&bucket, "w", std::iter::empty(), later, 100_000_000).await.expect("swept");
        assert_eq!(bucket.read(&removal).await.expect("read"), None);
    }
}
