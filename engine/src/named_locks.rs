//! Named locks: at most one task holds a name at a time. Tasks that hold different names do not wait for each other.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// The locks that tasks hold or wait for, by name.
#[derive(Default)]
pub struct NamedLocks {
    under_way: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// A held lock on a name. Dropping this value releases the name to the next waiting task.
pub struct NamedLock {
    turns: Arc<NamedLocks>,
    key: String,
    /// The guard of the lock. `None` only during `drop`.
    lock: Option<OwnedMutexGuard<()>>,
}

impl NamedLocks {
    /// Waits until the name is free, then locks the name until the returned value is dropped.
    pub async fn lock(self: &Arc<Self>, key: &str) -> NamedLock {
        let lock = self.under_way.lock().entry(key.to_owned()).or_default().clone();
        let lock = lock.lock_owned().await;
        NamedLock { turns: self.clone(), key: key.to_owned(), lock: Some(lock) }
    }
}

impl Drop for NamedLock {
    fn drop(&mut self) {
        let mut under_way = self.turns.under_way.lock();
        self.lock = None;
        // A waiting task holds a clone of the lock. No task can clone the lock while `under_way` is locked.
        if under_way.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            under_way.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_locked_by_one_task_at_a_time() {
        let turns = Arc::new(NamedLocks::default());
        let first = turns.lock("a").await;
        let other = turns.lock("b").await;
        let waiting = turns.lock("a");
        let mut waiting = std::pin::pin!(waiting);
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        drop((first, other));
        assert_eq!(turns.under_way.lock().len(), 1);
        drop(waiting.await);
        assert!(turns.under_way.lock().is_empty());
    }
}
