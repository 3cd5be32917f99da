//! The engine: a store, the workspaces in it that are open, and who may enter them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::clock::Clock;
use crate::consumer::plugins::Plugins;
use crate::error::{Error, Result};
use crate::hook::Embed;
use crate::model::access::{self, Caller, KeyRecord, Scope, WorkspaceRecord};
use crate::opened::{Opened, Usage};
use crate::store::{self, Database, Store};
use crate::workspace::agents::register_scripted;
use crate::workspace::keys::{NewKey, hash_of, record_of};
use crate::workspace::state::Open;
use crate::workspace::vectors::Vectors;
use crate::workspace::{Running, Workspace};

/// What the engine is told by whoever embeds it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Longest run of one pipeline, in milliseconds.
    pub pipeline_ms: u64,
    /// Bytes that one pipeline may build.
    pub pipeline_bytes: usize,
    /// Bytes of open workspaces beyond which those that nobody uses are closed; 0: no limit.
    pub resident_bytes: usize,
    /// How long nobody entered a workspace that is closed, in milliseconds.
    pub idle_ms: i64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { pipeline_ms: 5_000, pipeline_bytes: 64 << 20, resident_bytes: 0, idle_ms: 600_000 }
    }
}

/// How often a key's last use is written down, at most; milliseconds.
const TOUCH_MS: i64 = 60_000;

/// The engine. Cheap to share, and one is enough for a process.
pub struct Engine {
    store: Store,
    control: Database,
    clock: Arc<dyn Clock>,
    settings: Settings,
    plugins: Arc<Plugins>,
    workspaces: Opened,
    /// Keys by hash. Trusted only where no other process can revoke one.
    keys: Mutex<HashMap<String, Arc<KeyRecord>>>,
    embed: OnceLock<Arc<dyn Embed>>,
    /// Workspaces that could not be loaded when they were asked for last.
    failed: Mutex<HashSet<Arc<str>>>,
}

/// What the first start of an empty store made.
pub struct FirstStart {
    pub workspace: WorkspaceRecord,
    /// The owner's key; it cannot be asked for again.
    pub key: String,
}

