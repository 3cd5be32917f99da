//! The open workspaces of this process. Each workspace is opened on first use, may be closed while unused, and is then
//! opened again on its next use.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::error::{Error, Result};
use crate::state::State;
use crate::store;
use crate::workspace::runtime::Runtime;

/// All open workspaces, by id.
#[derive(Default)]
pub struct Registry {
    entries: Mutex<HashMap<Arc<str>, RegistryEntry>>,
}

struct RegistryEntry {
    slot: Arc<WorkspaceSlot>,
    /// The time of the last call of [`Registry::enter`], in milliseconds since the epoch.
    last_used: i64,
}

/// The runtime of a workspace. Empty until the workspace is opened.
struct WorkspaceSlot {
    runtime: OnceLock<Arc<Runtime>>,
    /// The lock that is held while the workspace is being opened.
    opening: Arc<tokio::sync::Mutex<()>>,
    /// Whether the previous runtime of this workspace has stopped. Two runtimes must never write to one log.
    closed: watch::Receiver<bool>,
}

impl WorkspaceSlot {
    fn after(closed: watch::Receiver<bool>) -> Arc<WorkspaceSlot> {
        Arc::new(WorkspaceSlot { runtime: OnceLock::new(), opening: Arc::default(), closed })
    }

    /// Waits until the previous runtime of this workspace has stopped.
    async fn predecessor_ended(&self) {
        // An error means that the sender was dropped, so the previous runtime was dropped as well.
        let _ = self.closed.clone().wait_for(|closed| *closed).await;
    }
}

/// An open workspace and the time of its last use, in milliseconds since the epoch.
pub struct OpenWorkspace {
    pub id: Arc<str>,
    pub state: Arc<State>,
    pub last_used: i64,
}

impl Registry {
    /// Returns the runtime of a workspace, opening the workspace on first use.
    ///
    /// A workspace is opened in a separate task, which completes even if the request is canceled. A failed opening
    /// leaves nothing running.
    pub async fn enter<F>(&self, id: &Arc<str>, now_ms: i64, load: impl FnOnce() -> F) -> Result<Arc<Runtime>>
    where
        F: Future<Output = Result<Arc<Runtime>>> + Send + 'static,
    {
        let slot = {
            let mut entries = self.entries.lock();
            let fresh = || RegistryEntry { slot: WorkspaceSlot::after(watch::channel(true).1), last_used: now_ms };
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

    /// Returns the open workspaces, least recently used first.
    pub fn usage(&self) -> Vec<OpenWorkspace> {
        let entries = self.entries.lock();
        let open = entries.iter().filter_map(|(id, entry)| {
            let state = entry.slot.runtime.get()?.state.clone();
            Some(OpenWorkspace { id: id.clone(), state, last_used: entry.last_used })
        });
        let mut usage: Vec<OpenWorkspace> = open.collect();
        usage.sort_by(|a, b| (a.last_used, &a.id).cmp(&(b.last_used, &b.id)));
        usage
    }

    /// Closes a workspace in a separate task. Returns `None` if the workspace is not open, is in use, or was last used
    /// after `before`.
    ///
    /// Later calls of [`Registry::enter`] wait until the workspace is closed, even if the caller does not await the
    /// returned task.
    pub fn close(&self, id: &str, before: i64) -> Option<JoinHandle<()>> {
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(id).filter(|entry| entry.last_used <= before)?;
        // A new user of the workspace needs the lock of `entries` to get the slot or the runtime.
        let is_used = Arc::strong_count(&entry.slot) > 1
            || entry.slot.runtime.get().is_none_or(|runtime| Arc::strong_count(runtime) > 1);
        if is_used {
            return None;
        }
        let (closing, closed) = watch::channel(false);
        let slot = std::mem::replace(&mut entry.slot, WorkspaceSlot::after(closed));
        let runtime = Arc::into_inner(slot).and_then(|slot| Arc::into_inner(slot.runtime.into_inner()?));
        Some(tokio::spawn(async move {
            if let Some(runtime) = runtime {
                runtime.close().await;
            }
            closing.send_replace(true);
        }))
    }

    /// Stops the runtime of a removed workspace, and removes its entry. The workspace must not be opened again.
    pub async fn remove(&self, id: &str) {
        let Some(RegistryEntry { slot, .. }) = self.entries.lock().remove(id) else { return };
        slot.predecessor_ended().await;
        // Waits until a running opening of the workspace has ended.
        let _opening = slot.opening.lock().await;
        if let Some(runtime) = slot.runtime.get() {
            runtime.stop(false).await;
        }
    }

    /// Stops the runtimes of all workspaces. A later request opens its workspace again, after the previous runtime has
    /// stopped.
    pub async fn stop_all(&self) {
        let mut stopping = Vec::new();
        for entry in self.entries.lock().values_mut() {
            let (stopped, closed) = watch::channel(false);
            let slot = std::mem::replace(&mut entry.slot, WorkspaceSlot::after(closed));
            stopping.push(async move {
                slot.predecessor_ended().await;
                // Waits until a running opening has ended, so that the new runtime is stopped as well.
                let _opening = slot.opening.lock().await;
                if let Some(runtime) = slot.runtime.get() {
                    runtime.stop(true).await;
                }
                stopped.send_replace(true);
            });
        }
        join_all(stopping).await;
    }
}
