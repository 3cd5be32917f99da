//! Access control over the control database: workspaces, their members, and the keys and tokens that grant access.
//!
//! This module does not access the contents of workspaces.
//!
//! * **A key has no more rights than its creator.** If a key creates another key, the new key has no scopes that its
//!   creator lacks, and does not outlive its creator. A key can revoke only itself and keys that it could have created.
//!   A key works only while all its ancestors exist: a revocation deletes one record, and all keys derived from the
//!   revoked key stop working, even keys that are created during the revocation. The exception is a revocation that
//!   keeps derived keys: these keys get other ancestors. The invitations that a key created end with the key, and the
//!   invitations that an owner created end when the owner loses the role. A key grants access to the workspace in which
//!   it was created. Keys with `all_workspaces`, and keys from before that setting existed, grant access to all
//!   workspaces of their user.
//! * **Users join a workspace only by their own decision.** Only the user whose identity provider confirms the address
//!   can accept an invitation, in one transaction that also checks that the inviting key exists. If the settings give
//!   users a workspace of their own, a user's first token creates this workspace, even if the user has an invitation.
//!   A later token creates this workspace again if it is missing. A user who is removed from all other workspaces
//!   therefore still has a workspace.
//! * **Access is checked on every request.** A server that is alone on its store caches keys and users until a record
//!   changes. With several servers, each request reads key, user, memberships and plan with one query. The result of
//!   checking a token's signature is cached until the token expires, its issuer's keys change or the cache is full. The
//!   user of a token is checked on every request, like the user of a key.

pub mod admission;
pub mod codes;
pub mod credential;
pub mod credential_cache;
pub mod grant;
pub mod invitations;
pub mod keys;
pub mod licenses;
pub mod members;
pub mod plans;
pub mod provision;
pub mod recovery;
pub mod restore;
mod rotation;
pub mod settings;
pub mod signing;
pub mod stored_caller;
pub mod tokens;
pub mod workspaces;

use std::sync::{Arc, OnceLock};

use aws_lc_rs::signature::Ed25519KeyPair;
use credential_cache::{CachedKey, CachedUser, CredentialCache, hash_of};
use grant::HeldRights;
use settings::AccessSettings;
use signing::SigningKeys;
use tokens::Tokens;
use tokens::key_set::FetchKeys;

use crate::clock::Clock;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{self, Caller, Membership, Scope, WorkspaceRecord};
use crate::named_locks::NamedLocks;
use crate::store::{Database, Store};

/// The minimum time between two updates of a key's last use, in milliseconds.
const TOUCH_MS: i64 = 60_000;

/// The access control of a store: the control database, the cache of its records in this process, and the operator's
/// settings.
pub struct Access {
    control: Database,
    clock: Arc<dyn Clock>,
    exclusive: bool,
    known: CredentialCache,
    held: HeldRights,
    signing: SigningKeys,
    /// The key pair that signs license responses. The first use reads the key pair from the store, or creates it.
    license_pair: OnceLock<Arc<Ed25519KeyPair>>,
    policy: OnceLock<Policy>,
    /// One lock for each user and each workspace. A change that could conflict with other changes holds the lock of its
    /// user or workspace. The store resolves conflicts between servers; the locks only avoid retries within one server.
    change_locks: Arc<NamedLocks>,
}

/// The operator's settings, and the token verifier that is created from the settings.
#[derive(Default)]
struct Policy {
    settings: AccessSettings,
    tokens: Tokens,
}

impl Access {
    pub async fn open(store: &Store, clock: Arc<dyn Clock>) -> Result<Access> {
        let control = store.control().await?;
        Ok(Access {
            control,
            clock,
            exclusive: store.is_exclusive(),
            known: CredentialCache::default(),
            held: HeldRights::default(),
            signing: SigningKeys::default(),
            license_pair: OnceLock::new(),
            policy: OnceLock::new(),
            change_locks: Arc::default(),
        })
    }

    /// Applies the operator's settings. Must be called before the first request. Returns an error message if the
    /// settings are invalid or were already applied.
    pub fn configure(&self, settings: AccessSettings, fetch: &Arc<dyn FetchKeys>) -> Result<(), String> {
        if !settings.plans.iter().any(|plan| plan.id == settings.default_plan) {
            return Err(format!("the default plan '{}' is not one of the configured plans", settings.default_plan));
        }
        let tokens = Tokens::new(&settings.issuers, fetch)?;
        self.policy.set(Policy { settings, tokens }).map_err(|_| "the access settings are already applied".to_owned())
    }

    /// Returns the control database.
    pub fn control(&self) -> &Database {
        &self.control
    }

    /// Completes a change of the control database, and then clears the cache, even if the outcome of the change is
    /// unknown. Later reads fill the cache again.
    async fn forgetting<T, E>(&self, change: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let changed = change.await;
        self.known.forget();
        changed
    }

