//! Backups: archives the logs of all workspaces to a bucket while the server runs, and restores workspaces from the
//! archive.
//!
//! The archive has, for each workspace: `<epoch>/log`, the segments of the log; `<epoch>/digest`, hashes of all states
//! by position; `files`, the bytes of files by their hash; `verified.json`, the last verification. `control` has sealed
//! dumps of the control database. Everything in a workspace follows from its log, so nothing else is archived.

mod backups;
mod bucket;
mod control;
mod digest;
mod files;
mod installation;
mod line;
mod log;
mod maintenance;
mod merge;
mod progress;
mod restore;
mod restores;
mod seal;
mod segment;
mod source;
mod tending;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use backups::{ArchiveProgress, BackupSettings, Backups};
pub use installation::{Archive, ArchivedWorkspace};
pub use log::reason;
pub use progress::RestoreProgress;
pub use restore::{RestoreEnd, RestoreFrom, RestoreOutcome, restore_control, restore_workspace};
pub use restores::{RestoreRecord, RestoreStatus};
pub use seal::SealingKey;
pub use verify::{ArchiveVerification, VerificationResult};
