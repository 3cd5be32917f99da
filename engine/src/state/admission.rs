//! Admission of queries: limits the number of concurrent queries per caller and per workspace, and the memory that
//! these queries share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Result};

/// The maximum number of queries that wait in one workspace. Further queries are rejected immediately, except for
/// queries of callers that have no waiting query.
const MAX_WAITING: usize = 256;
/// The maximum number of waiting queries of one caller. Further queries of the caller are rejected immediately.
const MAX_CALLER_WAITING: usize = 64;

/// The limits on concurrent queries, and on the memory that these queries share, in bytes. In each field except
/// `wait_ms`, 0 means no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLimits {
    pub workspace_queries: usize,
    pub key_queries: usize,
    pub workspace_bytes: usize,
    pub key_bytes: usize,
    /// The longest time that a query waits for other queries to end, in milliseconds. After this time, the query is
    /// rejected.
    pub wait_ms: u64,
}

impl Default for QueryLimits {
    fn default() -> QueryLimits {
        QueryLimits {
            workspace_queries: 8,
            key_queries: 4,
            workspace_bytes: 256 << 20,
            key_bytes: 128 << 20,
            wait_ms: 2_000,
        }
    }
}

/// The shared capacity of the queries of a workspace, or of the queries of one caller in a workspace.
struct MemoryShare {
    places: Arc<Semaphore>,
    bytes_left: AtomicUsize,
    /// The number of queries that wait for a place.
    waiting: AtomicUsize,
}

impl MemoryShare {
    fn new(queries: usize, bytes: usize) -> MemoryShare {
        let (queries, bytes) =
            (if queries == 0 { usize::MAX } else { queries }, if bytes == 0 { usize::MAX } else { bytes });
        MemoryShare {
            places: Arc::new(Semaphore::new(queries.min(Semaphore::MAX_PERMITS))),
            bytes_left: AtomicUsize::new(bytes),
            waiting: AtomicUsize::new(0),
        }
    }

    fn take(&self, bytes: usize) -> bool {
        let taken = |available: usize| available.checked_sub(bytes);
        self.bytes_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.bytes_left.fetch_add(bytes, Ordering::AcqRel);
    }
}

/// The admission of the queries of one workspace.
pub struct Admission {
    limits: QueryLimits,
    workspace: Arc<MemoryShare>,
    /// The memory share of each caller that has running or waiting queries, by the caller's id.
    callers: Mutex<HashMap<Arc<str>, Weak<MemoryShare>>>,
}

impl Admission {
    pub fn new(limits: QueryLimits) -> Admission {
        let workspace = Arc::new(MemoryShare::new(limits.workspace_queries, limits.workspace_bytes));
        Admission { limits, workspace, callers: Mutex::default() }
    }

    /// Waits until a query of this caller may run. Rejects the query if too many queries wait already, or if the wait
    /// takes longer than [`QueryLimits::wait_ms`].
    pub async fn admit(&self, caller: &Arc<str>) -> Result<QueryPermit> {
        let (workspace, key) = (self.workspace.clone(), self.share_of(caller));
        let waiting = WaitGuard::begin(&workspace, &key)?;
        // Acquires the caller's permit before the workspace's permit. A query that waits for other queries of its
        // caller then holds no permit of the workspace, and each caller has at most as many queries in the workspace's
        // queue as it may run. The queue therefore serves callers in turn, however many queries one caller sends.
        let places = async {
            let of_key = key.places.clone().acquire_owned().await.map_err(Error::internal)?;
            let of_workspace = workspace.places.clone().acquire_owned().await.map_err(Error::internal)?;
            Ok::<_, Error>([of_key, of_workspace])
        };
        let waited = tokio::time::timeout(Duration::from_millis(self.limits.wait_ms), places).await;
        let places = waited.map_err(|_| Error::TooManyQueries(self.busy()))??;
        drop(waiting);
        Ok(QueryPermit { _places: places, workspace, key, granted: AtomicUsize::new(0) })
    }

    /// Returns the message for a query that was not admitted in time.
    fn busy(&self) -> String {
        let QueryLimits { workspace_queries, key_queries, wait_ms, .. } = &self.limits;
        format!(
            "the query waited {wait_ms} ms for other queries to end; the limits on concurrent queries are \
             {workspace_queries} per workspace (`pipeline.workspace_queries`) and {key_queries} per key or user, where \
             0 means no limit"
        )
    }

    fn share_of(&self, caller: &Arc<str>) -> Arc<MemoryShare> {
        let mut callers = self.callers.lock();
        if let Some(share) = callers.get(caller).and_then(Weak::upgrade) {
            return share;
        }
        callers.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(MemoryShare::new(self.limits.key_queries, self.limits.key_bytes));
        callers.insert(caller.clone(), Arc::downgrade(&share));
        share
    }
}

/// A waiting query. The query counts as waiting in its workspace and for its caller until this value is dropped.
struct WaitGuard<'a>([&'a AtomicUsize; 2]);

