//! Opens workspaces: loads workspaces from the store and starts their background tasks.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::access::Access;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::hook::Embed;
use crate::state::peers::Peers;
use crate::state::releases::Releases;
use crate::state::storage::SharedStorage;
use crate::state::{EngineSettings, Environment, State};
use crate::store::blobs::Blobs;
use crate::store::{self, DatabaseReader, Store};
use crate::workspace::offline::Offline;
use crate::workspace::runtime::Runtime;

/// The opener of the workspaces of one engine.
pub struct Opener {
    store: Store,
    access: Arc<Access>,
    /// The environment that all workspaces share, without the embedding model.
    environment: Environment,
    embed: OnceLock<Arc<dyn Embed>>,
    /// The ids of the workspaces whose last attempt to open failed.
    failed: Mutex<HashSet<Arc<str>>>,
}

impl Opener {
    pub fn new(
        store: Store,
        access: Arc<Access>,
        clock: Arc<dyn Clock>,
        settings: Arc<EngineSettings>,
        releases: Arc<Releases>,
        peers: Option<Arc<Peers>>,
    ) -> Opener {
        let storage = SharedStorage::new(store.blobs());
        let (patterns, embed, failed) = Default::default();
        let environment = Environment { clock, settings, releases, patterns, embed: None, storage, peers };
        Opener { store, access, environment, embed, failed }
    }

    /// Enables vector search for workspaces opened after this call. Only the first call has an effect.
    pub fn embed_with(&self, embed: Arc<dyn Embed>) {
        // A second model would discard the vectors of the first model.
        let _ = self.embed.set(embed);
    }

    /// Checks that the store responds. If the store is in a folder, also checks that the disk accepts writes.
    pub async fn health(&self) -> Result<()> {
        Ok(self.store.health().await?)
    }

    /// Returns the number of workspaces whose last attempt to open failed.
    pub fn failed(&self) -> usize {
        self.failed.lock().len()
    }

    /// Opens a workspace. Fails with [`Error::NotFound`] if the workspace does not exist, and with
    /// [`Error::Unavailable`] for any other failure. The next request tries to open the workspace again.
    pub async fn open(&self, workspace_id: &Arc<str>) -> Result<Arc<Runtime>> {
        let opened = self.try_open(workspace_id).await;
        let mut failed = self.failed.lock();
        match opened {
            Err(error) if !matches!(error, Error::NotFound { .. }) => {
                tracing::error!(%error, cause = ?error, workspace = %workspace_id, "failed to load a workspace");
                failed.insert(workspace_id.clone());
                Err(match error {
                    Error::Unavailable(_) => error,
                    error => Error::Unavailable(store::Error::Loading {
                        workspace_id: workspace_id.clone(),
                        reason: error.to_string(),
                    }),
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
        Ok(Arc::new(Runtime::open(state, log, self.access.clone()).await?))
    }

    /// Opens a workspace for an operator, without starting the background tasks that a server runs for a workspace.
    pub async fn open_offline(&self, workspace_id: &Arc<str>) -> Result<Offline> {
        let record = self.access.workspace(workspace_id).await?;
        let log = self.store.workspace(workspace_id).await?;
        let state = State::load(record, &log, self.environment()).await?;
        Offline::open(state, log).await
    }

    /// Returns whether no other process writes to the store.
    pub fn is_exclusive(&self) -> bool {
        self.store.is_exclusive()
    }

    /// Opens the database of a workspace for reading, without opening the workspace.
    pub async fn reader(&self, workspace_id: &str) -> Result<DatabaseReader> {
        Ok(self.store.workspace_reader(workspace_id).await?)
    }

    /// Returns the storage for the bytes of files.
    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.environment.storage.blobs
    }

    /// Deletes the database, the files and the reported progress of a removed workspace. The workspace must already be
    /// removed, so that no server opens the workspace again.
    pub async fn remove(&self, workspace_id: &Arc<str>) -> Result<()> {
        self.store.remove_workspace(workspace_id).await?;
        self.blobs().remove_all(workspace_id).await?;
        self.forget_progress(workspace_id).await?;
        self.failed.lock().remove(workspace_id);
        Ok(())
    }

    /// Removes the progress that servers have reported for a removed workspace.
    pub async fn forget_progress(&self, workspace_id: &str) -> Result<()> {
        Ok(self.store.control().await?.forget_progress(workspace_id).await?)
    }

    /// Returns the environment that all workspaces of the engine share.
    fn environment(&self) -> Environment {
        Environment { embed: self.embed.get().cloned(), ..self.environment.clone() }
    }
}
