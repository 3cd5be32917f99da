//! The errors of an import: the lines that the workspace rejected, and the reasons.

use anyhow::anyhow;
use foldwork_engine::Error;

/// The numbers of the lines that caused an error, as text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LineNumbers(pub String);

/// Returns the index of the event that caused an error, if known. `events` is the number of events in the batch.
pub fn index_of(error: &Error, events: usize) -> Option<usize> {
    if events == 1 {
        return Some(0);
    }
    match error {
        Error::Invalid { index, .. } | Error::Conflict { index, .. } => *index,
        _ => None,
    }
}

/// Converts an error of the engine. Keeps the cause of an error whose message does not include the cause.
pub fn shown(error: Error) -> anyhow::Error {
    match error {
        Error::Unavailable(_) | Error::Internal(_) => anyhow::Error::new(error),
        error => anyhow!("{error}"),
    }
}
