//! Archives the events of workspaces on a running server, and maintains the archive periodically.
//!
//! The server that leads a workspace archives the workspace. Two cases are exceptions: a server also archives the
//! workspaces that it does not have open, every 30 seconds, and the workspaces to which it appends events that wait
//! until they are archived. If two servers archive the same workspace, the bucket keeps the first of two segments with
//! the same number. A bucket that does not respond delays the archive, the restores, the stop of the server, and the
//! appends that wait until their events are archived. All other appends continue.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::installation::Archive;
use super::source::LogSource;
use super::writer::ArchiveWriter;
use super::{control, log};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::metric;
use crate::registry::OpenWorkspace;
use crate::store;

/// The maximum number of workspaces that are archived at the same time. Appends that wait until their events are
/// archived do not count, and may archive further workspaces at the same time.
const CONCURRENT: usize = 8;
/// The maximum number of segments that are written for one workspace before other workspaces have their turn.
const SEGMENTS_PER_TURN: usize = 64;
/// The interval of two loops: the loop that archives closed workspaces and the control database, and the loop that
/// maintains the archive.
const SLOW_INTERVAL: Duration = Duration::from_secs(30);
/// The pause after a dump of the control database, as a multiple of the time that the dump took.
const CONTROL_REST: u32 = 50;
/// The time for which a writer is reused after its last successful attempt to archive, in milliseconds. After this
/// time, the end of the archive is read from the bucket again. This time must be shorter than the age at which segments
/// are merged: a merge frees the keys of segments, and an outdated writer could write to these keys.
const WRITER_KEPT_MS: i64 = 1_800_000;
/// The maximum time that an append waits until its events are archived.
const ARCHIVED_WITHIN: Duration = Duration::from_secs(10);
/// The delay before a waiting append repeats a failed attempt to archive.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The key of the object that contains the id of the installation to which the archive belongs.
const OWNER: &str = "installation";

/// The settings of the archiver: its interval, the retention of removed data, and the verification of archives.
#[derive(Debug, Clone)]
pub struct BackupSettings {
    /// The time for which events are gathered before they are archived, in milliseconds.
    pub flush_ms: u64,
    /// The time for which the archive keeps the bytes of deleted and replaced files, the archives of deleted
    /// workspaces, and earlier dumps of the control database, in milliseconds.
    pub retention_ms: i64,
    /// Whether each archive is verified once a day.
    pub verify: bool,
}

/// The progress of archiving a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveProgress {
    pub workspace_id: Arc<str>,
    /// The position up to which the log is archived.
    pub position: u64,
    /// The position of the log's last event.
    pub head: u64,
    /// The reason why the last attempt failed.
    pub error: Option<String>,
}

/// The archiver of a running server.
pub struct Backups {
    pub(super) engine: Arc<Engine>,
    archive: Archive,
    pub(super) settings: BackupSettings,
    slots: Mutex<HashMap<Arc<str>, Arc<ArchiveSlot>>>,
    /// Whether this server has checked that the archive belongs to this installation.
    is_owner: AtomicBool,
    /// Whether the last attempt to archive the control database succeeded. If so, the next attempt does not check again
    /// that the key of this server opens the newest dump.
    is_control_checked: AtomicBool,
    /// The reason why the last dump of the control database failed.
    control_error: Mutex<Option<String>>,
    pub(super) tended: tokio::sync::Mutex<MaintenanceTimes>,
    /// The workspaces whose archives do not count as verified.
    pub(super) unverified: Mutex<HashSet<Arc<str>>>,
    /// Limits the number of workspaces that are archived at the same time.
    turns: Semaphore,
    /// The progress of the restores that this server runs, by id of the restore. The first number is the position of
    /// the last restored event. The second number is the last position that was read from the archive so far.
    pub(super) restoring: Mutex<HashMap<Arc<str>, (u64, u64)>>,
}

/// The state of archiving one workspace.
#[derive(Default)]
pub(super) struct ArchiveSlot {
    /// Whether a background task is archiving the workspace now.
    is_busy: AtomicBool,
    writer: tokio::sync::Mutex<Option<ArchiveWriter>>,
    reached: Mutex<ArchivePosition>,
}

/// The times at which this server last did the hourly and daily maintenance of each workspace's archive, and the
/// maintenance of the control database's dumps, in milliseconds since 1970.
#[derive(Default)]
pub(super) struct MaintenanceTimes {
    pub hourly: HashMap<Arc<str>, i64>,
    pub daily: HashMap<Arc<str>, i64>,
    pub control: i64,
}