impl Engine {
    pub async fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        settings: Settings,
        plugins: Plugins,
    ) -> Result<Arc<Engine>> {
        let control = store.control().await?;
        let (workspaces, keys, embed, failed) = Default::default();
        let plugins = Arc::new(plugins);
        Ok(Arc::new(Engine { store, control, clock, settings, plugins, workspaces, keys, embed, failed }))
    }

    /// Lets workspaces that are opened from now on search by meaning too. What is given first stays.
    pub fn embed_with(&self, embed: Arc<dyn Embed>) {
        // A second model would throw away what the first has made.
        let _ = self.embed.set(embed);
    }

    /// On an empty store, makes the workspace `default` with an owner and a key of every scope, all at once: of several
    /// servers that start on one store, one makes them.
    ///
    /// On a store that had its first start, a chosen key takes the place of the key that was made then, where that was
    /// never used: a server that died before it could show the key leaves a store that nobody can enter. A key that
    /// was used, or revoked, is left alone.
    pub async fn first_start(&self, chosen_key: Option<String>) -> Result<Option<FirstStart>> {
        if let Some(key) = &chosen_key {
            check_key(key)?;
        }
        if self.control.read_workspaces().await?.is_empty() {
            let (workspace, record, key) = self.new_workspace("default", chosen_key.clone());
            if self.control.write_first_workspace(&workspace, &record).await? {
                return Ok(Some(FirstStart { workspace, key }));
            }
        }
        if let Some(chosen) = chosen_key {
            let make = |unused: &KeyRecord| {
                let new = NewKey { name: unused.name.clone(), scopes: Scope::ALL.to_vec(), expires_at: None };
                self.new_key(&unused.workspace_id, &unused.user_id, new, Some(chosen.clone())).0
            };
            if self.control.replace_unused_first_key(make).await? {
                tracing::warn!("the owner key of the first start was never used; the chosen one has taken its place");
            }
        }
        Ok(None)
    }

    /// Makes a workspace with an owner, and a key that holds every scope.
    pub async fn provision(&self, name: &str, chosen_key: Option<String>) -> Result<(WorkspaceRecord, String)> {
        if let Some(key) = &chosen_key {
            check_key(key)?;
        }
        let (workspace, record, key) = self.new_workspace(name, chosen_key);
        self.control.write_workspace(&workspace, &record).await?;
        Ok((workspace, key))
    }

    fn new_workspace(&self, name: &str, chosen_key: Option<String>) -> (WorkspaceRecord, KeyRecord, String) {
        let workspace = WorkspaceRecord {
            id: self.clock.new_id().to_string().into(),
            name: name.to_owned(),
            slug: name.to_owned(),
            owner_id: self.clock.new_id().to_string().into(),
            created_at: self.clock.now_ms(),
        };
        let new = NewKey { name: "owner".into(), scopes: Scope::ALL.to_vec(), expires_at: None };
        let (record, key) = self.new_key(&workspace.id, &workspace.owner_id, new, chosen_key);
        (workspace, record, key)
    }

    fn new_key(
        &self,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
        chosen: Option<String>,
    ) -> (KeyRecord, String) {
        let key = chosen.unwrap_or_else(|| access::key_from(self.clock.random()));
        let id = self.clock.new_id().to_string().into();
        let record = record_of(&key, id, workspace_id.clone(), user_id.clone(), new, self.clock.now_ms());
        (record, key)
    }

    /// Who shows this bearer token.
    pub async fn authenticate(&self, bearer: &str) -> Result<Caller> {
        if !access::is_key(bearer) {
            return Err(Error::Unauthenticated("the bearer token is not valid"));
        }
        let hash = hash_of(bearer);
        let known = self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        let key = match known.filter(|_| self.store.is_exclusive()) {
            Some(key) => key,
            None => {
                let found = self.control.find_key(&hash).await?;
                let key = Arc::new(found.ok_or(Error::Unauthenticated("the bearer token is not valid"))?);
                self.remember_key(hash, key.clone());
                key
            }
        };
        let now = self.clock.now_ms();
        if key.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(Error::Unauthenticated("the key has expired"));
        }
        if key.last_used_at.is_none_or(|last| last + TOUCH_MS <= now) {
            self.touch(&key, now).await;
        }
        Ok(Caller {
            user_id: key.user_id.clone(),
            workspace_id: key.workspace_id.clone(),
            key_id: Some(key.id.clone()),
            scopes: key.scopes.as_slice().into(),
        })
    }

    fn remember_key(&self, hash: String, key: Arc<KeyRecord>) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, key);
    }

    /// Writes down when a key was used. That it fails is no reason to refuse the caller.
    async fn touch(&self, key: &KeyRecord, now: i64) {
        let touched = KeyRecord { last_used_at: Some(now), ..key.clone() };
        self.remember_key(touched.hash.clone(), Arc::new(touched));
        if let Err(error) = self.control.touch_key(&key.id, now).await {
            tracing::warn!(%error, key = %key.id, "the key's last use was not written");
        }
    }

    /// The caller's workspace, for a caller who holds one of these scopes.
    pub async fn enter(self: &Arc<Self>, caller: Caller, one_of: &[Scope]) -> Result<Workspace> {
        if !one_of.iter().any(|scope| caller.holds(*scope)) {
            return Err(Error::InsufficientScope { required: one_of.to_vec() });
        }
        let running = self.running(&caller.workspace_id).await?;
        Ok(Workspace::new(self.clone(), running, caller))
    }

    /// The workspace as it runs here, opened on first use.
    async fn running(&self, workspace_id: &Arc<str>) -> Result<Arc<Running>> {
        self.workspaces.enter(workspace_id, self.clock.now_ms(), || self.load(workspace_id)).await
    }

    /// Loads a workspace. One that cannot be loaded is not available to who asks for it, and tried again by whoever
    /// asks next.
    async fn load(&self, workspace_id: &Arc<str>) -> Result<Arc<Running>> {
        let loaded = self.try_load(workspace_id).await;
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match loaded {
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

    /// How many workspaces could not be loaded when they were asked for last.
    pub fn workspaces_failed(&self) -> usize {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    async fn try_load(&self, workspace_id: &Arc<str>) -> Result<Arc<Running>> {
        let records = self.control.read_workspaces().await?;
        let record = records.into_iter().find(|record| record.id == *workspace_id);
        let record = record.ok_or_else(|| Error::not_found("workspace", workspace_id))?;
        let log = self.store.workspace(workspace_id).await?;
        let plugins = self.plugins.clone();
        let mut open = Open::load(record, log, self.clock.clone(), self.store.is_exclusive(), plugins).await?;
        open.vectors = self.embed.get().cloned().map(Vectors::new);
        let running = Arc::new(Running::start(open));
        register_scripted(&running).await?;
        Ok(running)
    }

    /// Opens every workspace that there is memory for, so that the first request to each is as fast as the next. One
    /// that cannot be loaded keeps none of the others closed.
    pub async fn open_all(&self) -> Result<()> {
        let mut bytes = 0;
        for workspace in self.control.read_workspaces().await? {
            // Why it failed is written down where it was loaded.
            let Ok(running) = self.running(&workspace.id).await else { continue };
            bytes += running.open.size_bytes();
            if self.settings.resident_bytes > 0 && bytes > self.settings.resident_bytes {
                break;
            }
        }
        Ok(())
    }

    /// Where open workspaces take more memory than they may, closes some that nobody has used for a while, the one
    /// that was used least recently first. Answers how many are open now.
    pub async fn close_idle(&self) -> Result<usize> {
        let usage = self.workspaces.usage();
        let measured = move || usage.into_iter().map(|usage| (usage.open.size_bytes(), usage)).collect();
        let measured: Vec<(usize, Usage)> = tokio::task::spawn_blocking(measured).await.map_err(Error::internal)?;
        let mut open = measured.len();
        let mut bytes: usize = measured.iter().map(|(bytes, _)| bytes).sum();
        let before = self.clock.now_ms().saturating_sub(self.settings.idle_ms);
        for (size, usage) in measured {
            let enough = self.settings.resident_bytes == 0 || bytes <= self.settings.resident_bytes;
            if enough || usage.last_used > before {
                break;
            }
            let Usage { id, open: state, .. } = usage;
            drop(state);
            if let Some(closing) = self.workspaces.close(&id, before) {
                closing.await.map_err(Error::internal)?;
                tracing::info!(workspace = %id, "closed, as nobody uses it and memory is wanted");
                (open, bytes) = (open - 1, bytes - size);
            }
        }
        metrics::gauge!("foldwork_workspaces_open").set(open as f64);
        metrics::gauge!("foldwork_resident_bytes").set(bytes as f64);
        Ok(open)
    }

    /// Whether the store answers.
    pub async fn health(&self) -> Result<()> {
        Ok(self.store.health().await?)
    }

    /// Finishes what is under way in every workspace.
    pub async fn close(&self) {
        self.workspaces.stop_all().await;
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) async fn make_key(
        &self,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
    ) -> Result<(KeyRecord, String)> {
        let (record, key) = self.new_key(workspace_id, user_id, new, None);
        self.control.write_key(&record).await?;
        Ok((record, key))
    }

    pub(crate) async fn keys_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        Ok(self.control.read_keys(workspace_id).await?)
    }

    pub(crate) async fn revoke_key(&self, workspace_id: &str, key_id: &str) -> Result<()> {
        let deleted = self.control.delete_key(workspace_id, key_id).await?;
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, key| *key.id != *key_id);
        if deleted { Ok(()) } else { Err(Error::not_found("key", key_id)) }
    }
}

fn check_key(key: &str) -> Result<()> {
    if access::is_key(key) { Ok(()) } else { Err(Error::invalid("a key is sk_ and 64 hexadecimal characters")) }
}
