//! Keys: making, listing and revoking them. The secret is told once and never kept.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Access;
use crate::error::{Error, Result};
use crate::model::access::{self, KeyRecord, Scope};

/// A key that is to be made.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// Milliseconds since the epoch.
    pub expires_at: Option<i64>,
}

/// A key that was made.
#[derive(Debug, Clone)]
pub struct CreatedKey {
    pub record: KeyRecord,
    /// Not there where the key was made before: it was told then, and is not kept.
    pub secret: Option<String>,
}

impl Access {
    /// Makes a key for a user of a workspace, unless there is one of the id that is given.
    pub async fn create_key(
        &self,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
        id: Option<Arc<str>>,
    ) -> Result<CreatedKey> {
        let secret = access::key_from(self.clock.random());
        let id = id.unwrap_or_else(|| self.clock.new_id().to_string().into());
        let record = record_of(&secret, id, workspace_id.clone(), user_id.clone(), new, self.clock.now_ms());
        let kept = self.control.create_key(&record).await?;
        let is_new = kept.hash == record.hash;
        Ok(CreatedKey { record: kept, secret: is_new.then_some(secret) })
    }

    /// Makes a key for a user of a workspace. Returns the record and the secret.
    pub async fn write_key(
        &self,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
    ) -> Result<(KeyRecord, String)> {
        let (record, key) = self.new_key(workspace_id, user_id, new, None);
        self.control.write_key(&record).await?;
        Ok((record, key))
    }

    /// The keys of a workspace, newest first.
    pub async fn keys_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        Ok(self.control.read_keys(workspace_id).await?)
    }

    /// Revokes a key of a workspace at once.
    pub async fn revoke_key(&self, workspace_id: &str, key_id: &str) -> Result<()> {
        let deleted = self.control.delete_key(workspace_id, key_id).await;
        // Also where it is not known whether the key was deleted: what is forgotten is read again.
        self.forget(key_id);
        if deleted? {
            self.held.revoke(key_id);
            return Ok(());
        }
        Err(Error::not_found("key", key_id))
    }

    fn forget(&self, key_id: &str) {
        let mut known = self.known();
        known.revocations += 1;
        known.by_hash.retain(|_, key| *key.id != *key_id);
    }
}

/// What is kept of a key.
pub(super) fn record_of(
    key: &str,
    id: Arc<str>,
    workspace_id: Arc<str>,
    user_id: Arc<str>,
    new: NewKey,
    now: i64,
) -> KeyRecord {
    KeyRecord {
        id,
        workspace_id,
        user_id,
        name: new.name,
        scopes: new.scopes,
        display: access::display_of(key),
        hash: hash_of(key),
        created_at: now,
        expires_at: new.expires_at,
        last_used_at: None,
    }
}

/// SHA-256 of a key, in hexadecimal: all that is ever stored of it.
pub(super) fn hash_of(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}
