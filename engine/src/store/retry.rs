//! Distinguishes conflicts with other writers from failures, and defines the waiting times between retries.

use std::collections::HashMap;

use super::error::Error;

/// The error text that statements of this module throw if the head of the log has moved since the writer read it.
pub const STALE: &str = "stale head";
/// The error text that statements throw if a file refers to an upload that was canceled.
pub const STALE_UPLOAD: &str = "stale upload";

/// Returns the waiting times between attempts, in milliseconds. The length of the list limits the number of attempts.
pub fn waits() -> impl Iterator<Item = u64> {
    [1, 2, 5, 10, 20, 50, 100, 200].into_iter()
}

/// Texts that an error contains if a disk fails: the message of the storage engine, and the code of an error of the
/// operating system.
const DISK_ERRORS: [&str; 2] = ["Writes are refused until the disk takes them again", "(os error "];

/// Classifies an error by its text, because the database reports write conflicts and disk failures only as text.
pub fn classify(error: surrealdb::Error) -> Error {
    let text = error.to_string();
    if !error.is_connection() && DISK_ERRORS.iter().any(|sign| text.contains(sign)) {
        return Error::Disk(error);
    }
    let lost =
        ["can be retried", "conflict", "already exists", STALE, STALE_UPLOAD].iter().any(|sign| text.contains(sign));
    if lost || error.is_already_exists() { Error::Conflict } else { Error::Database(error) }
}

/// Returns the error that caused a transaction to fail: the first error that is not a consequence of another. The other
/// statements report only that the transaction failed, or fail because the result of an earlier statement is missing.
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
