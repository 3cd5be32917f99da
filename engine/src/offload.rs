//! Runs long computations without blocking the other tasks of a serving thread.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` on this thread, after moving the other tasks of this thread to another thread. On a single-threaded
/// runtime, the other tasks wait.
pub fn offload<T>(work: impl FnOnce() -> T) -> T {
    let has_others = || Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others() { tokio::task::block_in_place(work) } else { work() }
}
