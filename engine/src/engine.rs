//! The engine: a store, the workspaces in it that are open, and who may enter them.

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
use crate::model::access::{Caller, WorkspaceRecord};
use crate::opening::Opener;
use crate::registry::{Registry, Usage};
use crate::store::Store;
use crate::workspace::Entered;
use crate::workspace::files::{CheckedLink, LinkedUpload, SignedLink, StoredFile, check_link, refusing};
use crate::workspace::rights::{Listener, Right, Uploader, check};
use crate::workspace::runtime::Runtime;

/// The engine. Cheap to share, and one is enough for a process.
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

    /// Lets workspaces that are opened from now on search by meaning too. What is given first stays.
    pub fn embed_with(&self, embed: Arc<dyn Embed>) {
        self.opener.embed_with(embed);
    }

    /// On an empty store, makes the workspace `default` with an owner and a key of every scope, all at once: of several
    /// servers that start on one store, one makes them.
    ///
    /// On a store that had its first start, a chosen key takes the place of the key that was made then, where that was
    /// never used: a server that died before it could show the key leaves a store that nobody can enter. A key that
    /// was used, or revoked, is left alone.
    pub async fn first_start(&self, chosen_key: Option<String>) -> Result<Option<FirstStart>> {
        self.access.first_start(chosen_key).await
    }

    /// Makes a workspace with an owner, and a key that holds every scope.
    pub async fn provision(&self, name: &str, chosen_key: Option<String>) -> Result<(WorkspaceRecord, String)> {
        self.access.provision(name, chosen_key).await
    }

    /// Lets an operator's decisions about access hold, from before the first request on: whose tokens count, who gets a
    /// workspace, which plans there are. Says what is wrong with them.
    pub fn decide_access(&self, settings: AccessSettings, fetch: &Arc<dyn FetchKeys>) -> Result<(), String> {
        self.access.decide(settings, fetch)
    }

    /// Who shows this bearer token.
    pub async fn authenticate(&self, bearer: &str) -> Result<Caller> {
        self.access.authenticate(bearer, None).await
    }

    /// Who shows this bearer token, in one of the workspaces that they are a member of.
    pub async fn authenticate_in(&self, bearer: &str, workspace: Option<&str>) -> Result<Caller> {
        self.access.authenticate(bearer, workspace).await
    }

    /// The user who shows this token, in whatever workspace or in none: they answer invitations.
    pub async fn signed_in(&self, bearer: &str) -> Result<SignedIn> {
        self.access.signed_in(bearer).await
    }

    /// Gives the key that a sign-in code stands for: whoever shows it needs nothing else, and gets it once.
    pub async fn exchange_sign_in_code(&self, code: &str, name: Option<String>) -> Result<CreatedKey> {
        self.access.exchange_sign_in_code(code, name).await
    }

    /// The Ed25519 key by which answers about licenses are checked.
    pub async fn license_key(&self) -> Result<Vec<u8>> {
        self.access.license_key().await
    }

    /// The caller's workspace, by a right that the caller has.
    pub async fn enter<R: Right>(&self, caller: Caller) -> Result<R> {
        check::<R>(&caller)?;
        if R::IS_OPERATOR && !self.access.is_first(&caller.workspace_id).await? {
            let message = "only owners of the installation's first workspace may do this";
            return Err(Error::forbidden("operator_required", message));
        }
        let runtime = self.runtime(&caller.workspace_id).await?;
        R::of(Entered::new(self.access.clone(), runtime, caller))
    }

    /// The right to listen of whoever shows this bearer token, or the credential that was handed out for it.
    pub async fn listen(&self, shown: &str) -> Result<Listener> {
        if !Access::is_handed_out(shown) {
            return self.enter(self.authenticate(shown).await?).await;
        }
        let listening = self.access.listening(shown).await?;
        let runtime = self.runtime(&listening.caller.workspace_id).await?;
        let entered = Entered::new(self.access.clone(), runtime, listening.caller.clone());
        Ok(Listener::of(entered)?.for_agents(&listening))
    }

    /// The file that a link leads to. Who has the link needs no other right.
    pub async fn linked_file(&self, link: &SignedLink) -> Result<StoredFile> {
        check_link(&self.access, link, self.clock.now_ms()).await?;
        let workspace_id: Arc<str> = link.path.split('/').next().unwrap_or_default().into();
        let runtime = self.runtime(&workspace_id).await?;
        StoredFile::find(&runtime.state, link).await
    }

    /// The upload that a link was made for. It needs no other right than what the link's maker has still.
    pub async fn linked_upload(&self, token: &str) -> Result<LinkedUpload> {
        let (link, caller) = CheckedLink::check(&self.access, token, self.clock.now_ms()).await?;
        let right: Uploader = self.enter(caller).await.map_err(refusing)?;
        link.upload(right).await
    }

    /// The workspace as it runs here, opened on first use.
    async fn runtime(&self, workspace_id: &Arc<str>) -> Result<Arc<Runtime>> {
        let (opener, id) = (self.opener.clone(), workspace_id.clone());
        let open = || async move { opener.open(&id).await };
        self.workspaces.enter(workspace_id, self.clock.now_ms(), open).await
    }

    /// How many workspaces could not be loaded when they were asked for last.
    pub fn workspaces_failed(&self) -> usize {
        self.opener.failed()
    }

    /// Opens every workspace that there is memory for, so that the first request to each is as fast as the next. One
    /// that cannot be loaded keeps none of the others closed.
    pub async fn open_all(&self) -> Result<()> {
        let mut bytes = 0;
        for workspace in self.access.workspaces().await? {
            // Why it failed is written down where it was loaded.
            let Ok(runtime) = self.runtime(&workspace.id).await else { continue };
            bytes += runtime.state.size_bytes();
            if self.settings.resident_bytes > 0 && bytes > self.settings.resident_bytes {
                break;
            }
        }
        Ok(())
    }

    /// Where open workspaces take more memory than they may, closes some that nobody has used for a while, the one
    /// that was used least recently first. Returns how many are open now.
    pub async fn close_idle(&self) -> Result<usize> {
        let usage = self.workspaces.usage();
        let measured = move || usage.into_iter().map(|usage| (usage.state.size_bytes(), usage)).collect();
        let measured: Vec<(usize, Usage)> = tokio::task::spawn_blocking(measured).await.map_err(Error::internal)?;
        let mut open = measured.len();
        let mut bytes: usize = measured.iter().map(|(bytes, _)| bytes).sum();
        let before = self.clock.now_ms().saturating_sub(self.settings.idle_ms);
        for (size, usage) in measured {
            let enough = self.settings.resident_bytes == 0 || bytes <= self.settings.resident_bytes;
            if enough || usage.last_used > before {
                break;
            }
            let Usage { id, state, .. } = usage;
            // Leases that end and tasks that wake do so by timers, which run while it is open.
            if state.deadlines.is_awaited() {
                continue;
            }
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

    /// Returns when all that is due by now has been seen to in every open workspace: leases that ended, and tasks that were
    /// to wake.
    pub async fn deadlines_passed(&self) {
        for Usage { state, .. } in self.workspaces.usage() {
            state.deadlines.passed(state.folded.position(), self.clock.now_ms()).await;
        }
    }

    /// Whether the store answers.
    pub async fn health(&self) -> Result<()> {
        self.opener.health().await
    }

    /// Finishes what is under way in every workspace.
    pub async fn close(&self) {
        self.workspaces.stop_all().await;
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}
