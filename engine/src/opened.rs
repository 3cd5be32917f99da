//! The workspaces that are open in this process: each is opened once, on first use, and may be closed while nobody
//! uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;

use crate::error::Result;
use crate::workspace::Running;
use crate::workspace::state::Open;

/// All of them, by id.
#[derive(Default)]
pub struct Opened {
    slots: Mutex<HashMap<Arc<str>, Slot>>,
}

struct Slot {
    opening: Arc<Opening>,
    /// When somebody last entered; milliseconds.
    last_used: i64,
}

/// A workspace that is open, or is being opened by whoever came first.
struct Opening {
    running: OnceCell<Arc<Running>>,
    /// Whether what ran here before has ended: two must never write to one log.
    closed: watch::Receiver<bool>,
}

impl Opening {
    fn after(closed: watch::Receiver<bool>) -> Arc<Opening> {
        Arc::new(Opening { running: OnceCell::new(), closed })
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
    pub open: Arc<Open>,
    pub last_used: i64,
}

impl Opened {
    /// The workspace as it runs here, opened on first use.
    pub async fn enter<F: Future<Output = Result<Arc<Running>>>>(
        &self,
        id: &Arc<str>,
        now_ms: i64,
        load: impl FnOnce() -> F,
    ) -> Result<Arc<Running>> {
        let opening = {
            let mut slots = self.slots();
            let fresh = || Slot { opening: Opening::after(watch::channel(true).1), last_used: now_ms };
            let slot = slots.entry(id.clone()).or_insert_with(fresh);
            slot.last_used = now_ms;
            slot.opening.clone()
        };
        let open = async || {
            opening.predecessor_ended().await;
            load().await
        };
        opening.running.get_or_try_init(open).await.cloned()
    }

    /// Those that are open, the one that was not entered for longest first.
    pub fn usage(&self) -> Vec<Usage> {
        let slots = self.slots();
        let open = slots.iter().filter_map(|(id, slot)| {
            let open = slot.opening.running.get()?.open.clone();
            Some(Usage { id: id.clone(), open, last_used: slot.last_used })
        });
        let mut usage: Vec<Usage> = open.collect();
        usage.sort_by(|a, b| (a.last_used, &a.id).cmp(&(b.last_used, &b.id)));
        usage
    }

    /// Closes a workspace that nobody uses or has entered since `before`; `None` where somebody does or has.
    ///
    /// Whoever enters from here on waits until it is closed, also where nobody waits for the task.
    pub fn close(&self, id: &str, before: i64) -> Option<JoinHandle<()>> {
        let mut slots = self.slots();
        let slot = slots.get_mut(id).filter(|slot| slot.last_used <= before)?;
        // A new user comes by this lock, and holds one of the two from here on.
        let is_used = Arc::strong_count(&slot.opening) > 1
            || slot.opening.running.get().is_none_or(|running| Arc::strong_count(running) > 1);
        if is_used {
            return None;
        }
        let (closing, closed) = watch::channel(false);
        let opening = std::mem::replace(&mut slot.opening, Opening::after(closed));
        let running = Arc::into_inner(opening).and_then(|opening| Arc::into_inner(opening.running.into_inner()?));
        Some(tokio::spawn(async move {
            if let Some(running) = running {
                running.close().await;
            }
            closing.send_replace(true);
        }))
    }

    /// Takes all of them out, and stops what works on them.
    pub async fn stop_all(&self) {
        let all: Vec<Slot> = self.slots().drain().map(|(_, slot)| slot).collect();
        for slot in all {
            slot.opening.predecessor_ended().await;
            if let Some(running) = slot.opening.running.get() {
                running.stop().await;
            }
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Arc<str>, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
