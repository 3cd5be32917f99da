//! Runs long computations without blocking the other tasks of a serving thread.

use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::error::{Error, Result};

/// The time limit for a computation on a thread for blocking work. Most computations have a lower limit of their own
/// and end much earlier.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs `work` on this thread, after moving the other tasks of this thread to another thread. On a single-threaded
/// runtime, the other tasks wait.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let has_others = || Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others() { tokio::task::block_in_place(work) } else { work() }
}

/// Runs a computation whose duration depends on client input. The computation runs on a thread for blocking work. Fails
/// if the computation exceeds the time limit. The computation then continues on its thread, without a result.
pub async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let running = tokio::task::spawn_blocking(work);
    match tokio::time::timeout(TIMEOUT, running).await {
        Ok(done) => done.map_err(Error::internal)?,
        Err(_) => Err(Error::invalid(format!("checking the request took longer than {} s", TIMEOUT.as_secs()))),
    }
}
