//! Keys: making, listing and revoking them. The secret is answered once and never kept.

use std::sync::Arc;

use super::Workspace;
pub use crate::access::keys::NewKey;
use crate::error::{Error, Result};
use crate::model::access::{KeyRecord, Scope};

impl Workspace {
    /// Makes a key with scopes that the caller holds. Answers the record and the secret.
    pub async fn create_key(&self, new: NewKey) -> Result<(KeyRecord, String)> {
        let name = new.name.trim();
        if name.is_empty() || name.chars().count() > 200 {
            return Err(Error::invalid_at("/name", "expected 1 to 200 characters"));
        }
        let now = self.state().clock.now_ms();
        if new.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(Error::invalid_at("/expires_at", "expected a time to come"));
        }
        let lacking: Vec<Scope> = new.scopes.iter().copied().filter(|scope| !self.caller.holds(*scope)).collect();
        if !lacking.is_empty() {
            return Err(Error::InsufficientScope { required: lacking });
        }
        let mut scopes = new.scopes;
        scopes.sort_unstable();
        scopes.dedup();
        let new = NewKey { name: name.to_owned(), scopes, expires_at: new.expires_at };
        self.access.write_key(&self.record().id, &self.caller.user_id, new).await
    }

    /// The workspace's keys, newest first.
    pub async fn list_keys(&self) -> Result<Vec<KeyRecord>> {
        self.access.keys_of(&self.record().id).await
    }

    /// Revokes a key at once.
    pub async fn revoke_key(&self, key_id: &str) -> Result<()> {
        self.access.revoke_key(&self.record().id, key_id).await
    }

    /// The key that this request was made with.
    pub async fn own_key(&self) -> Result<KeyRecord> {
        let own: Option<&Arc<str>> = self.caller.key_id.as_ref();
        let keys = self.list_keys().await?;
        keys.into_iter().find(|key| Some(&key.id) == own).ok_or_else(|| Error::not_found("key", "self"))
    }
}
