//! The engine: a store, the open workspaces in it, and access control.

mod transfer;

use std::sync::Arc;
use std::time::Duration;

use crate::access::Access;
use crate::access::invitations::SignedIn;
use crate::access::keys::CreatedKey;
use crate::access::provision::FirstStart;
use crate::access::recovery::OwnerKey;
use crate::access::settings::AccessSettings;
use crate::access::tokens::key_set::FetchKeys;
use crate::clock::Clock;
use crate::error::{Error, ErrorCode, Result};
use crate::hook::Embed;
use crate::measure::Measure;
use crate::metric;
use crate::model::access::{Caller, WorkspaceRecord};
use crate::opening::Opener;
use crate::pulse::Pulse;
use crate::registry::{OpenWorkspace, Registry};
use crate::state::EngineSettings;
use crate::state::peers::Peers;
use crate::state::plugins::Plugins;
use crate::state::releases::Releases;
use crate::store::Store;
use crate::workspace::files::{CheckedLink, LinkedUpload, SignedLink, StoredFile, check_link, refusing};
use crate::workspace::offline::Offline;
use crate::workspace::rights::{Listener, Right, Uploader, check};
use crate::workspace::runtime::Runtime;
use crate::workspace::{CallContext, Consistency, Handle};

/// The longest time that [`Engine::measure`] waits for a check of the store. If the check takes longer, the metrics
/// report an unhealthy store.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// The entry point to the workspaces of one store. An engine is cheap to share, so a process needs only one.
pub struct Engine {
    access: Arc<Access>,
    clock: Arc<dyn Clock>,
    settings: Arc<EngineSettings>,
    releases: Arc<Releases>,
    opener: Arc<Opener>,
    workspaces: Registry,
    measure: Measure,
    started_at: i64,
    /// The exchange with the other servers of the store. `None` if no other process writes to the store.
    pulse: Option<Arc<Pulse>>,
}

/// The status of a running engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineStatus {
    /// The time at which the engine was opened, in milliseconds since the epoch.
    pub started_at: i64,
    /// The current time, in milliseconds since the epoch.
    pub now: i64,
    /// Whether no other process writes to the store.
    pub is_exclusive: bool,
}

