//! The engine: a store, the open workspaces in it, and access control.

use std::sync::Arc;

use crate::access::Access;
use crate::access::invitations::SignedIn;
use crate::access::keys::CreatedKey;
use crate::access::provision::FirstStart;
use crate::access::settings::AccessSettings;
use crate::access::tokens::key_set::FetchKeys;
use crate::clock::Clock;
use crate::core::Settings;
use crate::core::plugins::Plugins;
use crate::error::{Error, Result};
use crate::hook::Embed;
use crate::model::access::{Caller, KeyRecord, Membership, UserRecord, WorkspaceRecord};
use crate::opening::Opener;
use crate::registry::{Registry, Usage};
use crate::store::Store;
use crate::workspace::CallContext;
use crate::workspace::files::{CheckedLink, LinkedUpload, SignedLink, StoredFile, check_link, refusing};
use crate::workspace::offline::Offline;
use crate::workspace::rights::{Listener, Right, Uploader, check};
use crate::workspace::runtime::Runtime;

/// The entry point to the workspaces of one store. An engine is cheap to share, so a process needs only one.
pub struct Engine {
    access: Arc<Access>,
    clock: Arc<dyn Clock>,
    settings: Arc<Settings>,
    opener: Arc<Opener>,
    workspaces: Registry,
}

