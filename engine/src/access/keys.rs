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

impl Access {
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
        let deleted = self.control.delete_key(workspace_id, key_id).await?;
        let mut known = self.known();
        known.revocations += 1;
        known.by_hash.retain(|_, key| *key.id != *key_id);
        drop(known);
        if deleted { Ok(()) } else { Err(Error::not_found("key", key_id)) }
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