/// The progress of archiving one workspace, and the error of the last attempt.
#[derive(Default, Clone)]
pub(super) struct ArchivePosition {
    pub position: u64,
    pub epoch: u64,
    /// The workspace's counter of definition changes, as of the start of the last attempt that archived the whole log.
    types_changed: Option<u64>,
    last_recorded_at: Option<i64>,
    /// The time of the last successful attempt, in milliseconds since 1970.
    advanced_at: i64,
    /// Whether a closed workspace has been archived to the end of its log. Always `false` if other servers can use the
    /// store.
    is_settled: bool,
    error: Option<String>,
}

impl Backups {
    pub fn new(engine: Arc<Engine>, archive: Archive, settings: BackupSettings) -> Arc<Backups> {
        Arc::new(Backups {
            engine,
            archive,
            settings,
            slots: Mutex::default(),
            is_owner: AtomicBool::default(),
            is_control_checked: AtomicBool::default(),
            control_error: Mutex::default(),
            tended: tokio::sync::Mutex::default(),
            unverified: Mutex::default(),
            turns: Semaphore::new(CONCURRENT),
            restoring: Mutex::default(),
        })
    }

    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Runs three independent loops until the task is aborted: archiving open workspaces, archiving closed workspaces
    /// and the control database, and maintaining the archive.
    pub async fn keep(self: &Arc<Self>) {
        tokio::join!(self.keep_archiving(), self.keep_archiving_closed(), self.keep_maintaining());
    }

    async fn keep_archiving(self: &Arc<Self>) {
        let mut ticks = ticks(Duration::from_millis(self.settings.flush_ms.max(1)));
        loop {
            ticks.tick().await;
            for usage in self.due() {
                let (backups, slot) = (self.clone(), self.slot(&usage.id));
                // A separate task archives each workspace, so that large files do not delay other workspaces.
                if !slot.is_busy.swap(true, Ordering::AcqRel) {
                    tokio::spawn(async move {
                        backups.archive_one(usage).await;
                        slot.is_busy.store(false, Ordering::Release);
                    });
                }
            }
            self.measure();
        }
    }

    /// Periodically archives closed workspaces and the control database, and marks the restores of stopped servers as
    /// failed.
    async fn keep_archiving_closed(&self) {
        let (mut ticks, mut control_due) = (ticks(SLOW_INTERVAL), Instant::now());
        loop {
            ticks.tick().await;
            if let Err(error) = self.end_abandoned_restores().await {
                tracing::warn!(%error, "could not mark the restores of stopped servers as failed");
            }
            if Instant::now() >= control_due {
                let began = Instant::now();
                self.archive_control().await;
                control_due = Instant::now() + began.elapsed() * CONTROL_REST;
            }
            self.archive_closed().await;
        }
    }

    async fn keep_maintaining(&self) {
        let mut ticks = ticks(SLOW_INTERVAL);
        loop {
            ticks.tick().await;
            self.run_maintenance().await;
        }
    }

    /// Archives the remaining events of the open workspaces that this server leads, in at most `SEGMENTS_PER_TURN`
    /// segments for each workspace. Then archives the control database.
    pub async fn finish(&self) {
        self.archive_open().await;
        self.archive_control().await;
    }

    /// Returns the open workspaces that this server leads and that may have events or definitions to archive. Includes
    /// each workspace that this server has not archived since its start. Clears `is_settled` of every open workspace.
    fn due(&self) -> Vec<OpenWorkspace> {
        let open = self.engine.open_workspaces().into_iter();
        let due = open.filter(|usage| {
            let slot = self.slot(&usage.id);
            let mut reached = slot.reached.lock();
            reached.is_settled = false;
            let is_behind = usage.state.folded.position() > reached.position
                || reached.types_changed != Some(usage.state.types.changed());
            usage.state.leadership.is_own() && is_behind
        });
        due.collect()
    }

    /// Archives the open workspaces that this server leads and whose archives lack events or definitions.
    pub(super) async fn archive_open(&self) {
        join_all(self.due().into_iter().map(|usage| self.archive_one(usage))).await;
        self.measure();
    }

    async fn archive_one(&self, usage: OpenWorkspace) {
        // The semaphore is never closed.
        let Ok(_turn) = self.turns.acquire().await else { return };
        let types_changed = usage.state.types.changed();
        if self.archive_workspace(&usage.id, &LogSource::Open(usage.state)).await.is_ok_and(|is_end| is_end) {
            self.slot(&usage.id).reached.lock().types_changed = Some(types_changed);
        }
    }

