//! Creates, lists, rotates and revokes keys, and creates sign-in codes. The secret of a key is returned once, when the
//! key is created or is the successor of a rotated key. The key's record contains only the hash of the secret.

use std::sync::Arc;

use strum::VariantArray;

use super::call_context::{CallContext, Changing, Operation};
use super::responses::IdempotentRequest;
use super::rights::{AgentWriter, Owner, Reader, Writer};
pub use crate::access::codes::CreatedCode;
pub use crate::access::keys::{CreatedKey, DerivedKeys, NewKey};
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{Caller, KeyRecord, Role, Scope};
use crate::model::agent;

/// The maximum number of agents to which a key can be bound.
const MAX_AGENTS: usize = 100;

impl Reader {
    /// Returns the workspace's keys, newest first. Only owners see the keys of other users. A caller with a key that is
    /// bound to agents sees only this key.
    pub async fn list_keys(&self) -> Result<Vec<KeyRecord>> {
        let keys = self.context.keys().await?;
        Ok(keys.into_iter().filter(|key| sees(self.caller(), key)).collect())
    }

    /// Returns the key that authenticated this request. Fails if a token authenticated the request.
    pub async fn own_key(&self) -> Result<KeyRecord> {
        let own = self.caller().key_id().ok_or_else(|| Error::not_found("key", "self"))?;
        let keys = self.context.keys().await?;
        keys.into_iter().find(|key| *key.id == *own).ok_or_else(|| Error::not_found("key", "self"))
    }
}

impl Writer {
    /// Creates a key. The key may have no scope that the caller lacks or that the caller's plan does not cover, and may
    /// not expire after the caller's key. If `request` is repeated, returns the key that the first request created,
    /// without its secret.
    pub async fn create_key(&self, new: NewKey, request: Option<&IdempotentRequest>) -> Result<CreatedKey> {
        let new = checked(self.caller(), new, self.context.state().clock.now_ms())?;
        self.check_agents(new.agents.as_deref()).await?;
        let id = request.map(|request| self.context.derived_id(request, "key").into());
        Operation::perform(self, |operation| async move {
            let (workspace_id, user_id) = (&operation.context().record().id, &operation.caller().user_id);
            let origin = Some(operation.caller().origin());
            operation.access().create_key(None, workspace_id, user_id, new, id, origin).await
        })
        .await
    }

    /// Creates a sign-in code that is valid for `lives_ms` milliseconds. The code can be exchanged once for the key
    /// that `new` describes.
    pub async fn create_sign_in_code(&self, new: NewKey, lives_ms: i64) -> Result<CreatedCode> {
        let new = checked(self.caller(), new, self.context.state().clock.now_ms())?;
        Operation::perform(self, |operation| async move {
            operation.access().create_sign_in_code(operation.caller(), new, lives_ms).await
        })
        .await
    }

    /// Revokes a key, effective immediately. `derived` determines what happens to the keys that are derived from this
    /// key. Allowed for the caller's own key. Other keys must have properties with which the caller may create a key,
    /// and must belong to the caller's user, unless the caller is an owner.
    pub async fn revoke_key(&self, key_id: &str, derived: DerivedKeys) -> Result<()> {
        revoke(self, key_id, derived).await
    }

    /// Creates the successor of a key of the caller's user. The replaced key expires after `ends_after_ms`
    /// milliseconds, unless the key expires earlier anyway. Allowed for the caller's own key, and for keys that the
    /// caller could have created. If `request` is repeated, returns the successor that the first request created,
    /// without its secret.
    pub async fn rotate_key(
        &self,
        key_id: &str,
        ends_after_ms: i64,
        request: Option<&IdempotentRequest>,
    ) -> Result<CreatedKey> {
        let caller = self.caller();
        let key = revocable(&self.context, key_id).await?;
        if *key.user_id != *caller.user_id() {
            let message = "a key of another user can be revoked but not rotated: only that user may know the new key";
            return Err(Error::forbidden(ErrorCode::OtherUser, message));
        }
        let unpaid = caller.unpaid(&key.scopes);
        if !unpaid.is_empty() {
            return Err(Error::SubscriptionRequired { required: unpaid });
        }
        let id = request.map(|request| self.context.derived_id(request, "key").into());
        Operation::perform(self, move |operation| async move {
            let access = operation.context().access().clone();
            access.rotate_key(operation.caller(), &key.id, ends_after_ms, id).await
        })
        .await
    }

    /// Checks the agents to which a key is to be bound. Fails if the number of agents is not allowed, or if the
    /// workspace does not have one of these agents.
    async fn check_agents(&self, agents: Option<&[Arc<str>]>) -> Result<()> {
        let Some(agents) = agents else { return Ok(()) };
        if agents.is_empty() || agents.len() > MAX_AGENTS {
            return Err(Error::invalid_at("/agent_ids", format!("expected 1 to {MAX_AGENTS} ids")));
        }
        let state = self.context.state();
        state.refresh().await?;
        let is_known = |id: &Arc<str>| state.folded.get(id).is_some_and(|found| agent::is_agent(&found));
        let Some(index) = agents.iter().position(|id| !is_known(id)) else { return Ok(()) };
        Err(Error::invalid_at(format!("/agent_ids/{index}"), "the workspace has no agent with this id"))
    }
}

