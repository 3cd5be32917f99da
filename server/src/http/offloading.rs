//! Long computations stand aside: the threads that serve sockets go on while one of them works.

use foldwork_engine::aside;

/// Bytes of JSON that are read or written where the request is served; about a millisecond's work.
const AT_ONCE: usize = 64 << 10;

/// Does work on so many bytes. Where that is long, what else waits for this thread is moved to another one before.
pub fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > AT_ONCE { aside::aside(work) } else { work() }
}