    /// Archives the remaining events of workspaces that this server does not have open.
    pub(super) async fn archive_closed(&self) {
        let access = self.engine.access();
        // Workspaces that are being restored are skipped, because nothing else may interfere with a restore.
        let read = async {
            let all = access.workspaces().await?;
            // Reads the running restores after the workspaces, so that no workspace is listed without its restore.
            Ok::<_, Error>((all, access.being_restored().await?))
        };
        let (all, restored) = match read.await {
            Ok(read) => read,
            Err(error) => return tracing::warn!(%error, "could not list the workspaces to archive"),
        };
        let open: HashSet<Arc<str>> = self.engine.open_workspaces().into_iter().map(|usage| usage.id).collect();
        let closed = all.into_iter().filter(|workspace| {
            let is_known = self.slot(&workspace.id).reached.lock().is_settled;
            !open.contains(&workspace.id) && !restored.contains(&workspace.id) && !is_known
        });
        let archived = closed.map(|workspace| async move {
            let (id, Ok(_turn)) = (workspace.id, self.turns.acquire().await) else { return };
            // The workspace may have been removed since the list was read.
            if access.workspace(&id).await.is_err() {
                return;
            }
            let Ok(db) = self.engine.opener().reader(&id).await else { return };
            let archived = self.archive_workspace(&id, &LogSource::Closed(db)).await;
            // Another server may have the workspace open, and may stop before all events of the workspace are archived.
            let is_alone = self.engine.peers().is_none();
            self.slot(&id).reached.lock().is_settled = is_alone && archived.is_ok_and(|is_end| is_end);
        });
        join_all(archived).await;
    }

