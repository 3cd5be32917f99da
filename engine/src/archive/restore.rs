//! Restores logs from the archive: a workspace up to a position or a time, and the control database.
//!
//! A restore appends the archived events to a workspace that no server has open. The workspace is empty, or contains
//! the first events of the archived log. The events keep their event ids, positions, versions, times and actors. The
//! restore fails if an event id, a position or a version differs. In another workspace, files get new paths and
//! aggregate ids.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;

use super::control;
use super::files::{self, FileBytesRef};
use super::installation::Archive;
use super::line::{self, ArchiveLine};
use super::log::{self, SegmentReader, damaged};
use super::verify::{Observer, RestoreProgress};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::WorkspaceRecord;
use crate::model::builtin::FILE;
use crate::model::event::{Event, NewEvent, OriginalRecord, StreamExpectation};
use crate::model::file::{FILENAME, PATH};
use crate::model::file_path::FilePath;
use crate::model::id::AggregateId;
use crate::model::value::Value;
use crate::workspace::files::attachment;
use crate::workspace::offline::{FileBytes, Offline};

/// The maximum number of events in a batch.
const MAX_EVENTS: usize = 512;
/// The limit of the total size of the events in a batch, in bytes. The last event of a batch may exceed the limit.
const MAX_BYTES: usize = 1 << 20;

/// The point at which a restore ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreEnd {
    /// The end of the archive.
    End,
    /// The event at this position.
    Position(u64),
    /// A time, in milliseconds since 1970. The restore ends before the first event that was recorded after this time.
    Time(i64),
}

/// The part of an archive to restore.
#[derive(Debug, Clone)]
pub struct RestoreFrom {
    /// The archived workspace.
    pub workspace_id: Arc<str>,
    pub until: RestoreEnd,
    /// The epoch whose history is restored. `None` selects the last epoch.
    pub epoch: Option<u64>,
}

/// The result of a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreOutcome {
    /// The position of the last restored event.
    pub position: u64,
    pub events: u64,
    /// The number of restored events that refer to the bytes of a file, counted only if these bytes exist after the
    /// restore.
    pub files: u64,
    /// The number of restored file events whose bytes are neither in the archive nor in the file storage of the
    /// workspace. Most of the files were replaced or deleted: the bytes were never archived, or were removed from the
    /// archive after the retention period.
    pub missing_files: u64,
}

/// Restores the newest readable dump of the control database into a store without workspaces. Returns the workspaces.
pub async fn restore_control(engine: &Engine, archive: &Archive) -> Result<Vec<WorkspaceRecord>> {
    let store = engine.access().control();
    if store.has_workspaces().await? {
        let message = "the store already has workspaces; a whole installation can be restored only into an empty store";
        return Err(Error::conflict(ErrorCode::StoreNotEmpty, message));
    }
    control::restore(archive, store).await?;
    engine.workspaces().await
}

/// Restores a log into the workspace `into`, which must exist and must not be open on a server. If the workspace
/// already has the first events of the log, only the later events are restored, so a restore that ended early can be
/// repeated.
pub async fn restore_workspace(
    engine: &Engine,
    archive: &Archive,
    from: &RestoreFrom,
    into: &str,
    progress: Observer<'_>,
) -> Result<RestoreOutcome> {
    let offline = engine.offline(into).await?;
    let mut restoring = RestoreRun {
        archive,
        from,
        is_other: *from.workspace_id != *into,
        present: offline.position(),
        offline: &offline,
        moved: HashMap::new(),
        held: Vec::new(),
        pending: Vec::new(),
        pending_bytes: 0,
        restored: RestoreOutcome::default(),
    };
    let outcome = restoring.run(progress).await;
    let restored = restoring.restored;
    let closed = offline.close().await;
    outcome.and(closed).map(|()| restored)
}

/// A running restore.
struct RestoreRun<'r> {
    archive: &'r Archive,
    from: &'r RestoreFrom,
    /// Whether the log is restored into a workspace other than its own.
    is_other: bool,
    offline: &'r Offline,
    /// The position up to which the workspace already contains the log.
    present: u64,
    /// The new ids of the files that were restored into another workspace.
    moved: HashMap<AggregateId, AggregateId>,
    /// The definitions that were read after the last event and are not applied yet, each with the time at which it was
    /// archived.
    held: Vec<(Value, i64)>,
    pending: Vec<Event>,
    pending_bytes: usize,
    restored: RestoreOutcome,
}