impl Engine {
    /// Opens the engine of a store. Releases each plugin version of this process that differs from the newest release
    /// in the store.
    pub async fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        settings: EngineSettings,
        plugins: Plugins,
    ) -> Result<Arc<Engine>> {
        let access = Arc::new(Access::open(&store, clock.clone()).await?);
        let plugins = Arc::new(plugins);
        let measure = Measure::new(plugins.clone());
        let releases = Arc::new(Releases::open(&store, plugins).await?);
        let settings = Arc::new(settings);
        let pulse = Pulse::begin(&store, clock.clone(), Duration::from_millis(settings.pulse_ms)).await?;
        let peers = pulse.as_ref().map(|pulse| pulse.peers().clone());
        let opener = Opener::new(store, access.clone(), clock.clone(), settings.clone(), releases.clone(), peers);
        let (opener, workspaces) = (Arc::new(opener), Registry::default());
        let started_at = clock.now_ms();
        let engine = Engine { access, clock, settings, releases, opener, workspaces, measure, started_at, pulse };
        let engine = Arc::new(engine);
        Engine::begin_pulse(&engine);
        Ok(engine)
    }

    /// Enables vector search for workspaces opened after this call. Only the first call has an effect.
    pub fn embed_with(&self, embed: Arc<dyn Embed>) {
        self.opener.embed_with(embed);
    }

    /// Creates the workspace `default` on an empty store, with an owner and a key that has every scope. The creation is
    /// atomic: if several servers start on one store, only one server creates the workspace.
    ///
    /// Returns the workspace and the owner's key, or `None` if the store already has workspaces. In a store with
    /// workspaces, `chosen_key` replaces the key that the first start created, but only if that key was never used or
    /// revoked. Without this replacement, a server that stops before showing the created key would leave a store
    /// without a known key.
    pub async fn first_start(&self, chosen_key: Option<String>) -> Result<Option<FirstStart>> {
        self.access.first_start(chosen_key).await
    }

    /// Returns whether the store contains `key`. Does not mark the key as used.
    pub async fn knows_key(&self, key: &str) -> Result<bool> {
        self.access.knows_key(key).await
    }

    /// Creates a key with every scope for the owner of the first workspace, for example after the owner has lost all
    /// keys. The store must not be open in any server. If `revokes` is set, revokes the owner's other keys in this
    /// workspace, and all keys derived from the revoked keys.
    pub async fn reset_owner_key(&self, revokes: bool) -> Result<OwnerKey> {
        self.access.reset_owner_key(revokes).await
    }

    /// Creates a workspace with an owner and a key with every scope. Returns the workspace and the key.
    pub async fn provision(&self, name: &str, chosen_key: Option<String>) -> Result<(WorkspaceRecord, String)> {
        self.access.provision(name, chosen_key).await
    }

    /// Applies the operator's access settings: the trusted token issuers, the rules for workspaces of new users, and
    /// the plans. Must be called before the first request. Returns an error message if the settings are invalid or were
    /// already applied.
    pub fn configure_access(&self, settings: AccessSettings, fetch: &Arc<dyn FetchKeys>) -> Result<(), String> {
        self.access.configure(settings, fetch)
    }

    /// Returns the caller that a bearer token identifies. A key selects its own workspace. The token of an identity
    /// provider selects the first workspace that the user joined.
    pub async fn authenticate(&self, bearer: &str) -> Result<Caller> {
        self.access.authenticate(bearer, None).await
    }

    /// Returns the caller that a bearer token identifies, in the given workspace. Fails if the user is not a member of
    /// that workspace, or if the key is valid only in another workspace. `None` selects the workspace of the key. For
    /// the token of an identity provider, `None` selects the first workspace that the user joined.
    pub async fn authenticate_in(&self, bearer: &str, workspace: Option<&str>) -> Result<Caller> {
        self.access.authenticate(bearer, workspace).await
    }

    /// Returns the caller, as [`Engine::authenticate_in`] does, for a read with eventual consistency. While a store
    /// that several servers may share does not respond, accepts a key that this server has read from the store within
    /// the last five minutes.
    pub async fn authenticate_eventually(&self, bearer: &str, workspace: Option<&str>) -> Result<Caller> {
        match self.access.authenticate(bearer, workspace).await {
            Err(error @ Error::Unavailable(_)) => self.access.remembered(bearer, workspace).ok_or(error),
            other => other,
        }
    }

    /// Returns the user that a token of an identity provider identifies, so that the user can accept or decline
    /// invitations. The user need not be a member of a workspace yet.
    pub async fn signed_in(&self, bearer: &str) -> Result<SignedIn> {
        self.access.signed_in(bearer).await
    }

    /// Exchanges a sign-in code for a key. The code is the only credential needed, and works once.
    pub async fn exchange_sign_in_code(&self, code: &str, name: Option<String>) -> Result<CreatedKey> {
        self.access.exchange_sign_in_code(code, name).await
    }

    /// Returns the Ed25519 public key that verifies signed license responses.
    pub async fn license_key(&self) -> Result<Vec<u8>> {
        self.access.license_key().await
    }

    /// Returns a handle on the caller's workspace with the right `R`, if the caller has that right.
    pub async fn enter<R: Right>(&self, caller: Caller) -> Result<R> {
        self.enter_with(caller, Consistency::Strong).await
    }

    /// Returns a handle, as [`Engine::enter`] does. The reads of the handle have the given consistency.
    pub async fn enter_with<R: Right>(&self, caller: Caller, consistency: Consistency) -> Result<R> {
        check::<R>(&caller)?;
        if R::IS_OPERATOR && !self.access.is_first(&caller.workspace_id).await? {
            let message = "this operation needs the role `owner` in the first workspace of the installation";
            return Err(Error::forbidden(ErrorCode::OperatorRequired, message));
        }
        let runtime = self.runtime(&caller.workspace_id).await?;
        Ok(R::of(CallContext::new(self.access.clone(), runtime, caller, consistency)))
    }

    /// Returns all workspaces of the store, oldest first.
    pub async fn workspaces(&self) -> Result<Vec<WorkspaceRecord>> {
        self.access.workspaces().await
    }

    /// Opens a workspace for the operator of the store. The workspace must not be open in this process or another
    /// process. No request may call this function, because the handle appends events that otherwise only the program
    /// itself appends.
    pub async fn offline(&self, workspace_id: &str) -> Result<Offline> {
        self.opener.open_offline(&workspace_id.into()).await
    }

    /// Returns the right to listen. `shown` is a bearer token or a credential issued by [`Listener::connect`].
    pub async fn listen(&self, shown: &str) -> Result<Listener> {
        if !Access::is_listener_credential(shown) {
            return self.enter(self.authenticate(shown).await?).await;
        }
        let listening = self.access.listening(shown).await?;
        let runtime = self.runtime(&listening.caller.workspace_id).await?;
        let context = CallContext::new(self.access.clone(), runtime, listening.caller.clone(), Consistency::Strong);
        Ok(Listener::of(context).for_agents(&listening))
    }

    /// Returns the file that a signed link names. The link is the only credential needed.
    pub async fn linked_file(&self, link: &SignedLink) -> Result<StoredFile> {
        check_link(&self.access, link, self.clock.now_ms()).await?;
        let workspace_id: Arc<str> = link.path.split('/').next().unwrap_or_default().into();
        let runtime = self.runtime(&workspace_id).await?;
        StoredFile::find(&runtime.state, link).await
    }

    /// Returns the upload that a signed link names. Fails if the link is invalid or has expired, if the creator of the
    /// link no longer has the right to upload, or if the target of the upload has changed since the link was created.
    pub async fn linked_upload(&self, token: &str) -> Result<LinkedUpload> {
        let (link, caller) = CheckedLink::check(&self.access, token, self.clock.now_ms()).await?;
        let right: Uploader = self.enter(caller).await.map_err(refusing)?;
        link.upload(right).await
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// Returns the open workspaces, least recently used first.
    pub(crate) fn open_workspaces(&self) -> Vec<OpenWorkspace> {
        self.workspaces.usage()
    }

    /// Returns the servers of the store, or `None` if no other process writes to the store.
    pub(crate) fn peers(&self) -> Option<&Arc<Peers>> {
        self.pulse.as_ref().map(|pulse| pulse.peers())
    }

    /// Stops a workspace that was removed.
    pub(crate) async fn close_removed(&self, workspace_id: &str) {
        self.workspaces.remove(workspace_id).await;
    }

    /// Returns the runtime of a workspace, opening the workspace on first use.
    pub(crate) async fn runtime(&self, workspace_id: &Arc<str>) -> Result<Arc<Runtime>> {
        let (opener, id) = (self.opener.clone(), workspace_id.clone());
        let open = || async move { opener.open(&id).await };
        self.workspaces.enter(workspace_id, self.clock.now_ms(), open).await
    }

    /// Returns the number of workspaces whose last attempt to load failed.
    pub fn workspaces_failed(&self) -> usize {
        self.opener.failed()
    }

    /// Opens workspaces until the memory limit of open workspaces is reached, so that the first request to a workspace
    /// is as fast as later requests. Skips workspaces that cannot be loaded or are being restored.
    pub async fn open_all(&self) -> Result<()> {
        let mut bytes = 0;
        // Reads the workspaces first, because a restore creates its workspace after its own record.
        let workspaces = self.access.workspaces().await?;
        let restoring = self.access.being_restored().await?;
        for workspace in workspaces {
            if restoring.contains(&workspace.id) {
                continue;
            }
            // The opener has logged the error.
            let Ok(runtime) = self.runtime(&workspace.id).await else { continue };
            bytes += runtime.state.size_bytes();
            if self.settings.resident_bytes > 0 && bytes > self.settings.resident_bytes {
                break;
            }
        }
        Ok(())
    }

    /// Closes idle workspaces without pending timers or plugin work, least recently used first, until the open
    /// workspaces fit their memory limit. Returns the number of workspaces that stay open.
    pub async fn close_idle(&self) -> Result<usize> {
        let usage = self.workspaces.usage();
        let measured = move || usage.into_iter().map(|usage| (usage.state.size_bytes(), usage)).collect();
        let measured: Vec<(usize, OpenWorkspace)> =
            tokio::task::spawn_blocking(measured).await.map_err(Error::internal)?;
        let mut open = measured.len();
        let mut bytes: usize = measured.iter().map(|(bytes, _)| bytes).sum();
        let cutoff = self.clock.now_ms().saturating_sub(self.settings.idle_ms);
        for (size, usage) in measured {
            let enough = self.settings.resident_bytes == 0 || bytes <= self.settings.resident_bytes;
            if enough || usage.last_used > cutoff {
                break;
            }
            let OpenWorkspace { id, state, .. } = usage;
            // Plugins and timers, such as those of leases and deferrals, run only while the workspace is open, so a
            // workspace with pending timers or plugin work stays open.
            let is_behind = || state.graph_progress.position() < state.folded.position();
            let is_retrying = || state.plugins.retries.is_awaited();
            if state.deadlines.is_awaited() || (state.leadership.is_own() && (is_behind() || is_retrying())) {
                continue;
            }
            drop(state);
            if let Some(closing) = self.workspaces.close(&id, cutoff) {
                closing.await.map_err(Error::internal)?;
                tracing::info!(workspace = %id, "closed an idle workspace to free memory");
                (open, bytes) = (open - 1, bytes - size);
            }
        }
        metric::WORKSPACES_OPEN.set(&[], open as f64);
        metric::RESIDENT_BYTES.set(&[], bytes as f64);
        metric::RESIDENT_LIMIT_BYTES.set(&[], self.settings.resident_bytes as f64);
        Ok(open)
    }

    /// Sets the gauges that describe the store and the open workspaces. Called at regular intervals, so that reading
    /// the metrics costs nothing.
    pub async fn measure(&self) {
        let health = tokio::time::timeout(HEALTH_TIMEOUT, self.health()).await;
        metric::STORE_HEALTHY.set(&[], if matches!(health, Ok(Ok(()))) { 1.0 } else { 0.0 });
        metric::WORKSPACES_FAILED.set(&[], self.workspaces_failed() as f64);
        let usage = self.workspaces.usage();
        let led = usage.iter().filter(|usage| usage.state.leadership.is_own()).count();
        metric::PULSE_AGE.set(&[], self.pulse.as_ref().map_or(0.0, |pulse| pulse.age_s()));
        metric::WORKSPACES_LED.set(&[], led as f64);
        self.measure.refresh(usage, self.clock.now_ms()).await;
        metric::MEASURED_AT.set(&[], self.clock.now_ms() as f64 / 1e3);
    }

    /// Waits until the log of every open workspace has been processed, and until every open workspace that this server
    /// leads has processed all passed deadlines and all due plugin retries. A deadline is, for example, the end of a
    /// lease or of a deferral.
    pub async fn deadlines_passed(&self) {
        for OpenWorkspace { state, .. } in self.workspaces.usage() {
            state.deadlines.passed(state.folded.position(), self.clock.now_ms()).await;
            state.plugins.retries.passed(state.folded.position(), self.clock.now_ms()).await;
        }
    }

    /// Checks that the store responds. If the store is in a folder, also checks that the disk accepts writes.
    pub async fn health(&self) -> Result<()> {
        self.opener.health().await
    }

    /// Loads a plugin from its current files, for the operator of the store. No request may call this function. Returns
    /// whether the files differ from the version that was loaded before. If the files are rejected, the plugin stays
    /// unchanged.
    pub async fn reload_plugin(&self, name: &str) -> Result<bool> {
        let plugin = self.releases.plugins().find(name).ok_or_else(|| Error::not_found("plugin", name))?;
        self.releases.reload(plugin).await
    }

    /// Loads the plugin versions that other servers on the store have released.
    pub async fn refresh_plugins(&self) -> Result<()> {
        self.releases.refresh().await
    }

    /// Waits a short time for the running operations and the pending work of every open workspace, then stops the
    /// workspaces and the exchange with the other servers.
    pub async fn close(&self) {
        self.workspaces.stop_all().await;
        if let Some(pulse) = &self.pulse {
            pulse.end().await;
        }
    }

    /// Starts the exchange with the other servers of the store, which runs until the engine is closed or dropped.
    fn begin_pulse(engine: &Arc<Engine>) {
        let Some(pulse) = engine.pulse.clone() else { return };
        let (reading, taking) = (Arc::downgrade(engine), Arc::downgrade(engine));
        let open = move || reading.upgrade().map(|engine| engine.workspaces.usage());
        let take_over = |engine: Arc<Engine>, left| tokio::spawn(async move { engine.take_over(left).await });
        pulse.spawn(open, move |left| drop(taking.upgrade().map(|engine| take_over(engine, left))));
    }

    /// Returns whether this server runs the plugins and timers of a workspace.
    #[cfg(test)]
    pub(crate) fn leads(&self, id: &str) -> bool {
        self.workspaces.usage().iter().any(|usage| *usage.id == *id && usage.state.leadership.is_own())
    }

    /// Opens workspaces whose leader is no longer alive, so that their plugins and timers continue on this server. If a
    /// workspace cannot be opened, the opener logs the error, and the next call tries again. If a workspace no longer
    /// exists, deletes the progress of the workspace.
    async fn take_over(&self, left: Vec<Arc<str>>) {
        for id in left {
            if let Err(Error::NotFound { .. }) = self.runtime(&id).await
                && let Err(error) = self.opener.forget_progress(&id).await
            {
                tracing::debug!(%error, workspace = %id, "failed to delete the progress of a deleted workspace");
            }
        }
    }

    /// Returns the settings that the engine was opened with.
    pub fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// Returns the status of the running engine.
    pub fn running(&self) -> EngineStatus {
        let is_exclusive = self.opener.is_exclusive();
        EngineStatus { started_at: self.started_at, now: self.clock.now_ms(), is_exclusive }
    }
}