    async fn archive_control(&self) {
        let now_ms = self.engine.clock().now_ms();
        let control = self.engine.access().control();
        let written = match self.check_owner().await {
            Ok(()) => {
                let is_checked = self.is_control_checked.load(Ordering::Relaxed);
                control::write(&self.archive, control, now_ms, is_checked).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &written {
            metric::BACKUP_FAILURES.add(&[], 1);
            tracing::warn!(%error, cause = ?error, "could not archive the control database");
        }
        self.is_control_checked.store(written.is_ok(), Ordering::Relaxed);
        *self.control_error.lock() = written.err().map(|error| log::reason(&error));
    }

    /// Archives events of a workspace up to the end of its log, in at most `SEGMENTS_PER_TURN` segments. Returns
    /// whether the archive has reached the end of the log.
    async fn archive_workspace(&self, id: &Arc<str>, source: &LogSource) -> Result<bool> {
        let slot = self.slot(id);
        let mut writer = slot.writer.lock().await;
        let outcome = self.advance(id, &mut writer, source, &slot).await;
        if let Err(error) = &outcome {
            metric::BACKUP_FAILURES.add(&[], 1);
            tracing::warn!(%error, cause = ?error, workspace = %id, "could not archive a workspace");
            // The next attempt reads the end of the archive again, since a write may have succeeded without a response.
            *writer = None;
        }
        slot.reached.lock().error = outcome.as_ref().err().map(log::reason);
        outcome
    }

    async fn advance(
        &self,
        id: &Arc<str>,
        writer: &mut Option<ArchiveWriter>,
        source: &LogSource,
        slot: &ArchiveSlot,
    ) -> Result<bool> {
        let now_ms = self.engine.clock().now_ms();
        // A writer whose last success is too long ago is not reused. Since then, other servers may have archived and
        // merged segments. The keys of merged segments become free, and the old writer could write to these keys.
        let is_recent = slot.reached.lock().advanced_at.saturating_add(WRITER_KEPT_MS) > now_ms;
        let writer = match writer {
            Some(writer) if is_recent => writer,
            _ => {
                self.check_owner().await?;
                let access = self.engine.access();
                writer.insert(ArchiveWriter::open(&self.archive.bucket, access, id, source, now_ms).await?)
            }
        };
        for _ in 0..SEGMENTS_PER_TURN {
            let advanced = writer.advance(&self.archive.bucket, source, self.engine.opener().blobs(), now_ms).await?;
            let mut reached = slot.reached.lock();
            (reached.position, reached.epoch) = (writer.last.end.position, writer.epoch);
            (reached.last_recorded_at, reached.advanced_at) = (writer.last.to, now_ms);
            reached.is_settled = false;
            if !advanced {
                return Ok(true);
            }
            metric::BACKUP_SEGMENTS.add(&[], 1);
        }
        Ok(false)
    }

    /// Archives an open workspace until the archive has reached a position. Repeats failed attempts. Fails if the
    /// workspace is closed, or after ten seconds.
    pub async fn archived(&self, workspace_id: &str, position: u64) -> Result<()> {
        let id: Arc<str> = workspace_id.into();
        let archived = async {
            loop {
                let usage = self.engine.open_workspaces().into_iter().find(|usage| usage.id == id);
                let usage = usage.ok_or_else(|| Error::not_found("workspace", workspace_id))?;
                // The first of several waiting appends archives the events of all these appends together.
                let is_archived = || self.slot(&id).reached.lock().position >= position;
                let source = LogSource::Open(usage.state);
                if is_archived() || (self.archive_workspace(&id, &source).await.is_ok() && is_archived()) {
                    return Ok(());
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
        };
        let outcome = tokio::time::timeout(ARCHIVED_WITHIN, archived).await;
        outcome.unwrap_or(Err(Error::Unavailable(store::Error::Unresponsive)))
    }

    /// Returns the archiving progress of every open workspace that this server leads.
    pub fn progress(&self) -> Vec<ArchiveProgress> {
        let led = self.engine.open_workspaces().into_iter().filter(|usage| usage.state.leadership.is_own());
        let progress = led.map(|usage| {
            let ArchivePosition { position, error, .. } = self.reached(&usage.id);
            ArchiveProgress { workspace_id: usage.id, position, head: usage.state.folded.position(), error }
        });
        progress.collect()
    }

    /// Returns the names of the active warnings. `backup_failing`: the last attempt to archive a workspace or the
    /// control database failed. `backup_unverified`: the archive of a workspace does not count as verified.
    pub fn warnings(&self) -> Vec<&'static str> {
        let is_failing = self.control_error.lock().is_some()
            || self.slots.lock().values().any(|slot| slot.reached.lock().error.is_some());
        let is_unverified = !self.unverified.lock().is_empty();
        let warnings = [(is_failing, "backup_failing"), (is_unverified, "backup_unverified")];
        warnings.into_iter().filter_map(|(holds, name)| holds.then_some(name)).collect()
    }

    pub(super) fn reached(&self, id: &Arc<str>) -> ArchivePosition {
        self.slot(id).reached.lock().clone()
    }

    fn slot(&self, id: &Arc<str>) -> Arc<ArchiveSlot> {
        self.slots.lock().entry(id.clone()).or_default().clone()
    }

    /// Returns the ids of the workspaces whose archives this server has written or found complete.
    pub(super) fn archived_ids(&self) -> Vec<Arc<str>> {
        self.slots.lock().iter().filter(|(_, slot)| slot.reached.lock().epoch > 0).map(|(id, _)| id.clone()).collect()
    }

    /// Removes the archiving state of a workspace that was deleted.
    pub(super) fn forget(&self, id: &str) {
        self.slots.lock().remove(id);
    }

    /// Fails if the archive belongs to another installation. An archive without an owner becomes the archive of this
    /// installation. Two installations in one archive would mix the dumps of their control databases.
    pub(super) async fn check_owner(&self) -> Result<()> {
        if self.is_owner.load(Ordering::Relaxed) {
            return Ok(());
        }
        let candidate = self.engine.clock().new_id().to_string();
        let own = self.engine.access().control().installation(&candidate).await?;
        if !self.archive.bucket.create(OWNER, own.clone().into()).await? {
            let owner = self.archive.bucket.read(OWNER).await?.unwrap_or_default();
            if *owner != *own.as_bytes() {
                let message = "the archive belongs to another installation; choose another [backup] url";
                return Err(log::damaged(OWNER, message));
            }
        }
        self.is_owner.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Sets the gauges of the archive's lag.
    fn measure(&self) {
        let now_ms = self.engine.clock().now_ms();
        let (mut events, mut oldest_ms) = (0, 0);
        for usage in self.engine.open_workspaces().into_iter().filter(|usage| usage.state.leadership.is_own()) {
            let reached = self.reached(&usage.id);
            let behind = usage.state.folded.position().saturating_sub(reached.position);
            if behind > 0 {
                events = events.max(behind);
                let next = usage.state.folded.last_events(reached.position, 1).unwrap_or_default();
                let since = next.first().map(|event| event.recorded_at).or(reached.last_recorded_at);
                oldest_ms = since.map_or(oldest_ms, |since| oldest_ms.max(now_ms.saturating_sub(since)));
            }
        }
        metric::BACKUP_LAG_EVENTS.set(&[], events as f64);
        metric::BACKUP_LAG_SECONDS.set(&[], oldest_ms as f64 / 1e3);
    }
}

/// Returns an interval that does not catch up on missed ticks.
fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
