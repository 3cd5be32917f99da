//! Runs long computations without blocking the other tasks of a thread that serves sockets.

use foldwork_engine::offload;

/// The size of JSON in bytes that is processed directly on the serving thread, which takes about a millisecond.
const INLINE_BYTES: usize = 64 << 10;

/// Runs `work` on about `bytes` bytes. If they are many, the other tasks of this thread are moved to another thread
/// first.
pub fn offload<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > INLINE_BYTES { offload::offload(work) } else { work() }
}
