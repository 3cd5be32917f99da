//! Distinguishes conflicts with other writers from failures, and defines the delays between retries.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder, Retryable};

use super::deadline::LATE;
use super::error::Error;

/// The error text that statements of the store throw if the head of the log or another guarded value has changed since
/// the writer read this value.
pub const STALE: &str = "stale head";
/// The error text that statements throw if an event makes a file refer to an upload that is not in progress.
pub const STALE_UPLOAD: &str = "stale upload";

/// The delays between attempts that conflict with other writers. The delays grow from 1 ms to 128 ms. A random time is
/// added to each delay, so that the delays of the writers differ. The added time is at most as long as the delay.
const DELAYS: ExponentialBuilder =
    ExponentialBuilder::new().with_min_delay(Duration::from_millis(1)).with_max_times(8).with_jitter();

/// The delays between attempts to append a batch. Appends have more attempts than other writes: if several servers
/// append to one workspace at the same time, only one server succeeds, and the attempts of the other servers conflict.
/// The delays are shorter than for other writes, because long delays favor the server that committed last.
const APPEND_DELAYS: ExponentialBuilder = DELAYS.with_max_delay(Duration::from_millis(32)).with_max_times(64);
/// The time limit for all attempts to append a batch. Attempts that are among the first [`MIN_ATTEMPTS`] may exceed
/// this limit.
const APPEND_LIMIT: Duration = Duration::from_secs(5);
/// The number of attempts that a batch has even if the attempts take longer than [`APPEND_LIMIT`].
const MIN_ATTEMPTS: usize = 8;

/// Returns the delays between attempts to append a batch. The iterator ends when no attempt is left.
pub fn append_delays() -> impl Iterator<Item = Duration> {
    let began = Instant::now();
    let delays = APPEND_DELAYS.build().enumerate();
    delays.take_while(move |(made, _)| *made < MIN_ATTEMPTS || began.elapsed() < APPEND_LIMIT).map(|(_, delay)| delay)
}

/// Returns the delays between the attempts at a write that conflicts with other writers. The number of delays limits
/// the number of attempts.
pub fn delays() -> impl Iterator<Item = Duration> {
    DELAYS.build()
}

/// An error that may be a conflict with another writer.
pub trait MayConflict {
    /// Returns whether a concurrent write caused the error, so that another attempt may succeed.
    fn is_conflict(&self) -> bool;
}

impl MayConflict for Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict)
    }
}

/// Repeats an attempt, after growing delays, as long as the attempt fails because of a conflict with another writer.
/// Returns the first result that is not a conflict. If every attempt ends in a conflict, returns the conflict of the
/// last attempt.
pub async fn after_conflicts<T, E, F>(attempt: impl FnMut() -> F) -> Result<T, E>
where
    E: MayConflict,
    F: Future<Output = Result<T, E>>,
{
    attempt.retry(DELAYS).when(E::is_conflict).await
}

/// The texts in errors of a failed disk: the message of the storage engine, and the error code of the operating system.
const DISK_ERRORS: [&str; 2] = ["Writes are refused until the disk takes them again", "(os error "];

/// Classifies an error by its text, because the database reports write conflicts and disk failures only as text.
pub fn classify(error: surrealdb::Error) -> Error {
    let text = error.to_string();
    if !error.is_connection() && DISK_ERRORS.iter().any(|sign| text.contains(sign)) {
        return Error::Disk(error);
    }
    let lost = ["can be retried", "conflict", "already exists", STALE, STALE_UPLOAD, LATE]
        .iter()
        .any(|sign| text.contains(sign));
    if lost || error.is_already_exists() { Error::Conflict } else { Error::Database(error) }
}

/// Returns the error that caused a transaction to fail: a conflict if there is one, otherwise the first error that is
/// not a consequence of another error. `errors` also contains consequences of the cause: some statements report only
/// that the transaction failed, and some fail because the result of an earlier statement is missing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_attempt_is_repeated_only_after_conflicts() {
        let mut results = vec![Ok(1), Err(Error::Closing), Err(Error::Conflict), Err(Error::Conflict)];
        let mut attempt = || std::future::ready(results.pop().unwrap_or(Ok(2)));
        assert!(matches!(after_conflicts(&mut attempt).await, Err(Error::Closing)));
        assert_eq!(after_conflicts(&mut attempt).await.expect("the next result"), 1);
    }
}
