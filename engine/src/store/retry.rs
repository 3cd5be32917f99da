//! Distinguishes conflicts with other writers from failures, and defines how long to wait between retries.

use std::collections::HashMap;

use super::error::Error;

/// Thrown by the store's own statements if the head of the log has moved since the writer read it.
pub const STALE: &str = "stale head";
/// Thrown if a file refers to an upload that was canceled.
pub const STALE_UPLOAD: &str = "stale upload";

/// Returns the waits between attempts, in milliseconds. Their number limits the number of attempts.
pub fn waits() -> impl Iterator<Item = u64> {
    [1, 2, 5, 10, 20, 50, 100, 200].into_iter()
}

/// Parts of error texts: of the storage engine if its disk does not accept writes, and of the system if a disk fails.
const DISK_ERRORS: [&str; 2] = ["Writes are refused until the disk takes them again", "(os error "];

/// Classifies an error by its text. The database reports lost conflicts and disk failures in no other way.
pub fn classify(error: surrealdb::Error) -> Error {
    let text = error.to_string();
    if !error.is_connection() && DISK_ERRORS.iter().any(|sign| text.contains(sign)) {
        return Error::Disk(error);
    }
    let lost =
        ["can be retried", "conflict", "already exists", STALE, STALE_UPLOAD].iter().any(|sign| text.contains(sign));
    if lost || error.is_already_exists() { Error::Conflict } else { Error::Database(error) }
}

/// Returns the cause of a failed transaction: the first error that is not just a consequence. Other statements only
/// report that the transaction failed, and later ones may fail because the result of the failed statement is missing.
pub fn classify_all(errors: HashMap<usize, surrealdb::Error>) -> Error {
    let mut errors: Vec<(usize, surrealdb::Error)> = errors.into_iter().collect();
    errors.sort_by_key(|(statement, _)| *statement);
    let (mut cause, mut echo) = (None, None);
    for (_, error) in errors {
        match classify(error) {
            Error::Conflict => return Error::Conflict,
            other if other.to_string().contains("not executed due to") => echo = echo.or(Some(other)),
            other => cause = cause.or(Some(other)),
        }
    }
    cause.or(echo).unwrap_or(Error::Conflict)
}
