//! The progress of a restore or a verification.

use std::sync::Arc;

/// The progress of a restore or a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreProgress {
    pub workspace_id: Arc<str>,
    /// The position that was reached.
    pub position: u64,
    /// The last position that was read from the archive so far.
    pub end: u64,
}
