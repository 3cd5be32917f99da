//! Runs long computations without blocking the other tasks of a thread that serves sockets.

use foldwork_engine::offload;
use tokio::runtime::Handle;
use tracing::Instrument;

/// The maximum size in bytes of JSON that the serving thread processes directly. Processing this many bytes takes about
/// a millisecond.
const INLINE_BYTES: usize = 64 << 10;

/// Runs `work`, which processes about `bytes` bytes. If `bytes` is large, another thread first takes over the other
/// tasks of this thread.
pub fn offload<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > INLINE_BYTES { offload::in_place(work) } else { work() }
}

/// Runs a task that processes about `bytes` bytes. If `bytes` is large, the task runs on a thread for blocking work,
/// and completes even if the returned future is dropped.
pub async fn offload_task<T: Send + 'static>(bytes: usize, task: impl Future<Output = T> + Send + 'static) -> T {
    if bytes <= INLINE_BYTES {
        return task.await;
    }
    let (runtime, task) = (Handle::current(), task.in_current_span());
    match tokio::task::spawn_blocking(move || runtime.block_on(task)).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down and will drop this future.
        Err(_) => std::future::pending().await,
    }
}
