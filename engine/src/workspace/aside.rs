//! Computations that stand aside: what a client can make long is no work for the threads that serve.

use std::time::Duration;

use crate::error::{Error, Result};

/// How long the result of a computation is waited for. Its own bounds end it much earlier.
const WITHIN: Duration = Duration::from_secs(10);

/// Runs a computation on a thread for blocking work.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let running = tokio::task::spawn_blocking(work);
    match tokio::time::timeout(WITHIN, running).await {
        Ok(done) => done.map_err(Error::internal)?,
        Err(_) => Err(Error::invalid(format!("the request takes longer than {} s to check", WITHIN.as_secs()))),
    }
}
