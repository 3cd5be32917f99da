//! Opens workspaces: loads them from the store and starts their tasks.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use crate::access::Access;
use crate::clock::Clock;
use crate::core::plugins::Plugins;
use crate::core::storage::SharedStorage;
use crate::core::{Environment, Settings, State};
use crate::error::{Error, Result};
use crate::hook::Embed;
use crate::model::pattern::Patterns;
use crate::store::{self, Store};
use crate::workspace::offline::Offline;
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
    /// The ids of the workspaces whose last attempt to open failed.
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

    /// Enables vector search for workspaces opened after this call. Only the first call has an effect.
    pub fn embed_with(&self, embed: Arc<dyn Embed>) {
        // A second model would discard the vectors of the first model.
        let _ = self.embed.set(embed);
    }

    /// Checks that the store responds.
    pub async fn health(&self) -> Result<()> {
        Ok(self.store.health().await?)
    }

    /// Returns the number of workspaces whose last attempt to open failed.
    pub fn failed(&self) -> usize {
        self.failures().len()
    }

    /// Opens a workspace. Fails with [`Error::NotFound`] if the workspace does not exist, and with
    /// [`Error::Unavailable`] for any other failure. The next request tries to open the workspace again.
    pub async fn open(&self, workspace_id: &Arc<str>) -> Result<Arc<Runtime>> {
        let opened = self.try_open(workspace_id).await;
        let mut failed = self.failures();
        match opened {
            Err(error) if !matches!(error, Error::NotFound { .. }) => {
                tracing::error!(%error, cause = ?error, workspace = %workspace_id, "failed to load a workspace");
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
        let state = State::load(record, &log, self.environment()).await?;
        Ok(Arc::new(Runtime::open(state, log).await?))
    }

    /// Opens a workspace for an operator, with none of the tasks that a server runs beside it.
    pub async fn open_offline(&self, workspace_id: &Arc<str>) -> Result<Offline> {
        let record = self.access.workspace(workspace_id).await?;
        let log = self.store.workspace(workspace_id).await?;
        let state = State::load(record, &log, self.environment()).await?;
        Offline::open(state, log).await
    }

    /// Returns the environment that all workspaces of the engine share.
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
        self.failed.lock()
    }
}
