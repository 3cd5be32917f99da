//! Backups: archives the logs of all workspaces to a bucket while the server runs, and restores workspaces from the
//! archive.
//!
//! The archive contains, for each workspace: `<epoch>/epoch.json`, the beginning of the epoch; `<epoch>/log`, the
//! segments of the log; `<epoch>/digest`, hashes of all states by position; `files`, the bytes of files by their hash;
//! `unused` and `missing`, records of bytes that no file uses and of bytes that were deleted before they were archived;
//! `removing`, notes of bytes that are being removed; `verified.json`, the last verification; `removed`, the time at
//! which the workspace was deleted. `control` contains sealed dumps of the control database, and `installation` is the
//! id of the installation. Everything in a workspace follows from its log, so nothing else is archived.
//!
//! * **Writing** (`backups.rs`, `writer.rs`). Every `flush_ms`, the leader of a workspace reads the events after the
//!   end of the archive, from memory if possible. Then the leader reads the definitions: a definition is stored before
//!   the first event that uses it, so this order misses no definition. The leader then copies the bytes of files.
//!   Last, the leader creates the segment under the next number if the key is free. Every 30 seconds, each server does
//!   the same for the workspaces that it does not have open. If two servers create the same segment, one of them
//!   succeeds, and the other server continues after the new segment. Only appends with `Foldwork-Durability: archived`
//!   wait for the archive.
//! * **Segments** (`segment.rs`): a merge keeps the lines and therefore the chain of hashes. A read detects a changed,
//!   cut off or foreign segment, and a segment that is missing before another segment. The error names the segment. If
//!   the last segments are missing, only a verification can detect the loss, with a later digest.
//! * **The end of an archive is read from the bucket** when a server first archives a workspace, after a failed
//!   attempt, and if the last successful attempt was at least 30 minutes ago. If the log has another event or
//!   definition at the end of the archive, the store was reset to an earlier state: a new epoch begins after the last
//!   segment up to which the archive and the log agree.
//! * **The control database** (`control.rs`) is dumped after changes, encrypted with AES-256-GCM and the key in the
//!   environment variable `FOLDWORK_BACKUP_KEY`.
//! * **Restoring** (`restore.rs`): plugins run when the restored workspace is opened. The ids of derived events are
//!   computed from the events that caused them, so no event is derived twice.

mod backups;
mod bucket;
mod control;
mod digest;
mod files;
mod installation;
mod line;
mod log;
mod maintenance_schedule;
mod merge;
mod restore;
mod restores;
mod seal;
mod segment;
mod source;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use backups::{ArchiveProgress, BackupSettings, Backups};
pub use installation::{Archive, ArchivedWorkspace};
pub use log::reason;
pub use restore::{RestoreEnd, RestoreFrom, RestoreOutcome, restore_control, restore_workspace};
pub use restores::{RestoreBeginning, RestoreRecord, RestoreStatus};
pub use seal::SealingKey;
pub use verify::{ArchiveVerification, RestoreProgress, VerificationResult};
