//! Archives the log of one workspace: finds the end of the archive, and writes the next segments.
//!
//! A segment is written only if its key is free, or if the object under the key is damaged, for example by an
//! interrupted write. If two servers write the same segment, only one of the writes succeeds, and the other server
//! continues after that segment. A server that stops between two steps loses no data, because the next server reads the
//! end of the archive from the bucket.

use std::sync::Arc;

use super::bucket::Bucket;
use super::files::{self, FileBytesRef};
use super::line;
use super::log::{self, Epoch, SegmentRef, damaged};
use super::segment::{self, SegmentHeader};
use super::source::{LogSource, SegmentContent};
use crate::access::Access;
use crate::error::{Error, Result};
use crate::store::blobs::Blobs;

/// The maximum number of segments that are read in order to find the last readable segment.
const MAX_UNREADABLE: usize = 8;
/// The maximum number of attempts to begin an epoch.
const MAX_EPOCH_ATTEMPTS: usize = 8;

/// The archiver of one workspace.
#[derive(Clone)]
pub struct ArchiveWriter {
    workspace_id: Arc<str>,
    pub epoch: u64,
    /// The header of the last archived segment. If the epoch has no readable segment, the header describes the history
    /// before the epoch. Such a header contains only the end, the last event and the last definition of this history.
    pub last: SegmentHeader,
}

impl ArchiveWriter {
    /// Finds the end of the archive of a workspace. Begins an epoch if there is no archive yet, or if the store has a
    /// different history than the archive. If the history differs and the workspace was removed, fails and begins no
    /// epoch, because the log of a removed workspace looks like the log of an empty store.
    pub async fn open(
        bucket: &Bucket,
        access: &Access,
        workspace_id: &Arc<str>,
        source: &LogSource,
        now_ms: i64,
    ) -> Result<ArchiveWriter> {
        for _ in 0..MAX_EPOCH_ATTEMPTS {
            let newest = log::epochs(bucket, workspace_id).await?.last().copied();
            let begun = match newest {
                None => Epoch { number: 1, began_at: now_ms, ..Epoch::default() },
                Some(number) => {
                    let mut writer = ArchiveWriter::end_of(bucket, workspace_id, number).await?;
                    if writer.agrees_with(source).await? {
                        // The workspace may have been deleted and restored since then, so the mark for the removal of
                        // its archive is deleted.
                        bucket.remove(&log::removal_key(workspace_id)).await?;
                        return Ok(writer);
                    }
                    writer.step_back(bucket, source).await?;
                    access.workspace(workspace_id).await?;
                    tracing::error!(
                        workspace = %workspace_id, epoch = number + 1, position = writer.last.end.position,
                        "the store was reset to an earlier state; archiving continues in a new epoch"
                    );
                    let SegmentHeader { end: branch, last_event_id, last_definition, .. } = writer.last;
                    let (number, parent) = (number + 1, Some(number));
                    Epoch { number, parent, branch, last_event_id, last_definition, began_at: now_ms }
                }
            };
            // The next attempt opens the epoch, even if another server has begun the epoch.
            log::begin_epoch(bucket, workspace_id, &begun).await?;
        }
        Err(Error::internal(std::io::Error::other(format!(
            "could not begin an epoch of the archive of workspace {workspace_id}: another server began an epoch first \
             in each attempt"
        ))))
    }

