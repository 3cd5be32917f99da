//! Runs long computations without blocking the other tasks of a thread that serves sockets.

use foldwork_engine::offload;

/// The maximum size in bytes of JSON that the serving thread processes directly. Processing this many bytes takes about
/// a millisecond.
const INLINE_BYTES: usize = 64 << 10;

/// Runs `work`, which processes about `bytes` bytes. If `bytes` is large, another thread first takes over the other
/// tasks of this thread.
pub fn offload<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > INLINE_BYTES { offload::offload(work) } else { work() }
}