impl AgentWriter {
    /// Does the same as [`Writer::revoke_key`], except that a key that is bound to agents may revoke only itself.
    pub async fn revoke_key(&self, key_id: &str, derived: DerivedKeys) -> Result<()> {
        if self.caller().agents().is_some() && self.caller().key_id() != Some(key_id) {
            return Err(Error::forbidden(ErrorCode::AgentKey, "a key that is bound to agents can revoke only itself"));
        }
        revoke(self, key_id, derived).await
    }
}

async fn revoke(by: &impl Changing, key_id: &str, derived: DerivedKeys) -> Result<()> {
    let key = revocable(by.context(), key_id).await?;
    Operation::perform(by, move |operation| async move {
        let workspace_id = &operation.context().record().id;
        operation.access().revoke_key(workspace_id, &key.id, operation.caller().key_id(), derived).await
    })
    .await
}

/// Returns the key with an id, if the caller may revoke it: the caller's own key, or a key that the caller could have
/// created. Fails for other keys.
async fn revocable(context: &CallContext, key_id: &str) -> Result<KeyRecord> {
    let caller = context.caller();
    let mut known = context.keys().await?.into_iter().filter(|key| decides_on(caller, key));
    let key = known.find(|key| *key.id == *key_id).ok_or_else(|| Error::not_found("key", key_id))?;
    if caller.key_id() != Some(key_id) {
        may_make(caller, &key.scopes, key.expires_at, key.opens_all)?;
    }
    Ok(key)
}

impl Owner {
    /// Creates a key. See [`Writer::create_key`].
    pub async fn create_key(&self, new: NewKey, request: Option<&IdempotentRequest>) -> Result<CreatedKey> {
        self.as_writer().create_key(new, request).await
    }

    /// Revokes a key. See [`Writer::revoke_key`].
    pub async fn revoke_key(&self, key_id: &str, derived: DerivedKeys) -> Result<()> {
        self.as_writer().revoke_key(key_id, derived).await
    }
}

/// Returns whether the caller may see a key. A caller with a key that is bound to agents may see only this key.
fn sees(caller: &Caller, key: &KeyRecord) -> bool {
    match caller.agents() {
        Some(_) => caller.key_id() == Some(&key.id),
        None => decides_on(caller, key),
    }
}

/// Returns whether the caller may see and revoke a key. Only owners may see and revoke the keys of other users.
fn decides_on(caller: &Caller, key: &KeyRecord) -> bool {
    caller.role() == Role::Owner || *key.user_id == *caller.user_id()
}

/// Validates a new key, and checks that the caller may create it.
fn checked(caller: &Caller, new: NewKey, now: i64) -> Result<NewKey> {
    let name = new.name.trim().to_owned();
    may_make(caller, &new.scopes, new.expires_at, new.opens_all)?;
    let unpaid = caller.unpaid(&new.scopes);
    if !unpaid.is_empty() {
        return Err(Error::SubscriptionRequired { required: unpaid });
    }
    if name.is_empty() || name.chars().count() > 200 {
        return Err(Error::invalid_at("/name", "expected 1 to 200 characters, not only white space"));
    }
    if new.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Error::invalid_at("/expires_at", "expected a time in the future"));
    }
    let mut scopes = new.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    if new.agents.is_some() && new.opens_all {
        let message = "a key that is bound to agents cannot be valid for all workspaces";
        return Err(Error::invalid_at("/all_workspaces", message));
    }
    Ok(NewKey { name, scopes, ..new })
}

/// Checks that the caller may create or revoke a key with these properties. The key may have no scope that the caller
/// lacks, and may not expire after the caller's key. A key for all workspaces requires an owner who holds every scope
/// and uses a token or a key for all workspaces.
fn may_make(caller: &Caller, scopes: &[Scope], expires_at: Option<i64>, opens_all: bool) -> Result<()> {
    if opens_all && !(caller.opens_all() && caller.role() == Role::Owner && caller.lacking(Scope::VARIANTS).is_empty())
    {
        let message = "only an owner with every scope can create or revoke a key for all workspaces, and only with a \
                       token or with a key for all workspaces";
        return Err(Error::forbidden(ErrorCode::AllWorkspaces, message));
    }
    let lacking = caller.lacking(scopes);
    if !lacking.is_empty() {
        return Err(Error::ScopesLacking { lacking });
    }
    if caller.is_outlived_by(expires_at) {
        let message = "a key cannot create, rotate or revoke a key that expires later or never".to_owned();
        return Err(Error::Forbidden { code: ErrorCode::OutlivesCaller, message });
    }
    Ok(())
}
