//! Merges small segments into larger segments, so that an archive of several years has few objects. A merge keeps every
//! line.

use std::sync::Arc;

use super::bucket::Bucket;
use super::log::{self, MAX_LEVEL, SegmentRef, damaged};
use super::segment;
use crate::error::{Error, Result};
use crate::store::workspace::log::fitting;

/// The age at which segments of level 0 and of level 1 may be merged, in milliseconds.
const MERGED_AFTER_MS: [i64; MAX_LEVEL as usize] = [3_600_000, 86_400_000];
/// The age of a merged segment at which the parts of the segment are removed, in milliseconds. Before that age, a
/// restore that has already listed the parts can read them.
const PARTS_KEPT_MS: i64 = 86_400_000;
/// The minimum number of consecutive segments from which a merge begins. The merge contains fewer segments if their
/// lines would exceed [`MAX_LINES_BYTES`].
const MIN_SEGMENTS: usize = 8;
/// The maximum number of segments in a merge.
const MAX_SEGMENTS: usize = 4_096;
/// The maximum packed size of the segments in a merge, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// The maximum size of the lines of a merged segment, in bytes. If the first segment of a merge is already larger, the
/// merged segment contains only the lines of this segment.
const MAX_LINES_BYTES: usize = 32 << 20;

/// Merges segments of an epoch if the segments are old enough. Also removes segments whose lines an earlier merge has
/// copied into a merged segment. Returns the number of merges.
///
/// Readers use a merged segment as soon as the merged segment is written. The parts of the merged segment are removed
/// much later.
pub async fn merge(bucket: &Bucket, workspace_id: &Arc<str>, epoch: u64, now_ms: i64) -> Result<u64> {
    let mut merges = 0;
    for (level, age_ms) in (0u8..).zip(MERGED_AFTER_MS) {
        let listed = log::list(bucket, workspace_id, epoch).await?;
        let chosen = log::covering(&listed);
        remove_parts(bucket, workspace_id, &listed, &chosen, now_ms.saturating_sub(PARTS_KEPT_MS)).await?;
        for mut rest in groups(&chosen, level, now_ms.saturating_sub(age_ms)) {
            while rest.len() >= MIN_SEGMENTS {
                let parts = merge_first(bucket, workspace_id, level + 1, rest, MAX_LINES_BYTES).await?;
                rest = rest.split_at(parts).1;
                merges += 1;
            }
        }
    }
    Ok(merges)
}

