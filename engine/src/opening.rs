//! How a workspace is opened: read from the store, with what its work takes, and set to work.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::access::Access;
use crate::clock::Clock;
use crate::core::plugins::Plugins;
use crate::core::storage::SharedStorage;
use crate::core::{Environment, Settings, State};
use crate::error::{Error, Result};
use crate::hook::Embed;
use crate::model::pattern::Patterns;
use crate::store::{self, Store};
use crate::workspace::runtime::Runtime;

/// Opens the workspaces of one engine.
pub struct Opener {
    store: Store,
    access: Arc<Access>,
    clock: Arc<dyn Clock>,
    settings: Arc<Settings>,
    plugins: Arc<Plugins>,
    patterns: Arc<Patterns>,
    embed: OnceLock<Arc<dyn Embed>>,
    storage: SharedStorage,
    /// Workspaces whose last opening failed.
    failed: Mutex<HashSet<Arc<str>>>,
}

impl Opener {
    pub fn new(
        store: Store,
        access: Arc<Access>,
        clock: Arc<dyn Clock>,
        settings: Arc<Settings>,
        plugins: Arc<Plugins>,
    ) -> Opener {
        let storage = SharedStorage::new(store.blobs());
        let (patterns, embed, failed) = Default::default();
        Opener { store, access, clock, settings, plugins, patterns, embed, storage, failed }
    }

    /// Lets workspaces that are opened from now on search by meaning too. What is given first stays.
    pub fn embed_with(&self, embed: Arc<dyn Embed>) {
        // A second model would throw away what the first has made.
        let _ = self.embed.set(embed);
    }

    /// Whether the store answers.
    pub async fn health(&self) -> Result<()> {
        Ok(self.store.health().await?)
    }

    /// How many workspaces failed to open when they were entered last.
    pub fn failed(&self) -> usize {
        self.failures().len()
    }

    /// Opens a workspace. One that fails to open is unavailable to the request that entered it; the next request tries
    /// again.
    pub async fn open(&self, workspace_id: &Arc<str>) -> Result<Arc<Runtime>> {
        let opened = self.try_open(workspace_id).await;
        let mut failed = self.failures();
        match opened {
            Err(error) if !matches!(error, Error::NotFound { .. }) => {
                tracing::error!(%error, cause = ?error, workspace = %workspace_id, "a workspace cannot be loaded");
                failed.insert(workspace_id.clone());
                Err(match error {
                    Error::Unavailable(_) => error,
                    error => Error::Unavailable(store::Error::Opening(format!("workspace {workspace_id}: {error}"))),
                })
            }
            other => {
                failed.remove(workspace_id);
                other
            }
        }
    }

    async fn try_open(&self, workspace_id: &Arc<str>) -> Result<Arc<Runtime>> {
        let record = self.access.workspace(workspace_id).await?;
        let log = self.store.workspace(workspace_id).await?;
        let state = State::load(record, log, self.environment()).await?;
        Ok(Arc::new(Runtime::open(state).await?))
    }

    /// What the workspaces of the engine have in common.
    fn environment(&self) -> Environment {
        Environment {
            clock: self.clock.clone(),
            settings: self.settings.clone(),
            plugins: self.plugins.clone(),
            patterns: self.patterns.clone(),
            embed: self.embed.get().cloned(),
            storage: self.storage.clone(),
            exclusive: self.store.is_exclusive(),
        }
    }

    fn failures(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
