//! Keys: making, listing and revoking them. The secret is answered once and never kept.

use std::sync::Arc;

use super::answers::RequestId;
use super::entered::Operation;
use super::rights::{Owner, Reader};
pub use crate::access::keys::{CreatedKey, NewKey};
use crate::error::{Error, Result};
use crate::model::access::{Caller, KeyRecord, Scope};

impl Reader {
    /// The workspace's keys, newest first.
    pub async fn list_keys(&self) -> Result<Vec<KeyRecord>> {
        self.entered.keys().await
    }

    /// The key that this request was made with.
    pub async fn own_key(&self) -> Result<KeyRecord> {
        let own: Option<&Arc<str>> = self.caller().key_id.as_ref();
        let keys = self.list_keys().await?;
        keys.into_iter().find(|key| Some(&key.id) == own).ok_or_else(|| Error::not_found("key", "self"))
    }
}

impl Owner {
    /// Makes a key that can do no more than the caller, and no longer. A request that may be repeated makes one key.
    pub async fn create_key(&self, new: NewKey, request: Option<&RequestId>) -> Result<CreatedKey> {
        let name = new.name.trim().to_owned();
        if name.is_empty() || name.chars().count() > 200 {
            return Err(Error::invalid_at("/name", "expected 1 to 200 characters"));
        }
        let now = self.entered.state().clock.now_ms();
        if new.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(Error::invalid_at("/expires_at", "expected a time to come"));
        }
        may_make(self.caller(), &new.scopes, new.expires_at)?;
        let mut scopes = new.scopes;
        scopes.sort_unstable();
        scopes.dedup();
        let new = NewKey { name, scopes, expires_at: new.expires_at };
        let id = request.map(|request| self.entered.derived_id(request, "key").into());
        Operation::perform(self, |operation| async move {
            let (workspace_id, user_id) = (&operation.entered().record().id, &operation.caller().user_id);
            operation.access().create_key(workspace_id, user_id, new, id).await
        })
        .await
    }

    /// Revokes a key at once: the caller's own, or one that the caller could have made.
    pub async fn revoke_key(&self, key_id: &str) -> Result<()> {
        let keys = self.entered.keys().await?;
        let key = keys.into_iter().find(|key| *key.id == *key_id).ok_or_else(|| Error::not_found("key", key_id))?;
        if self.caller().key_id() != Some(key_id) {
            may_make(self.caller(), &key.scopes, key.expires_at)?;
        }
        Operation::perform(self, |operation| async move {
            operation.access().revoke_key(&operation.entered().record().id, &key.id).await
        })
        .await
    }
}

/// A key makes none, and revokes none, that can do more than itself or outlives it.
fn may_make(caller: &Caller, scopes: &[Scope], expires_at: Option<i64>) -> Result<()> {
    let lacking = caller.lacking(scopes);
    if !lacking.is_empty() {
        return Err(Error::ScopesLacking { lacking });
    }
    if caller.is_outlived_by(expires_at) {
        let message = "a key makes and revokes none that outlives it".to_owned();
        return Err(Error::Forbidden { code: "outlives_caller", message });
    }
    Ok(())
}