/// Removes segments whose lines a merged segment contains, if the merged segment is readable and was written before
/// `before_ms`. If the merged segment is damaged, removes the merged segment instead.
async fn remove_parts(
    bucket: &Bucket,
    workspace_id: &Arc<str>,
    listed: &[SegmentRef],
    chosen: &[SegmentRef],
    before_ms: i64,
) -> Result<()> {
    for whole in chosen.iter().filter(|segment| segment.level > 0 && segment.modified_at <= before_ms) {
        let is_part =
            |segment: &&SegmentRef| *segment != whole && whole.first <= segment.first && segment.last <= whole.last;
        let parts: Vec<&SegmentRef> = listed.iter().filter(is_part).collect();
        if parts.is_empty() {
            continue;
        }
        match log::read_header(bucket, workspace_id, whole).await {
            Ok(Some(_)) => {
                for part in parts {
                    bucket.remove(&part.key(workspace_id)).await?;
                }
            }
            Ok(None) => {}
            Err(error) if log::is_damage(&error) => {
                let segment = whole.key(workspace_id);
                tracing::warn!(%error, cause = ?error, %segment, "cannot read a merged segment; using its parts");
                bucket.remove(&whole.key(workspace_id)).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the runs of consecutive segments to merge.
fn groups(chosen: &[SegmentRef], level: u8, before_ms: i64) -> Vec<&[SegmentRef]> {
    let is_ready = |segment: &SegmentRef| segment.level == level && segment.modified_at <= before_ms;
    let mut groups = Vec::new();
    for run in chosen.chunk_by(|a, b| is_ready(a) && is_ready(b) && a.last + 1 == b.first) {
        let mut rest = run;
        while !rest.is_empty() {
            let sizes = rest.iter().take(MAX_SEGMENTS).map(|segment| segment.size as usize);
            let (group, after) = rest.split_at(fitting(sizes, MAX_BYTES));
            if group.len() >= MIN_SEGMENTS && group.iter().all(is_ready) {
                groups.push(group);
            }
            rest = after;
        }
    }
    groups
}

/// Merges the first segments of a group into one segment. The lines of the merged segment have at most `max_bytes`,
/// unless the first segment alone has more. Returns the number of merged segments, which is at least 1. A large segment
/// is copied alone to the next level. Otherwise every later merge would read the segment again.
async fn merge_first(
    bucket: &Bucket,
    workspace_id: &Arc<str>,
    level: u8,
    group: &[SegmentRef],
    max_bytes: usize,
) -> Result<usize> {
    let (mut merged, mut lines, mut parts) = (None, Vec::new(), Vec::new());
    for part in group {
        let key = part.key(workspace_id);
        let found = bucket.read(&key).await?.ok_or_else(|| damaged(&key, "the segment is missing"))?;
        let decoded = tokio::task::spawn_blocking(move || segment::decode(&found)).await.map_err(Error::internal)?;
        let decoded = decoded.map_err(|message| damaged(&key, &message))?;
        if !parts.is_empty() && lines.len() + decoded.lines.len() > max_bytes {
            break;
        }
        let header = merged.get_or_insert_with(|| decoded.header.clone());
        if parts.is_empty() {
            header.end = header.after.clone();
        }
        if decoded.header.after != header.end {
            return Err(damaged(&key, "the segment does not continue the segment before it"));
        }
        header.end = decoded.header.end;
        header.from = header.from.or(decoded.header.from);
        (header.to, header.last_event_id) = (decoded.header.to, decoded.header.last_event_id);
        header.last_definition = decoded.header.last_definition;
        lines.extend_from_slice(&decoded.lines);
        parts.push(part);
    }
    let (Some(header), [first, ..]) = (merged, parts.as_slice()) else { return Ok(group.len()) };
    let (chain, last) = (header.end.chain.clone(), header.end.number);
    let encoded = tokio::task::spawn_blocking(move || segment::encode(header, &lines)).await;
    let (header, bytes) = encoded.map_err(Error::internal)?.map_err(Error::internal)?;
    let whole = SegmentRef::new(first.epoch, level, first.first, last);
    let key = whole.key(workspace_id);
    if header.end.chain != chain {
        return Err(damaged(&key, "the hash chain of the merged lines differs from the chain of the parts"));
    }
    if !bucket.create(&key, bytes.clone()).await? {
        // Another server merges the same segments, or has left a torn object.
        match log::read_header(bucket, workspace_id, &whole).await {
            Ok(Some(found)) if found.end == header.end => {}
            Ok(_) => return Err(damaged(&key, "the merged segment differs from its parts")),
            Err(error) if log::is_damage(&error) => bucket.put(&key, bytes).await?,
            Err(error) => return Err(error),
        }
    }
    Ok(parts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_segment_that_is_too_large_for_a_merge_is_copied_alone() {
        let (bucket, id) = (Bucket::open("mem://", []).expect("memory"), Arc::<str>::from("w"));
        let mut place = segment::ArchivePlace::default();
        for number in 1..=9 {
            let lines = if number < 3 { "large\n".repeat(10) } else { "x\n".to_owned() };
            let end = segment::ArchivePlace { number, ..place.clone() };
            let header = segment::SegmentHeader::new(&id, 1, place, end);
            let (header, bytes) = segment::encode(header, lines.as_bytes()).expect("a segment");
            bucket.put(&SegmentRef::new(1, 0, number, number).key(&id), bytes).await.expect("written");
            place = header.end;
        }
        let parts = log::list(&bucket, &id, 1).await.expect("listed");
        let merge = async |group: &[SegmentRef]| merge_first(&bucket, &id, 1, group, 64).await.expect("merged");
        assert_eq!((merge(&parts).await, merge(&parts[1..]).await, merge(&parts[4..]).await), (1, 3, 5));
        // The part of the first merge has the same span, and is not merged again.
        let listed = log::list(&bucket, &id, 1).await.expect("listed");
        let chosen: Vec<_> =
            log::covering(&listed).iter().map(|segment| (segment.level, segment.first, segment.last)).collect();
        assert_eq!(chosen, [(1, 1, 1), (1, 2, 4), (1, 5, 9)]);
    }

    #[test]
    fn old_consecutive_segments_are_merged_in_groups_of_limited_size() {
        let segment = |number: u64, size: u64, modified_at: i64| SegmentRef {
            size,
            modified_at,
            ..SegmentRef::new(1, 0, number, number)
        };
        let spans = |chosen: &[SegmentRef], before| {
            groups(chosen, 0, before)
                .iter()
                .map(|group| (group[0].first, group[group.len() - 1].last))
                .collect::<Vec<_>>()
        };
        let all: Vec<SegmentRef> = (1..=20).map(|number| segment(number, 1, number as i64)).collect();
        assert_eq!(spans(&all, 20), [(1, 20)]);
        assert_eq!(spans(&all, 10), [(1, 10)]);
        assert_eq!(spans(&all, 5), []);
        let gap: Vec<SegmentRef> = all.iter().filter(|segment| segment.first != 10).cloned().collect();
        assert_eq!(spans(&gap, 20), [(1, 9), (11, 20)]);
        let large: Vec<SegmentRef> = (1..=20).map(|number| segment(number, MAX_BYTES as u64 / 10, 0)).collect();
        assert_eq!(spans(&large, 20), [(1, 10), (11, 20)]);
    }
}