    /// Returns a writer at the end of an epoch. A last segment that cannot be read, because its write was torn, is
    /// treated as missing and is replaced later.
    async fn end_of(bucket: &Bucket, workspace_id: &Arc<str>, epoch: u64) -> Result<ArchiveWriter> {
        let listed = log::list(bucket, workspace_id, epoch).await?;
        // If the write of a merged segment was torn, the parts of the merged segment still exist, and the last part is
        // the end.
        let mut ends = listed.clone();
        ends.sort_unstable_by_key(|segment| std::cmp::Reverse((segment.last, segment.level)));
        for segment in ends.iter().take(MAX_UNREADABLE) {
            match log::read_header(bucket, workspace_id, segment).await {
                Ok(Some(last)) => return Ok(ArchiveWriter { workspace_id: workspace_id.clone(), epoch, last }),
                Ok(None) => {}
                Err(error) if log::is_damage(&error) => {
                    let key = segment.key(workspace_id);
                    tracing::warn!(%error, cause = ?error, %key, "a segment at the end of an archive cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        if listed.len() > MAX_UNREADABLE {
            return Err(damaged(&log::epoch_folder(workspace_id, epoch), "the last segments cannot be read"));
        }
        let Epoch { branch: end, last_event_id, last_definition, .. } =
            log::read_epoch(bucket, workspace_id, epoch).await?;
        let last = SegmentHeader { end, last_event_id, last_definition, ..SegmentHeader::default() };
        Ok(ArchiveWriter { workspace_id: workspace_id.clone(), epoch, last })
    }

    /// Returns whether the log has the last archived event and the last archived definition at the same places.
    async fn agrees_with(&self, source: &LogSource) -> Result<bool> {
        if let Some(last) = &self.last.last_definition {
            let index = usize::try_from(self.last.end.definitions.saturating_sub(1)).unwrap_or(usize::MAX);
            let found = source.db().read_defined(index, 1).await?;
            if found.first().is_none_or(|found| segment::sha256(found.text.as_bytes()) != *last) {
                return Ok(false);
            }
        }
        let Some(last) = &self.last.last_event_id else { return Ok(true) };
        let found = source.db().event_at(self.last.end.position).await?;
        Ok(found.is_some_and(|event| *event.event_id == **last))
    }

    /// Goes back to the end of the last segment up to which the archive and the log agree, or to the beginning of the
    /// log if no segment agrees.
    async fn step_back(&mut self, bucket: &Bucket, source: &LogSource) -> Result<()> {
        let segments = log::history(bucket, &self.workspace_id, self.epoch).await?;
        for segment in segments.iter().rev() {
            let Some(header) = log::read_header(bucket, &self.workspace_id, segment).await? else { continue };
            self.last = header;
            if self.agrees_with(source).await? {
                return Ok(());
            }
        }
        self.last = SegmentHeader::default();
        Ok(())
    }

    /// Archives the next part of the log, with the bytes of its files. Returns whether anything was archived.
    pub async fn advance(&mut self, bucket: &Bucket, source: &LogSource, blobs: &Blobs, now_ms: i64) -> Result<bool> {
        let part = source.part_after(self.last.end.position, self.last.end.definitions).await?;
        if part.events.is_empty() && part.definitions.is_empty() {
            return Ok(false);
        }
        for named in part.events.iter().filter_map(|event| FileBytesRef::of(event)) {
            if !files::copy(bucket, blobs, &self.workspace_id, &named, now_ms).await? {
                let (workspace, upload) = (&*self.workspace_id, &*named.upload_id);
                tracing::debug!(workspace, upload, "a file was deleted before it was archived");
                files::note_missing(bucket, &self.workspace_id, &named.sha256).await?;
            }
        }
        let before = self.clone();
        let encoded = tokio::task::spawn_blocking(move || {
            let (header, lines) = before.lines_of(part, now_ms);
            segment::encode(header, &lines)
        });
        let encoded = encoded.await;
        let (header, bytes) = encoded.map_err(Error::internal)?.map_err(Error::internal)?;
        let number = header.end.number;
        let segment = SegmentRef::new(self.epoch, 0, number, number);
        let key = segment.key(&self.workspace_id);
        if bucket.create(&key, bytes.clone()).await? {
            self.last = header;
            return Ok(true);
        }
        match log::read_header(bucket, &self.workspace_id, &segment).await {
            // Another server has written the segment, or this server has written the segment but has not received the
            // response.
            Ok(Some(found)) if found.after == self.last.end => {
                self.last = found;
                match self.agrees_with(source).await? {
                    true => Ok(true),
                    false => Err(damaged(&key, "the segment does not belong to this log")),
                }
            }
            Ok(Some(_)) => Err(damaged(&key, "the segment does not continue the segment before it")),
            Ok(None) => Err(damaged(&key, "the segment exists but cannot be read")),
            Err(error) if log::is_damage(&error) => {
                tracing::warn!(%error, cause = ?error, %key, "replacing an incompletely written segment of an archive");
                bucket.put(&key, bytes).await?;
                self.last = header;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the header and the lines of the next segment.
    fn lines_of(&self, part: SegmentContent, now_ms: i64) -> (SegmentHeader, Vec<u8>) {
        let mut lines = Vec::new();
        let mut definitions = part.definitions.iter().peekable();
        let mut write_definitions_before = |position: u64, lines: &mut Vec<u8>| {
            while let Some(definition) = definitions.next_if(|definition| definition.position < position) {
                if !line::write_definition(definition, now_ms, lines) {
                    let (workspace, name) = (&*self.workspace_id, &*definition.type_name);
                    tracing::error!(workspace, name, "a definition cannot be archived: it is not JSON");
                }
            }
        };
        for event in &part.events {
            write_definitions_before(event.position, &mut lines);
            if !line::write_event(event, &mut lines) {
                let (workspace, event) = (&*self.workspace_id, &*event.event_id);
                tracing::error!(workspace, event, "an event cannot be archived: it is not JSON");
            }
        }
        write_definitions_before(u64::MAX, &mut lines);
        let mut end = self.last.end.clone();
        end.number += 1;
        end.definitions += part.definitions.len() as u64;
        end.position = part.events.last().map_or(end.position, |event| event.position);
        let mut header = SegmentHeader::new(&self.workspace_id, self.epoch, self.last.end.clone(), end);
        let last = part.events.last();
        header.last_event_id = last.map(|event| event.event_id.to_string()).or_else(|| self.last.last_event_id.clone());
        let last_definition = part.definitions.last().map(|definition| segment::sha256(definition.text.as_bytes()));
        header.last_definition = last_definition.or_else(|| self.last.last_definition.clone());
        header.from = part.events.first().map(|event| event.recorded_at);
        header.to = last.map(|event| event.recorded_at).or(self.last.to);
        (header, lines)
    }
}
