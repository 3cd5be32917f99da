//! The availability of a remote store: a time limit for each query, and quick failures while the store does not
//! respond.
//!
//! The client of the database keeps a query until the connection is back, without a time limit. A query that has
//! exceeded the time limit of this module may therefore still run later, so the outcome of the query is unknown. The
//! deadlines of transactions (`deadline.rs`) keep a transaction from writing after the time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::deadline::StoreTime;
use super::error::{Error, Result};

/// The time limit of a query, unless a setting changes it.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time between the deadline of a transaction and the commit or failure of the transaction.
pub const COMMIT_MARGIN: Duration = Duration::from_secs(2);
/// The time limit of a check of the store.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// The time between two checks of a store that does not respond.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The availability of a remote store. Clones share the state.
#[derive(Clone)]
pub struct Availability {
    pub timeout: Duration,
    /// The time of the store, for the deadlines of transactions.
    pub time: Arc<StoreTime>,
    /// Whether a query got no response, and no later check has succeeded.
    unresponsive: Arc<AtomicBool>,
}

impl Availability {
    pub fn new(timeout: Duration) -> Availability {
        Availability { timeout, time: Arc::default(), unresponsive: Arc::default() }
    }

    pub fn is_unresponsive(&self) -> bool {
        self.unresponsive.load(Ordering::Relaxed)
    }

    /// Waits for the result of a query within the time limit. If a query exceeds the limit or loses the connection,
    /// rejects further queries immediately until a check succeeds. `checking` returns the check.
    pub async fn within<T, C, F>(
        &self,
        query: impl Future<Output = Result<T>>,
        checking: impl FnOnce() -> C,
    ) -> Result<T>
    where
        C: Fn() -> F + Send + 'static,
        F: Future<Output = Result<()>> + Send,
    {
        if self.is_unresponsive() {
            return Err(Error::Unresponsive);
        }
        match timeout(self.timeout, query).await {
            Ok(Err(error)) if error.is_lost() => {
                self.watch(checking);
                Err(error)
            }
            Ok(result) => result,
            Err(_) => {
                self.watch(checking);
                Err(Error::Unresponsive)
            }
        }
    }

    /// Waits for the result of a check of the store. Unlike [`Availability::within`], has a shorter time limit and
    /// never marks the store as unresponsive.
    pub async fn check(&self, check: impl Future<Output = Result<()>>) -> Result<()> {
        if self.is_unresponsive() {
            return Err(Error::Unresponsive);
        }
        timeout(CHECK_TIMEOUT.min(self.timeout), check).await.unwrap_or(Err(Error::Unresponsive))
    }

    /// Marks the store as unresponsive, and repeats the check until the store responds again.
    fn watch<C, F>(&self, checking: impl FnOnce() -> C)
    where
        C: Fn() -> F + Send + 'static,
        F: Future<Output = Result<()>> + Send,
    {
        if self.unresponsive.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::warn!("the store does not respond; requests fail until it does");
        let (check, unresponsive) = (checking(), Arc::downgrade(&self.unresponsive));
        tokio::spawn(async move {
            while !matches!(timeout(CHECK_TIMEOUT, check()).await, Ok(Ok(()))) {
                sleep(CHECK_INTERVAL).await;
                if unresponsive.strong_count() == 0 {
                    return;
                }
            }
            tracing::info!("the store responds again");
            // If no `Availability` is left, nothing uses the store any more.
            if let Some(unresponsive) = unresponsive.upgrade() {
                unresponsive.store(false, Ordering::Relaxed);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::Notify;

    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn queries_fail_immediately_while_the_store_does_not_respond() {
        let availability = Availability::new(SOON);
        let back = Arc::new(Notify::new());
        let check = || {
            let back = back.clone();
            move || {
                move || {
                    let back = back.clone();
                    async move {
                        back.notified().await;
                        Ok(())
                    }
                }
            }
        };
        assert_eq!(availability.within(ready(Ok(1)), check()).await.expect("a result"), 1);
        let late = availability.within(pending::<Result<()>>(), check()).await;
        assert!(matches!(late, Err(Error::Unresponsive)) && availability.is_unresponsive());
        // The query is not run, so it fails although its result is ready.
        assert!(matches!(availability.within(ready(Ok(1)), check()).await, Err(Error::Unresponsive)));
        assert!(matches!(availability.check(ready(Ok(()))).await, Err(Error::Unresponsive)));
        back.notify_one();
        while availability.is_unresponsive() {
            tokio::task::yield_now().await;
        }
        assert_eq!(availability.within(ready(Ok(2)), check()).await.expect("a result"), 2);
    }

    #[tokio::test]
    async fn a_slow_check_fails_without_marking_the_store_as_unresponsive() {
        let availability = Availability::new(SOON);
        assert!(matches!(availability.check(pending()).await, Err(Error::Unresponsive)));
        assert!(!availability.is_unresponsive());
    }

    #[tokio::test]
    async fn failures_other_than_timeouts_do_not_make_the_store_unresponsive() {
        let availability = Availability::new(SOON);
        let conflict = availability.within(ready(Err::<(), _>(Error::Conflict)), || || ready(Ok(()))).await;
        assert!(matches!(conflict, Err(Error::Conflict)) && !availability.is_unresponsive());
    }
}
