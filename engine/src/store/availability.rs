//! The availability of a remote store: a time limit for each query, and quick failures while the store does not
//! respond.
//!
//! While the connection is lost, the client of the database holds each query without a time limit, and sends the query
//! when the connection is back. A query that has exceeded the time limit of this module may therefore still run later,
//! so the outcome of the query is unknown. The deadlines of transactions (`deadline.rs`) keep a transaction that begins
//! after the time limit from writing.

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
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Whether the connection was lost or a check failed, and no later check has succeeded.
    unresponsive: AtomicBool,
    /// Whether a task checks the store.
    checking: AtomicBool,
}

impl Availability {
    pub fn new(timeout: Duration) -> Availability {
        Availability { timeout, time: Arc::default(), state: Arc::default() }
    }

    pub fn is_unresponsive(&self) -> bool {
        self.state.unresponsive.load(Ordering::Relaxed)
    }

    /// Waits for the result of a query within the time limit. If a query loses the connection, rejects further queries
    /// immediately until a check succeeds. If a query exceeds the limit, rejects further queries only after a check has
    /// failed, because a single slow query does not mean that the store is unresponsive. `checking` returns the check.
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
                self.state.mark_unresponsive();
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

    /// Waits for the result of a check of the store, for at most two seconds and at most the time limit of a query.
    /// Fails immediately while the store is marked as unresponsive. Never marks the store as unresponsive.
    pub async fn check(&self, check: impl Future<Output = Result<()>>) -> Result<()> {
        if self.is_unresponsive() {
            return Err(Error::Unresponsive);
        }
        timeout(CHECK_TIMEOUT.min(self.timeout), check).await.unwrap_or(Err(Error::Unresponsive))
    }

    /// Checks the store until it responds, unless a task already does so. Marks the store as unresponsive if a check
    /// fails.
    fn watch<C, F>(&self, checking: impl FnOnce() -> C)
    where
        C: Fn() -> F + Send + 'static,
        F: Future<Output = Result<()>> + Send,
    {
        if self.state.checking.swap(true, Ordering::SeqCst) {
            return;
        }
        let (check, state) = (checking(), Arc::downgrade(&self.state));
        tokio::spawn(async move {
            while !matches!(timeout(CHECK_TIMEOUT, check()).await, Ok(Ok(()))) {
                // If no `Availability` is left, nothing uses the store any more.
                let Some(state) = state.upgrade() else { return };
                state.mark_unresponsive();
                drop(state);
                sleep(CHECK_INTERVAL).await;
            }
            if let Some(state) = state.upgrade() {
                state.mark_responsive();
            }
        });
    }
}

impl State {
    fn mark_unresponsive(&self) {
        if !self.unresponsive.swap(true, Ordering::SeqCst) {
            tracing::warn!("the store does not respond; requests fail until the store responds");
        }
    }

    /// Marks the store as responsive and ends the checks. If the connection is lost at the same time, either new checks
    /// start and mark the store as unresponsive again, or the next query detects the loss.
    fn mark_responsive(&self) {
        self.checking.store(false, Ordering::SeqCst);
        if self.unresponsive.swap(false, Ordering::SeqCst) {
            tracing::info!("the store responds again");
        }
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
            let (back, failed) = (back.clone(), Arc::new(AtomicBool::new(false)));
            move || {
                move || {
                    let (back, repeated) = (back.clone(), failed.swap(true, Ordering::SeqCst));
                    async move {
                        if !repeated {
                            return Err(Error::Unresponsive);
                        }
                        back.notified().await;
                        Ok(())
                    }
                }
            }
        };
        assert_eq!(availability.within(ready(Ok(1)), check()).await.expect("a result"), 1);
        let late = availability.within(pending::<Result<()>>(), check()).await;
        assert!(matches!(late, Err(Error::Unresponsive)));
        while !availability.is_unresponsive() {
            tokio::task::yield_now().await;
        }
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
    async fn a_slow_query_does_not_make_the_store_unresponsive_if_a_check_succeeds() {
        let availability = Availability::new(SOON);
        let checked = Arc::new(Notify::new());
        let check = || {
            let checked = checked.clone();
            move || {
                checked.notify_one();
                ready(Ok(()))
            }
        };
        for _ in 0..2 {
            let late = availability.within(pending::<Result<()>>(), check).await;
            assert!(matches!(late, Err(Error::Unresponsive)));
            checked.notified().await;
            while availability.state.checking.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            assert!(!availability.is_unresponsive());
        }
    }

    #[tokio::test]
    async fn a_lost_connection_makes_the_store_unresponsive_before_a_check() {
        let availability = Availability::new(SOON);
        let error = || Error::Database(surrealdb::Error::connection("closed".into(), None));
        let lost = availability.within(ready(Err::<(), _>(error())), || || pending()).await;
        assert!(lost.is_err_and(|error| error.is_lost()) && availability.is_unresponsive());
    }

    #[tokio::test]
    async fn a_slow_check_fails_without_marking_the_store_as_unresponsive() {
        let availability = Availability::new(SOON);
        assert!(matches!(availability.check(pending()).await, Err(Error::Unresponsive)));
        assert!(!availability.is_unresponsive());
    }

    #[tokio::test]
    async fn a_conflict_does_not_make_the_store_unresponsive() {
        let availability = Availability::new(SOON);
        let conflict = availability.within(ready(Err::<(), _>(Error::Conflict)), || || ready(Ok(()))).await;
        assert!(matches!(conflict, Err(Error::Conflict)) && !availability.is_unresponsive());
    }
}
