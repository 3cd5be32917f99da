//! Runs computations whose duration depends on client input on threads that serve no requests.

use std::time::Duration;

use crate::error::{Error, Result};

/// The time limit for a computation. Most computations end much earlier, because they have lower limits themselves.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a computation on a thread for blocking work.
pub async fn offload<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let running = tokio::task::spawn_blocking(work);
    match tokio::time::timeout(TIMEOUT, running).await {
        Ok(done) => done.map_err(Error::internal)?,
        Err(_) => Err(Error::invalid(format!("checking the request took longer than {} s", TIMEOUT.as_secs()))),
    }
}
