//! The archived log of a workspace: its epochs, the list of its segments, and a reader of consecutive segments.
//!
//! An epoch is one history of a log. After the store was reset to an earlier state, different events are appended at
//! positions that are already archived. The archiver then begins a new epoch, which names its parent and the place in
//! the parent's history after which the new epoch begins: the end of the last segment that both histories contain, or
//! the beginning of the log.

use serde::{Deserialize, Serialize};

use super::bucket::{Bucket, ListedObject};
use super::segment::{self, ArchivePlace, ArchiveSegment, SegmentHeader};
use crate::error::{Error, Result};
use crate::store;

/// The highest level of segments.
pub const MAX_LEVEL: u8 = 2;
/// The number of digits of an epoch in an object key.
const EPOCH_DIGITS: usize = 6;
/// The number of digits of a segment's number in an object key.
const NUMBER_DIGITS: usize = 12;

/// An epoch of an archived log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    pub number: u64,
    /// The epoch whose history this epoch continues.
    pub parent: Option<u64>,
    /// The place in the parent's history after which this epoch begins.
    pub branch: ArchivePlace,
    /// The id of the last event before the place `branch`.
    pub last_event_id: Option<String>,
    /// The hash of the last definition before the place `branch`.
    pub last_definition: Option<String>,
    /// The time at which this epoch began, in milliseconds since 1970.
    pub began_at: i64,
}

/// A reference to a segment. `first` and `last` are the numbers of the first and the last level-0 segment that the
/// segment contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRef {
    pub epoch: u64,
    pub level: u8,
    pub first: u64,
    pub last: u64,
    pub size: u64,
    pub modified_at: i64,
}

impl SegmentRef {
    /// Returns the reference to a new segment.
    pub fn new(epoch: u64, level: u8, first: u64, last: u64) -> SegmentRef {
        SegmentRef { epoch, level, first, last, size: 0, modified_at: 0 }
    }

    pub fn key(&self, workspace_id: &str) -> String {
        let SegmentRef { epoch, level, first, last, .. } = self;
        let folder = epoch_folder(workspace_id, *epoch);
        format!("{folder}/log/{level}/{first:0NUMBER_DIGITS$}-{last:0NUMBER_DIGITS$}.ndjson.zst")
    }

    fn listed(epoch: u64, listed: &ListedObject) -> Option<SegmentRef> {
        let mut parts = listed.key.rsplit('/');
        let (first, last) = parts.next()?.strip_suffix(".ndjson.zst")?.split_once('-')?;
        let level: u8 = parts.next()?.parse().ok()?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        let is_known = level <= MAX_LEVEL && first <= last && first > 0;
        is_known.then_some(SegmentRef { epoch, level, first, last, size: listed.size, modified_at: listed.modified_at })
    }
}

/// Returns the folder of an epoch.
pub fn epoch_folder(workspace_id: &str, epoch: u64) -> String {
    format!("{workspace_id}/{epoch:0EPOCH_DIGITS$}")
}

fn epoch_key(workspace_id: &str, epoch: u64) -> String {
    format!("{}/epoch.json", epoch_folder(workspace_id, epoch))
}

/// Returns the key of the object that records when a workspace was deleted.
pub fn removal_key(workspace_id: &str) -> String {
    format!("{workspace_id}/removed")
}

/// Returns the numbers of the epochs of a workspace, in ascending order.
pub async fn epochs(bucket: &Bucket, workspace_id: &str) -> Result<Vec<u64>> {
    let folders = bucket.folders(workspace_id).await?;
    let number = |name: &String| if name.len() == EPOCH_DIGITS { name.parse().ok() } else { None };
    Ok(folders.iter().filter_map(number).collect())
}

/// Reads an epoch.
pub async fn read_epoch(bucket: &Bucket, workspace_id: &str, number: u64) -> Result<Epoch> {
    let key = epoch_key(workspace_id, number);
    let found = bucket.read(&key).await?.ok_or_else(|| Error::not_found("epoch", &number.to_string()))?;
    serde_json::from_slice(&found).map_err(|error| damaged(&key, &error.to_string()))
}