    fn policy(&self) -> &Policy {
        self.policy.get_or_init(Policy::default)
    }

    /// Returns all workspaces of the store, oldest first.
    pub async fn workspaces(&self) -> Result<Vec<WorkspaceRecord>> {
        Ok(self.control.read_workspaces().await?)
    }

    pub async fn workspace(&self, id: &str) -> Result<WorkspaceRecord> {
        let found = self.control.read_workspace(id).await?;
        found.ok_or_else(|| Error::not_found("workspace", id))
    }

    /// Returns the caller that a bearer token identifies, in the given workspace. `None` selects the workspace of the
    /// key. For the token of an identity provider, `None` selects the first workspace that the user joined.
    pub async fn authenticate(&self, bearer: &str, workspace: Option<&str>) -> Result<Caller> {
        match access::is_key(bearer) {
            true => self.key_caller(&hash_of(bearer), workspace).await,
            false => self.authenticate_token(bearer, workspace).await,
        }
    }

    async fn key_caller(&self, hash: &str, workspace: Option<&str>) -> Result<Caller> {
        let known = self.find_key(hash).await?;
        let CachedKey { key, .. } = &*known;
        let now = self.clock.now_ms();
        let caller = self.caller_of(&known, workspace, now)?;
        if key.last_used_at.is_none_or(|last| last + TOUCH_MS <= now) {
            self.known.touched(&key.hash, now);
            // A failure to record the use must not reject the caller.
            if let Err(error) = self.control.record_key_use(&key.id, now).await {
                tracing::warn!(%error, key = %key.id, "failed to write the last use of a key");
            }
        }
        Ok(caller)
    }

    /// Returns the caller that a key identifies, if this server has read the key from the store within the last five
    /// minutes. Returns `None` if the key has expired or grants no access to the workspace. Always returns `None` if
    /// the server is alone on its store.
    pub fn remembered(&self, bearer: &str, workspace: Option<&str>) -> Option<Caller> {
        let now = self.clock.now_ms();
        let known = self.known.remembered(&hash_of(bearer), now)?;
        self.caller_of(&known, workspace, now).ok()
    }

    fn caller_of(&self, known: &CachedKey, workspace: Option<&str>, now: i64) -> Result<Caller> {
        let CachedKey { key, user } = known;
        if key.has_expired(now) {
            return Err(Error::Unauthenticated("the key has expired"));
        }
        let workspace = workspace.unwrap_or(&key.workspace_id);
        if !key.opens_all && *workspace != *key.workspace_id {
            // The error is the same for other workspaces of the user, workspaces of other users, and unknown
            // workspaces.
            return Err(Error::forbidden(ErrorCode::OtherWorkspace, "the key is valid only in its own workspace"));
        }
        let member = user.member_of(workspace)?;
        let caller = self.caller(user, member, key.scopes.as_slice().into(), now);
        let (key_id, opens_all) = (Some(key.id.clone()), key.opens_all);
        let above = key.ancestors.iter().chain(&key.derived_from).cloned().collect();
        Ok(Caller { key_id, opens_all, agents: key.agents.clone(), above, expires_at: key.expires_at, ..caller })
    }

    async fn authenticate_token(&self, bearer: &str, workspace: Option<&str>) -> Result<Caller> {
        let now = self.clock.now_ms();
        let identity = self.policy().tokens.verify(bearer, now).await?;
        let user = self.admit(&identity).await?;
        let member = match workspace {
            Some(workspace) => user.member_of(workspace)?,
            None => user.memberships.first().ok_or_else(credential_cache::without_workspace)?,
        };
        let caller = self.caller(&user, member, self.known.all_scopes.clone(), now);
        Ok(Caller { session: identity.session.clone(), expires_at: Some(identity.expires_at), ..caller })
    }

    fn caller(&self, user: &CachedUser, member: &Membership, scopes: Arc<[Scope]>, now: i64) -> Caller {
        Caller {
            user_id: user.record.id.clone(),
            workspace_id: member.workspace_id.clone(),
            key_id: None,
            session: None,
            scopes,
            opens_all: true,
            agents: None,
            above: [].into(),
            expires_at: None,
            role: member.role,
            is_lapsed: user.plan.is_lapsed(now),
            plan: user.plan.clone(),
        }
    }

    async fn find_key(&self, hash: &str) -> Result<Arc<CachedKey>> {
        let changes = self.known.changes();
        if let Some(known) = self.known.key(hash) {
            return Ok(known);
        }
        let found = self.control.find_key(hash).await?;
        let (key, user) = found.ok_or(Error::Unauthenticated("the bearer token is not valid"))?;
        let user = Arc::new(CachedUser::new(user, &self.policy().settings));
        let key = Arc::new(CachedKey { key: Arc::new(key), user });
        match self.exclusive {
            true => self.known.keep_key(hash, &key, changes),
            false => self.known.remember(hash, &key, self.clock.now_ms()),
        }
        Ok(key)
    }
}