impl RestoreRun<'_> {
    async fn run(&mut self, progress: Observer<'_>) -> Result<()> {
        let (bucket, workspace_id) = (&self.archive.bucket, &self.from.workspace_id);
        let epoch = match self.from.epoch {
            Some(epoch) => Some(epoch),
            None => log::epochs(bucket, workspace_id).await?.last().copied(),
        };
        let epoch = epoch.ok_or_else(|| Error::not_found("archive of the workspace", workspace_id))?;
        let segments = log::history(bucket, workspace_id, epoch).await?;
        let mut reader = SegmentReader::new(bucket, workspace_id, segments);
        let mut is_complete = false;
        while !is_complete && !self.is_reached() {
            let segment = match reader.next().await {
                Ok(Some(segment)) => segment,
                Ok(None) => break,
                Err(error) => {
                    // Restores the events before the damaged segment.
                    self.flush().await?;
                    let position = self.restored.position;
                    return Err(match log::is_damage(&error) {
                        true => {
                            let message = format!("the log can be restored up to position {position}");
                            damaged(&log::reason(&error), &message)
                        }
                        false => error,
                    });
                }
            };
            is_complete = self.restore_lines(&reader.key, &segment.lines).await?;
            let (position, end) = (self.restored.position, reader.place.position);
            progress(RestoreProgress { workspace_id: workspace_id.clone(), position, end });
        }
        self.flush().await?;
        self.define_last().await?;
        match self.from.until {
            RestoreEnd::Position(position) if position > self.restored.position => {
                let last = self.restored.position;
                let message = format!("expected at most {last}, the last position of the archived history");
                Err(Error::invalid_at("/position", message))
            }
            _ => Ok(()),
        }
    }

    /// Restores the lines of the segment with this key, up to the end of the restore. Returns whether the segment
    /// contains an event after the end of the restore.
    async fn restore_lines(&mut self, key: &str, lines: &[u8]) -> Result<bool> {
        for text in lines.split(|byte| *byte == b'\n').filter(|text| !text.is_empty()) {
            let read =
                line::read(text).map_err(|message| damaged(key, &format!("a line cannot be read: {message}")))?;
            let is_beyond = match (&read, self.from.until) {
                (ArchiveLine::Event(event), RestoreEnd::Position(position)) => event.position > position,
                (ArchiveLine::Event(event), RestoreEnd::Time(time)) => event.recorded_at > time,
                _ => false,
            };
            if is_beyond {
                return Ok(true);
            }
            match read {
                ArchiveLine::Definition { position, .. } if position < self.present => {}
                ArchiveLine::Event(event) if event.position <= self.present => self.check_present(event).await?,
                // The definition is held until the next event is restored or the restore ends.
                ArchiveLine::Definition { declaration, at, .. } => self.held.push((declaration, at)),
                ArchiveLine::Event(event) if &*event.aggregate_type == FILE => {
                    self.define_held().await?;
                    self.flush().await?;
                    self.append_file(event).await?;
                }
                ArchiveLine::Event(event) => {
                    self.define_held().await?;
                    self.pending_bytes += event.size_bytes();
                    self.pending.push(event);
                    if self.pending.len() >= MAX_EVENTS || self.pending_bytes >= MAX_BYTES {
                        self.flush().await?;
                    }
                }
            }
        }
        Ok(false)
    }

    /// Returns whether the restore ends at a position and has read the event at this position.
    fn is_reached(&self) -> bool {
        let read = self.pending.last().map_or(self.restored.position, |event| event.position);
        matches!(self.from.until, RestoreEnd::Position(position) if position <= read && read > 0)
    }

    /// Applies the held definitions, which precede the next event.
    async fn define_held(&mut self) -> Result<()> {
        if !self.held.is_empty() {
            self.flush().await?;
        }
        for (declaration, _) in std::mem::take(&mut self.held) {
            self.offline.define_recorded(&declaration).await?;
        }
        Ok(())
    }

    /// Ends the restore with the definitions after the last restored event. A restore of the whole archive applies all
    /// these definitions. A restore up to a time applies only the definitions that were archived by this time. A
    /// restore up to a position applies none of these definitions.
    async fn define_last(&mut self) -> Result<()> {
        let until = self.from.until;
        self.held.retain(|(_, at)| match until {
            RestoreEnd::End => true,
            RestoreEnd::Position(_) => false,
            RestoreEnd::Time(time) => *at <= time,
        });
        self.define_held().await
    }

    /// Fails if the last event that the workspace already has differs from the archived event at the same position.
    /// Earlier events are not checked.
    async fn check_present(&mut self, mut event: Event) -> Result<()> {
        if self.is_other && &*event.aggregate_type == FILE {
            self.move_file(&mut event);
        }
        self.restored.position = event.position;
        if event.position < self.present || self.offline.has_event(&event.event_id).await? {
            return Ok(());
        }
        let message =
            format!("the event at position {} in the workspace differs from the archived event", event.position);
        Err(Error::conflict(ErrorCode::OtherHistory, message))
    }

    async fn flush(&mut self) -> Result<()> {
        let events = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if events.is_empty() {
            return Ok(());
        }
        let appended = self.offline.append(events.iter().map(new_event).collect()).await?;
        for (archived, appended) in events.iter().zip(&appended.events) {
            self.check(archived, appended)?;
        }
        Ok(())
    }

    /// Checks that a restored event has its archived position, version and id, and counts the event.
    fn check(&mut self, archived: &Event, appended: &Event) -> Result<()> {
        let place = |event: &Event| (event.position, event.version);
        if place(archived) != place(appended) || archived.event_id != appended.event_id {
            let message = format!(
                "event {} has position {} and version {} in the archive, but was appended with position {} and version {}",
                archived.event_id, archived.position, archived.version, appended.position, appended.version
            );
            return Err(damaged(&self.from.workspace_id, &message));
        }
        self.restored.position = appended.position;
        self.restored.events += 1;
        Ok(())
    }

    /// Restores an event of a file, with the bytes that the event refers to.
    async fn append_file(&mut self, mut event: Event) -> Result<()> {
        let named = FileBytesRef::of(&event);
        if self.is_other {
            self.move_file(&mut event);
        }
        let new = new_event(&event);
        let appended = match named {
            None => self.offline.append(vec![new]).await?,
            Some(named) => {
                let key = files::key(&self.from.workspace_id, &named.sha256);
                let bytes = self.archive.bucket.stream(&key).await?;
                let filename = event.payload.get(FILENAME).and_then(Value::as_str).unwrap_or_default();
                let content_disposition = attachment(filename);
                let bytes = bytes.map(|bytes| FileBytes { bytes: bytes.boxed(), content_disposition });
                let (appended, has_bytes) = self.offline.append_archived_file(new, bytes).await?;
                match has_bytes {
                    true => self.restored.files += 1,
                    false => self.restored.missing_files += 1,
                }
                appended
            }
        };
        appended.events.first().map_or(Ok(()), |appended| self.check(&event, appended))
    }

    /// Replaces the workspace id at the beginning of a file's path by the id of the new workspace, and derives the
    /// file's new id from the new path.
    fn move_file(&mut self, event: &mut Event) {
        let own = &self.offline.record().id;
        let Some(path) = event.payload.get(PATH).and_then(Value::as_str) else {
            // The deletion of a file has no path. The file was moved when it was created.
            if let Some(moved) = self.moved.get(&event.aggregate_id) {
                event.aggregate_id = moved.clone();
            }
            return;
        };
        let moved = path.split_once('/').map_or_else(|| path.to_owned(), |(_, rest)| format!("{own}/{rest}"));
        let id = FilePath::aggregate_id(&moved);
        self.moved.insert(std::mem::replace(&mut event.aggregate_id, id.clone()), id);
        let mut payload = (*event.payload).clone();
        payload.insert(PATH, Value::from(moved));
        event.payload = Arc::new(payload);
    }
}

/// Returns the event to append for an archived event.
fn new_event(event: &Event) -> NewEvent {
    NewEvent {
        aggregate_id: event.aggregate_id.as_str().to_owned(),
        aggregate_type: event.aggregate_type.to_string(),
        event_type: event.event_type.to_string(),
        project: event.project_id.as_deref().map(str::to_owned),
        payload: (*event.payload).clone(),
        metadata: (*event.metadata).clone(),
        event_id: Some(event.event_id.to_string()),
        expected: StreamExpectation::Below(event.version),
        occurred_at: Some(event.occurred_at),
        recorded: Some(OriginalRecord { actor: event.actor.clone(), at: event.recorded_at }),
        ..NewEvent::default()
    }
}
