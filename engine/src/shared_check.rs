//! Lets concurrent reads share one query that checks the store for changes.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::error::Result;

/// The checks for changes in one part of the store, such as the log.
///
/// A read can share a check that began after the read began. An earlier check could miss a change that was committed
/// before the read began.
#[derive(Default)]
pub struct SharedCheck {
    /// The number of checks that have begun.
    begun: AtomicU64,
    /// The number of the last check that succeeded, counted from 1.
    succeeded: Mutex<u64>,
}

impl SharedCheck {
    /// Waits until no other check is running, and then runs a check. Runs no check if another check that began after
    /// this call has succeeded meanwhile.
    pub async fn share<F: Future<Output = Result<()>>>(&self, check: impl FnOnce() -> F) -> Result<()> {
        let begun = self.begun.load(Ordering::SeqCst);
        let mut succeeded = self.succeeded.lock().await;
        if *succeeded > begun {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        check().await?;
        *succeeded = number;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::error::Error;

    #[tokio::test]
    async fn waiting_reads_share_the_next_check() {
        let (shared, checks, permits) = (SharedCheck::default(), Cell::new(0), Semaphore::new(0));
        let check = || async {
            checks.set(checks.get() + 1);
            permits.acquire().await.expect("a permit").forget();
            Ok(())
        };
        let reads = join_all((0..50).map(|_| shared.share(check)));
        let go = async {
            tokio::task::yield_now().await;
            // The first check has begun, so a read that begins now needs the second check.
            let late = shared.share(check);
            permits.add_permits(10);
            late.await
        };
        let (read, late) = tokio::join!(reads, go);
        assert!(read.iter().all(Result::is_ok) && late.is_ok());
        assert_eq!(checks.get(), 2);
    }

    #[tokio::test]
    async fn a_failed_check_is_not_shared() {
        let shared = SharedCheck::default();
        let failed = || async { Err(Error::invalid("no")) };
        let (first, second) = tokio::join!(shared.share(failed), shared.share(|| async { Ok(()) }));
        assert!(first.is_err() && second.is_ok());
    }
}
