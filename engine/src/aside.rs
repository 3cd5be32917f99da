//! Work that stands aside: the threads that serve go on while one of them computes.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does work after what else waits for this thread was moved to another one.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    let has_others = || Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others() { tokio::task::block_in_place(work) } else { work() }
}