impl WaitGuard<'_> {
    fn begin<'a>(workspace: &'a MemoryShare, key: &'a MemoryShare) -> Result<WaitGuard<'a>> {
        let guard = WaitGuard([&workspace.waiting, &key.waiting]);
        let [of_workspace, of_key] = guard.0.map(|waiting| waiting.fetch_add(1, Ordering::AcqRel));
        if of_key >= MAX_CALLER_WAITING {
            return Err(Error::TooManyQueries(format!(
                "the caller has reached the limit of {MAX_CALLER_WAITING} waiting queries"
            )));
        }
        if of_workspace >= MAX_WAITING && of_key > 0 {
            return Err(Error::TooManyQueries(format!(
                "the workspace has reached its limit of {MAX_WAITING} waiting queries"
            )));
        }
        Ok(guard)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        for waiting in self.0 {
            waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The permit of a query to run, and the query's part of the shared memory. Dropping this value releases the permit and
/// the memory.
pub struct QueryPermit {
    _places: [OwnedSemaphorePermit; 2],
    workspace: Arc<MemoryShare>,
    key: Arc<MemoryShare>,
    granted: AtomicUsize,
}

impl QueryPermit {
    /// Reserves more of the shared memory for the query. Returns `false` if too little memory is left.
    pub fn grant(&self, bytes: usize) -> bool {
        if !self.key.take(bytes) {
            return false;
        }
        if !self.workspace.take(bytes) {
            self.key.give_back(bytes);
            return false;
        }
        self.granted.fetch_add(bytes, Ordering::AcqRel);
        true
    }

    /// Returns the error for a query that could not reserve more memory.
    pub fn out_of_memory() -> Error {
        let message = "the concurrent queries of the key, of the user or of the workspace have reached the limit on \
                       their shared memory, a multiple of `pipeline.memory`";
        Error::TooManyQueries(message.into())
    }
}

impl Drop for QueryPermit {
    fn drop(&mut self) {
        let granted = self.granted.load(Ordering::Acquire);
        self.key.give_back(granted);
        self.workspace.give_back(granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> QueryLimits {
        QueryLimits { workspace_queries: 2, key_queries: 1, workspace_bytes: 100, key_bytes: 70, wait_ms: 0 }
    }

    fn is_rejected(admitted: Result<QueryPermit>) -> bool {
        matches!(admitted, Err(Error::TooManyQueries(_)))
    }

    #[tokio::test]
    async fn concurrent_queries_are_limited_per_caller_and_workspace() {
        let admission = Admission::new(limits());
        let [a, b, c]: [Arc<str>; 3] = ["a", "b", "c"].map(Arc::from);
        let of_a = admission.admit(&a).await.expect("a place");
        assert!(is_rejected(admission.admit(&a).await), "the caller already runs a query");
        let of_b = admission.admit(&b).await.expect("a place");
        assert!(is_rejected(admission.admit(&c).await), "the workspace already runs two queries");
        drop(of_a);
        drop(admission.admit(&c).await.expect("a place"));
        drop(of_b);
        assert!(admission.admit(&b).await.is_ok());
        assert_eq!(admission.workspace.waiting.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn queries_share_the_memory_limits_of_their_caller_and_workspace() {
        let admission = Admission::new(limits());
        let of_a = admission.admit(&Arc::from("a")).await.expect("a place");
        let of_b = admission.admit(&Arc::from("b")).await.expect("a place");
        assert!(of_a.grant(60) && !of_a.grant(20), "the limit of a caller is 70 bytes");
        assert!(!of_b.grant(50) && of_b.grant(40), "the limit of the workspace is 100 bytes");
        drop(of_a);
        assert!(of_b.grant(30) && !of_b.grant(1));
        drop(of_b);
        let again = admission.admit(&Arc::from("a")).await.expect("a place");
        assert!(again.grant(70));
    }

    /// Starts a task that waits until a query is admitted, and then ends.
    async fn begin(admission: &Arc<Admission>, caller: &str) -> tokio::task::JoinHandle<Result<()>> {
        let (waiting, caller) = (admission.clone(), Arc::from(caller));
        let query = tokio::spawn(async move { waiting.admit(&caller).await.map(drop) });
        tokio::task::yield_now().await;
        query
    }

    #[tokio::test]
    async fn the_waiting_queries_of_one_caller_do_not_block_other_callers() {
        let limits = QueryLimits { workspace_queries: 8, key_queries: 1, wait_ms: 60_000, ..limits() };
        let admission = Arc::new(Admission::new(limits));
        let running = admission.admit(&Arc::from("a")).await.expect("a place");
        let mut queries = Vec::new();
        for _ in 0..300 {
            queries.push(begin(&admission, "a").await);
        }
        let rejected = queries.iter().filter(|query| query.is_finished()).count();
        assert_eq!(rejected, 300 - MAX_CALLER_WAITING);
        for _ in 0..40 {
            assert!(begin(&admission, "b").await.await.expect("no panic").is_ok());
        }
        drop(running);
        for query in queries.drain(..MAX_CALLER_WAITING) {
            assert!(query.await.expect("no panic").is_ok());
        }
    }

    #[tokio::test]
    async fn a_full_queue_admits_callers_that_have_no_waiting_query() {
        let limits = QueryLimits { workspace_queries: 1, key_queries: 1, wait_ms: 60_000, ..limits() };
        let admission = Arc::new(Admission::new(limits));
        let running = admission.admit(&Arc::from("first")).await.expect("a place");
        for number in 0..MAX_WAITING {
            drop(begin(&admission, &format!("caller {}", number % 8)).await);
        }
        assert_eq!(admission.workspace.waiting.load(Ordering::Acquire), MAX_WAITING);
        assert!(is_rejected(admission.admit(&Arc::from("caller 1")).await));
        let late = begin(&admission, "late").await;
        drop(running);
        assert!(late.await.expect("no panic").is_ok());
    }

    #[tokio::test]
    async fn a_query_over_the_limit_waits_until_another_query_ends() {
        let admission = Arc::new(Admission::new(QueryLimits { wait_ms: 60_000, ..limits() }));
        let caller: Arc<str> = "a".into();
        let first = admission.admit(&caller).await.expect("a place");
        let (waiting, of) = (admission.clone(), caller.clone());
        let second = tokio::spawn(async move { waiting.admit(&of).await.map(drop) });
        tokio::task::yield_now().await;
        drop(first);
        assert!(second.await.expect("a task").is_ok());
    }
}