/// Begins an epoch. Returns `false` if another server has begun an epoch with this number.
pub async fn begin_epoch(bucket: &Bucket, workspace_id: &str, epoch: &Epoch) -> Result<bool> {
    let text = serde_json::to_vec(epoch).map_err(Error::internal)?;
    bucket.create(&epoch_key(workspace_id, epoch.number), text.into()).await
}

/// Returns all segments of one epoch. The list can contain a merged segment together with the segments from which it
/// was merged.
pub async fn list(bucket: &Bucket, workspace_id: &str, epoch: u64) -> Result<Vec<SegmentRef>> {
    let listed = bucket.list(&format!("{}/log", epoch_folder(workspace_id, epoch))).await?;
    let mut found: Vec<SegmentRef> = listed.iter().filter_map(|listed| SegmentRef::listed(epoch, listed)).collect();
    found.sort_unstable_by_key(|segment| (segment.first, std::cmp::Reverse((segment.last, segment.level))));
    Ok(found)
}

/// Returns the segments to read. Leaves out segments that a merged segment contains. The list has gaps if segments are
/// missing.
pub fn covering(listed: &[SegmentRef]) -> Vec<SegmentRef> {
    let mut chosen: Vec<SegmentRef> = Vec::new();
    for segment in listed {
        let covered = chosen.last().map_or(0, |last| last.last);
        if segment.last > covered {
            chosen.push(segment.clone());
        }
    }
    chosen
}

/// Returns all segments of an epoch's history, in order. The history includes the earlier epochs that the epoch
/// continues. From each earlier epoch, returns only the segments up to the place at which the next epoch of the history
/// begins.
pub async fn history(bucket: &Bucket, workspace_id: &str, epoch: u64) -> Result<Vec<SegmentRef>> {
    let (mut found, mut number, mut end) = (Vec::new(), Some(epoch), u64::MAX);
    while let Some(epoch) = number {
        let begun = read_epoch(bucket, workspace_id, epoch).await?;
        let listed = list(bucket, workspace_id, epoch).await?;
        // A merged segment that extends beyond the branch is left out, because it cannot be read only up to the branch.
        let listed: Vec<SegmentRef> = listed.into_iter().filter(|segment| segment.last <= end).collect();
        found.splice(0..0, covering(&listed));
        // The branch of a later epoch may be at an earlier place than the branch of its parent.
        end = end.min(begun.branch.number);
        // A parent's number must be smaller, so that this loop ends even if the epochs are damaged.
        number = begun.parent.filter(|parent| *parent < epoch);
    }
    Ok(found)
}

/// Reads segments in order, and checks that each segment continues the segment before it.
pub struct SegmentReader<'b> {
    bucket: &'b Bucket,
    workspace_id: &'b str,
    segments: std::vec::IntoIter<SegmentRef>,
    /// The place up to which the log was read.
    pub place: ArchivePlace,
    /// The key of the segment that was read last. Empty before the first segment.
    pub key: String,
}

impl<'b> SegmentReader<'b> {
    pub fn new(bucket: &'b Bucket, workspace_id: &'b str, segments: Vec<SegmentRef>) -> SegmentReader<'b> {
        let (segments, place) = (segments.into_iter(), ArchivePlace::default());
        SegmentReader { bucket, workspace_id, segments, place, key: String::new() }
    }

    /// Returns the next segment, or `None` at the end. Fails if a segment is missing, changed or cut off. The error
    /// names the segment.
    pub async fn next(&mut self) -> Result<Option<ArchiveSegment>> {
        let Some(next) = self.segments.next() else { return Ok(None) };
        let key = next.key(self.workspace_id);
        if next.first != self.place.number + 1 {
            let missing = SegmentRef::new(next.epoch, 0, self.place.number + 1, self.place.number + 1);
            let message = format!("the segments {} to {} are missing", missing.first, next.first - 1);
            return Err(damaged(&missing.key(self.workspace_id), &message));
        }
        let found = self.bucket.read(&key).await?.ok_or_else(|| damaged(&key, "the segment is missing"))?;
        let decoded = tokio::task::spawn_blocking(move || segment::decode(&found)).await.map_err(Error::internal)?;
        let decoded = decoded.map_err(|message| damaged(&key, &message))?;
        let header = &decoded.header;
        if header.workspace_id != self.workspace_id {
            return Err(damaged(&key, "the segment belongs to the archive of another workspace"));
        }
        if header.after.chain != self.place.chain {
            return Err(damaged(&key, "the segment does not continue the segment before it"));
        }
        self.place = header.end.clone();
        self.key = key;
        Ok(Some(decoded))
    }
}

