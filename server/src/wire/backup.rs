//! The JSON of backups and restores in responses.

use foldwork_engine::archive::{ArchiveProgress, ArchiveVerification, ArchivedWorkspace, RestoreRecord};
use foldwork_engine::model::date::format_date;
use poem_openapi::Object;
use serde::Serialize;

use super::closed_sets::{OneOf, RestoreStatuses, VerificationOutcomes};
use super::idempotency::to_json_bytes;
use super::page::listed;
use super::shown::shown;

/// A page of the backups of workspaces.
#[derive(Object, Serialize)]
pub struct BackupPage {
    /// The URL of the archive, without credentials.
    pub url: String,
    /// The time of the newest dump of the control database in the archive, or null if the archive contains no dump.
    pub control_at: Option<String>,
    /// The backups of workspaces, in the order of the workspaces' ids.
    pub workspaces: Vec<BackupBody>,
    pub next_cursor: Option<String>,
}

shown! {
    /// The backup of a workspace. For a backup that cannot be read, `epoch`, `position`, `segments` and `bytes` are 0,
    /// and `from`, `to` and `verified` are null.
    #[oai(rename = "Backup")]
    pub struct BackupBody from (described, progress): (&ArchivedWorkspace, Option<&ArchiveProgress>);

    workspace_id: String = described.workspace_id.to_string(),
    /// The number of the current epoch. A new epoch begins if the store was reset to an earlier state, because the log
    /// in the store then differs from the archived log.
    epoch: u64 = described.epoch,
    /// The position of the last archived event.
    position: u64 = described.position,
    /// The position of the last event in the log. Null unless this server has the workspace open and leads the
    /// workspace.
    head: Option<u64> = progress.map(|progress| progress.head),
    /// The number of events that this server has yet to archive. Null if `head` is null.
    lag: Option<u64> = progress.map(|progress| progress.head.saturating_sub(progress.position)),
    /// The time at which the first archived event was appended, or null if the first segment contains no event.
    from: Option<String> = described.from.map(format_date),
    /// The time at which the last archived event was appended, or null if the archive contains no event.
    to: Option<String> = described.to.map(format_date),
    /// The number of archived segments of the log.
    segments: u64 = described.segments,
    /// The size of the archived segments in bytes.
    bytes: u64 = described.bytes,
    /// The reason why the backup cannot be read. If the backup can be read and `head` is not null, the reason why this
    /// server's last attempt to archive the workspace failed. Null in all other cases.
    error: Option<String> = progress.and_then(|progress| progress.error.clone()),
    /// The last verification of the archive, or null if the archive has not been verified.
    verified: Option<VerificationBody> = described.verified.as_ref().map(VerificationBody::from),
}

shown! {
    /// A verification of an archive. The server reads every segment. The server then compares the states in the archive
    /// with a recorded digest of the states in the store. This comparison is left out if a segment is damaged, if there
    /// is no suitable digest, or if the states are too large.
    #[oai(rename = "Verification")]
    struct VerificationBody from verified: &ArchiveVerification;

    /// The position up to which the archive was read.
    position: u64 = verified.position,
    at: String = format_date(verified.at),
    outcome: OneOf<VerificationOutcomes> = verified.outcome.name().into(),
    /// The number of events that were read from the archive.
    events: u64 = verified.events,
    /// Descriptions of the problems of the archive. If a segment or a file has a problem, the description contains the
    /// name of the segment or file.
    problems: Vec<String> = verified.problems.clone(),
}

shown! {
    /// A restore of a workspace from its archive into a new workspace.
    #[derive(Clone)]
    #[oai(rename = "Restore")]
    pub struct RestoreBody from restore: &RestoreRecord;

    id: String = restore.id.to_string(),
    /// The id of the archived workspace.
    source_id: String = restore.source_id.to_string(),
    /// The id of the new workspace. The workspace appears when the restore is complete.
    workspace_id: String = restore.workspace_id.to_string(),
    /// The name of the new workspace.
    name: String = restore.name.clone(),
    status: OneOf<RestoreStatuses> = restore.status.name().into(),
    /// The position up to which events have been restored. While the restore runs, only the server that runs the
    /// restore knows this position, and other servers return 0. Also 0 after a failure.
    position: u64 = restore.position,
    /// The position up to which the archive has been read so far, and `position` after success. Null after a failure.
    /// While the restore runs, other servers than the server that runs the restore return null.
    end: Option<u64> = restore.end,
    /// The reason why the restore failed, or a note about files that could not be restored. Null for a restore without
    /// a failure and without a note.
    message: Option<String> = restore.message.clone(),
    started_at: String = format_date(restore.started_at),
    ended_at: Option<String> = restore.ended_at.map(format_date),
    /// A key for the new workspace, with the scopes of the caller's key. The key works when the restore is complete.
    /// Present only in the response to the request that begins the restore, and only if the caller's key is valid in a
    /// single workspace.
    @read_only key: Option<String> = None,
}

impl RestoreBody {
    /// Creates the body of a restore that has begun, with a key for the new workspace.
    pub fn with_key(restore: &RestoreRecord, key: Option<String>) -> RestoreBody {
        RestoreBody { key, ..RestoreBody::from(restore) }
    }

    /// Serializes the restore without the key. The server stores the result for repeated requests, and never stores the
    /// secret of a key.
    pub fn without_key(&self) -> Vec<u8> {
        to_json_bytes(&RestoreBody { key: None, ..self.clone() })
    }
}

listed!(RestoreBody as "RestorePage": "The newest restores, at most 100.");

impl BackupBody {
    /// Creates the body of a backup that cannot be read.
    pub fn unreadable(workspace_id: &str, progress: Option<&ArchiveProgress>, error: String) -> BackupBody {
        let described = ArchivedWorkspace {
            workspace_id: workspace_id.into(),
            epoch: 0,
            position: 0,
            from: None,
            to: None,
            segments: 0,
            bytes: 0,
            verified: None,
        };
        BackupBody { error: Some(error), ..BackupBody::from((&described, progress)) }
    }
}
