//! The workspaces that are open in this process: each is opened once, on first use, and may be closed while nobody
//! uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::core::State;
use crate::error::{Error, Result};
use crate::store;
use crate::workspace::runtime::Runtime;

/// All of them, by id.
#[derive(Default)]
pub struct Registry {
    entries: Mutex<HashMap<Arc<str>, Entry>>,
}

struct Entry {
    slot: Arc<Slot>,
    /// When somebody last entered; milliseconds.
    last_used: i64,
}

/// A workspace that is open, or is being opened for whoever came first.
struct Slot {
    runtime: OnceLock<Arc<Runtime>>,
    /// Held by the task that opens the workspace.
    opening: Arc<tokio::sync::Mutex<()>>,
    /// Whether what ran here before has ended: two must never write to one log.
    closed: watch::Receiver<bool>,
}

impl Slot {
    fn after(closed: watch::Receiver<bool>) -> Arc<Slot> {
        Arc::new(Slot { runtime: OnceLock::new(), opening: Arc::default(), closed })
    }

    /// Returns when what ran here before has ended.
    async fn predecessor_ended(&self) {
        // Where the sender is gone, so is what it spoke of.
        let _ = self.closed.clone().wait_for(|closed| *closed).await;
    }
}

/// An open workspace, and since when nobody entered it.
pub struct Usage {
    pub id: Arc<str>,
    pub state: Arc<State>,
    pub last_used: i64,
}

impl Registry {
    /// The workspace as it runs here, opened on first use.
    ///
    /// Opening is a task of its own: it comes to its end, and hands over a whole runtime or leaves nothing behind,
    /// whether or not the request that began it still waits.
    pub async fn enter<F>(&self, id: &Arc<str>, now_ms: i64, load: impl FnOnce() -> F) -> Result<Arc<Runtime>>
    where
        F: Future<Output = Result<Arc<Runtime>>> + Send + 'static,
    {
        let slot = {
            let mut entries = self.entries();
            let fresh = || Entry { slot: Slot::after(watch::channel(true).1), last_used: now_ms };
            let entry = entries.entry(id.clone()).or_insert_with(fresh);
            entry.last_used = now_ms;
            entry.slot.clone()
        };
        if let Some(runtime) = slot.runtime.get() {
            return Ok(runtime.clone());
        }
        let permit = slot.opening.clone().lock_owned().await;
        if let Some(runtime) = slot.runtime.get() {
            return Ok(runtime.clone());
        }
        let loading = load();
        let opening = async move {
            slot.predecessor_ended().await;
            let runtime = loading.await?;
            let runtime = slot.runtime.get_or_init(|| runtime).clone();
            drop(permit);
            Ok(runtime)
        };
        match tokio::spawn(opening.in_current_span()).await {
            Ok(opened) => opened,
            Err(error) if error.is_cancelled() => Err(Error::Unavailable(store::Error::Closing)),
            Err(error) => Err(Error::internal(error)),
        }
    }

    /// Those that are open, the one that was not entered for longest first.
    pub fn usage(&self) -> Vec<Usage> {
        let entries = self.entries();
        let open = entries.iter().filter_map(|(id, entry)| {
            let state = entry.slot.runtime.get()?.state.clone();
            Some(Usage { id: id.clone(), state, last_used: entry.last_used })
        });
        let mut usage: Vec<Usage> = open.collect();
        usage.sort_by(|a, b| (a.last_used, &a.id).cmp(&(b.last_used, &b.id)));
        usage
    }

    /// Closes a workspace that nobody uses or has entered since `before`; `None` where somebody does or has.
    ///
    /// Whoever enters from here on waits until it is closed, also where nobody waits for the task.
    pub fn close(&self, id: &str, before: i64) -> Option<JoinHandle<()>> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id).filter(|entry| entry.last_used <= before)?;
        // A new user comes by this lock, and holds one of the two from here on.
        let is_used = Arc::strong_count(&entry.slot) > 1
            || entry.slot.runtime.get().is_none_or(|runtime| Arc::strong_count(runtime) > 1);
        if is_used {
            return None;
        }
        let (closing, closed) = watch::channel(false);
        let slot = std::mem::replace(&mut entry.slot, Slot::after(closed));
        let runtime = Arc::into_inner(slot).and_then(|slot| Arc::into_inner(slot.runtime.into_inner()?));
        Some(tokio::spawn(async move {
            if let Some(runtime) = runtime {
                runtime.close().await;
            }
            closing.send_replace(true);
        }))
    }

    /// Stops what works on all of them. Whoever enters from here on has the workspace opened anew, once what ran before has
    /// stopped.
    pub async fn stop_all(&self) {
        let mut stopping = Vec::new();
        for entry in self.entries().values_mut() {
            let (stopped, closed) = watch::channel(false);
            let slot = std::mem::replace(&mut entry.slot, Slot::after(closed));
            stopping.push(async move {
                slot.predecessor_ended().await;
                // A workspace that is being opened is stopped once it is open.
                let _opening = slot.opening.lock().await;
                if let Some(runtime) = slot.runtime.get() {
                    runtime.stop().await;
                }
                stopped.send_replace(true);
            });
        }
        join_all(stopping).await;
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Arc<str>, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