/// Reads the header of a segment and checks the segment. Returns `None` if the segment does not exist.
pub async fn read_header(bucket: &Bucket, workspace_id: &str, segment: &SegmentRef) -> Result<Option<SegmentHeader>> {
    let key = segment.key(workspace_id);
    let Some(found) = bucket.read(&key).await? else { return Ok(None) };
    segment::header(&found).map(Some).map_err(|message| damaged(&key, &message))
}

/// Fails if the id of a workspace is not a UUID, because the id becomes part of object keys.
pub fn check_id(workspace_id: &str) -> Result<()> {
    let parsed = uuid::Uuid::try_parse(workspace_id).map(drop);
    parsed.map_err(|_| Error::not_found("archive of the workspace", workspace_id))
}

/// Returns the error for an object that cannot be used.
pub fn damaged(key: &str, message: &str) -> Error {
    Error::Unavailable(store::Error::corrupt(format!("{key}: {message}")))
}

/// Returns the cause of an error of the archive or the store, for operators.
pub fn reason(error: &Error) -> String {
    match error {
        Error::Unavailable(store::Error::Corrupt { record: None, reason }) => reason.clone(),
        Error::Unavailable(reason) => reason.to_string(),
        other => other.to_string(),
    }
}

/// Returns whether an error means that an object of the archive cannot be used.
pub fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Unavailable(store::Error::Corrupt { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(spans: &[(u8, u64, u64)]) -> Vec<SegmentRef> {
        let mut refs: Vec<SegmentRef> =
            spans.iter().map(|(level, first, last)| SegmentRef::new(1, *level, *first, *last)).collect();
        refs.sort_unstable_by_key(|segment| (segment.first, std::cmp::Reverse(segment.last)));
        refs
    }

    #[test]
    fn merged_segments_replace_their_parts() {
        let chosen = |spans: &[(u8, u64, u64)]| {
            covering(&refs(spans))
                .iter()
                .map(|segment| (segment.level, segment.first, segment.last))
                .collect::<Vec<_>>()
        };
        assert_eq!(chosen(&[(0, 1, 1), (0, 2, 2), (1, 1, 2), (0, 3, 3)]), [(1, 1, 2), (0, 3, 3)]);
        assert_eq!(chosen(&[(1, 1, 2), (1, 3, 4), (2, 1, 4), (0, 5, 5), (0, 4, 4)]), [(2, 1, 4), (0, 5, 5)]);
        assert_eq!(chosen(&[(0, 1, 1), (0, 3, 3)]), [(0, 1, 1), (0, 3, 3)]);
    }

    #[test]
    fn only_valid_segment_keys_are_parsed_as_segments() {
        let segment = SegmentRef { size: 9, modified_at: 7, ..SegmentRef::new(3, 1, 20, 40) };
        let key = segment.key("w");
        assert_eq!(key, "w/000003/log/1/000000000020-000000000040.ndjson.zst");
        let listed = |key: &str| ListedObject { key: key.into(), size: 9, modified_at: 7 };
        assert_eq!(SegmentRef::listed(3, &listed(&key)), Some(segment));
        for other in ["w/000003/log/1/x.ndjson.zst", "w/000003/log/9/1-1.ndjson.zst", "w/000003/log/0/2-1.ndjson.zst"] {
            assert_eq!(SegmentRef::listed(3, &listed(other)), None, "{other}");
        }
    }
}
