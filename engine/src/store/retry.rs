//! Tells conflicts with other writers from failures, and how long to wait before trying again.

use std::collections::HashMap;

use super::error::Error;

/// Thrown by our own statements when the log's head is not where the writer thought.
pub const STALE: &str = "stale head";
/// Thrown where a file is to name an upload that was given up.
pub const STALE_UPLOAD: &str = "stale upload";

/// Waits between tries, in milliseconds; the number of them bounds the tries.
pub fn waits() -> impl Iterator<Item = u64> {
    [1, 2, 5, 10, 20, 50, 100, 200].into_iter()
}

/// What the storage engine says of writes that its disk does not take, and the system of a disk that fails.
const DISK: [&str; 2] = ["Writes are refused until the disk takes them again", "(os error "];

/// The database says in its text only that a transaction lost against another, or that the disk failed.
pub fn classify(error: surrealdb::Error) -> Error {
    let text = error.to_string();
    if !error.is_connection() && DISK.iter().any(|sign| text.contains(sign)) {
        return Error::Disk(error);
    }
    let lost =
        ["can be retried", "conflict", "already exists", STALE, STALE_UPLOAD].iter().any(|sign| text.contains(sign));
    if lost || error.is_already_exists() { Error::Conflict } else { Error::Database(error) }
}

/// The cause among the errors of a transaction: the first that is one of its own, since other statements only tell that
/// the transaction failed, and those after it may fail for want of what it should have given.
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