impl Engine {
    pub async fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        settings: Settings,
        plugins: Plugins,
    ) -> Result<Arc<Engine>> {
        let access = Arc::new(Access::open(&store, clock.clone()).await?);
        let (plugins, settings) = (Arc::new(plugins), Arc::new(settings));
        let opener = Opener::new(store, access.clone(), clock.clone(), settings.clone(), plugins);
        let (opener, workspaces) = (Arc::new(opener), Registry::default());
        Ok(Arc::new(Engine { access, clock, settings, opener, workspaces }))
    }

    /// Enables vector search for workspaces opened after this call. Only the first call has an effect.
    pub fn embed_with(&self, embed: Arc<dyn Embed>) {
        self.opener.embed_with(embed);
    }

    /// On an empty store, creates the workspace `default` with an owner and a key that holds every scope. The creation
    /// is atomic: if several servers start on one store, only one of them creates the workspace.
    ///
    /// If a first start has already created the workspace, `chosen_key` replaces its first key, provided that key was
    /// never used. Without this, a server that stops before showing the first key would leave a store that nobody can
    /// enter. A first key that was used or revoked stays as it is.
    pub async fn first_start(&self, chosen_key: Option<String>) -> Result<Option<FirstStart>> {
        self.access.first_start(chosen_key).await
    }

    /// Creates a workspace with an owner and a key that holds every scope.
    pub async fn provision(&self, name: &str, chosen_key: Option<String>) -> Result<(WorkspaceRecord, String)> {
        self.access.provision(name, chosen_key).await
    }

    /// Applies the operator's access settings: trusted token issuers, which users get a workspace, and the plans. Must
    /// be called before the first request. Returns a message if the settings are invalid.
    pub fn decide_access(&self, settings: AccessSettings, fetch: &Arc<dyn FetchKeys>) -> Result<(), String> {
        self.access.decide(settings, fetch)
    }

    /// Returns the caller that a bearer token identifies.
    pub async fn authenticate(&self, bearer: &str) -> Result<Caller> {
        self.access.authenticate(bearer, None).await
    }

    /// Returns the caller that a bearer token identifies, in the given workspace. Fails if the caller is not a member
    /// of that workspace. `None` selects the key's own workspace, or the first workspace that the user joined.
    pub async fn authenticate_in(&self, bearer: &str, workspace: Option<&str>) -> Result<Caller> {
        self.access.authenticate(bearer, workspace).await
    }

    /// Returns the user that a token identifies. The user may have no workspace yet, and can accept or decline
    /// invitations.
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
        check::<R>(&caller)?;
        if R::IS_OPERATOR && !self.access.is_first(&caller.workspace_id).await? {
            let message = "only owners of the installation's first workspace may do this";
            return Err(Error::forbidden("operator_required", message));
        }
        let runtime = self.runtime(&caller.workspace_id).await?;
        R::of(CallContext::new(self.access.clone(), runtime, caller))
    }

    /// Returns all workspaces of the store, oldest first.
    pub async fn workspaces(&self) -> Result<Vec<WorkspaceRecord>> {
        self.access.workspaces().await
    }

    /// Opens a workspace for the operator of the store. The workspace must not be open in this process or another one.
    /// No request may lead here: the handle appends what otherwise only the program itself appends.
    pub async fn offline(&self, workspace_id: &str) -> Result<Offline> {
        self.opener.open_offline(&workspace_id.into()).await
    }

    /// Creates a workspace with the id that it has in another store. If `with_key` is set, returns a key for its owner
    /// that holds every scope.
    pub async fn restore_workspace(&self, workspace: &WorkspaceRecord, with_key: bool) -> Result<Option<String>> {
        self.access.restore_workspace(workspace, with_key).await
    }

    /// Returns the members of a workspace with their users, for the operator of the store.
    pub async fn people_of(&self, workspace_id: &str) -> Result<Vec<(Membership, UserRecord)>> {
        self.access.people_of(workspace_id).await
    }

    /// Returns the keys of a workspace, for the operator of the store.
    pub async fn key_records_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        self.access.key_records_of(workspace_id).await
    }

    /// Adds a member that another store had, unless they are a member. Returns whether the member is new.
    pub async fn restore_member(&self, member: &Membership, user: &UserRecord) -> Result<bool> {
        self.access.restore_member(member, user).await
    }

    /// Adds a key that another store had, unless its id or its secret is known. Returns whether the key is new.
    pub async fn restore_key(&self, key: &KeyRecord) -> Result<bool> {
        self.access.restore_key(key).await
    }

    /// Returns the right to listen. `shown` is a bearer token or a credential issued by [`Listener::connect`].
    pub async fn listen(&self, shown: &str) -> Result<Listener> {
        if !Access::is_handed_out(shown) {
            return self.enter(self.authenticate(shown).await?).await;
        }
        let listening = self.access.listening(shown).await?;
        let runtime = self.runtime(&listening.caller.workspace_id).await?;
        let context = CallContext::new(self.access.clone(), runtime, listening.caller.clone());
        Ok(Listener::of(context)?.for_agents(&listening))
    }

    /// Returns the file that a signed link names. The link is the only credential needed.
    pub async fn linked_file(&self, link: &SignedLink) -> Result<StoredFile> {
        check_link(&self.access, link, self.clock.now_ms()).await?;
        let workspace_id: Arc<str> = link.path.split('/').next().unwrap_or_default().into();
        let runtime = self.runtime(&workspace_id).await?;
        StoredFile::find(&runtime.state, link).await
    }

    /// Returns the upload that a signed link names. Fails if the creator of the link no longer has the right to upload.
    pub async fn linked_upload(&self, token: &str) -> Result<LinkedUpload> {
        let (link, caller) = CheckedLink::check(&self.access, token, self.clock.now_ms()).await?;
        let right: Uploader = self.enter(caller).await.map_err(refusing)?;
        link.upload(right).await
    }

    /// Returns the runtime of a workspace, opening the workspace on first use.
    async fn runtime(&self, workspace_id: &Arc<str>) -> Result<Arc<Runtime>> {
        let (opener, id) = (self.opener.clone(), workspace_id.clone());
        let open = || async move { opener.open(&id).await };
        self.workspaces.enter(workspace_id, self.clock.now_ms(), open).await
    }

    /// Returns the number of workspaces whose last attempt to load failed.
    pub fn workspaces_failed(&self) -> usize {
        self.opener.failed()
    }

    /// Opens workspaces until their memory limit is reached, so that the first request to a workspace is as fast as
    /// later requests. Skips workspaces that cannot be loaded.
    pub async fn open_all(&self) -> Result<()> {
        let mut bytes = 0;
        for workspace in self.access.workspaces().await? {
            // The loader has logged the error.
            let Ok(runtime) = self.runtime(&workspace.id).await else { continue };
            bytes += runtime.state.size_bytes();
            if self.settings.resident_bytes > 0 && bytes > self.settings.resident_bytes {
                break;
            }
        }
        Ok(())
    }

    /// Closes idle workspaces, least recently used first, until the open workspaces fit their memory limit. Returns the
    /// number of workspaces that stay open.
    pub async fn close_idle(&self) -> Result<usize> {
        let usage = self.workspaces.usage();
        let measured = move || usage.into_iter().map(|usage| (usage.state.size_bytes(), usage)).collect();
        let measured: Vec<(usize, Usage)> = tokio::task::spawn_blocking(measured).await.map_err(Error::internal)?;
        let mut open = measured.len();
        let mut bytes: usize = measured.iter().map(|(bytes, _)| bytes).sum();
        let cutoff = self.clock.now_ms().saturating_sub(self.settings.idle_ms);
        for (size, usage) in measured {
            let enough = self.settings.resident_bytes == 0 || bytes <= self.settings.resident_bytes;
            if enough || usage.last_used > cutoff {
                break;
            }
            let Usage { id, state, .. } = usage;
            // Leases expire and tasks wake up by timers, which run only while the workspace is open.
            if state.deadlines.is_awaited() {
                continue;
            }
            drop(state);
            if let Some(closing) = self.workspaces.close(&id, cutoff) {
                closing.await.map_err(Error::internal)?;
                tracing::info!(workspace = %id, "closed an idle workspace to free memory");
                (open, bytes) = (open - 1, bytes - size);
            }
        }
        metrics::gauge!("foldwork_workspaces_open").set(open as f64);
        metrics::gauge!("foldwork_resident_bytes").set(bytes as f64);
        Ok(open)
    }

    /// Waits until every open workspace has processed the deadlines that have passed by now: expired leases, and tasks
    /// due to wake up.
    pub async fn deadlines_passed(&self) {
        for Usage { state, .. } in self.workspaces.usage() {
            state.deadlines.passed(state.folded.position(), self.clock.now_ms()).await;
        }
    }

    /// Checks that the store responds.
    pub async fn health(&self) -> Result<()> {
        self.opener.health().await
    }

    /// Finishes the pending work of every open workspace, then stops the workspaces.
    pub async fn close(&self) {
        self.workspaces.stop_all().await;
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}
