//! Keys: making, listing and revoking them. The secret is told once and never kept.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::Access;
use crate::error::{Error, Result};
use crate::model::access::{self, KeyRecord, Scope};
use crate::store;
use crate::store::members::Ground;
use crate::store::retry;

/// Between a request's beginning and its end its key was revoked, or its user has left.
pub(super) const GONE: Error = Error::Unauthenticated("the bearer token is not valid any more");

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
    /// Makes a key for somebody in a workspace, unless there is one of the id that is given. It ends with its origin.
    pub async fn create_key(
        &self,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
        id: Option<Arc<str>>,
        origin: Option<Arc<str>>,
    ) -> Result<CreatedKey> {
        let secret = access::key_from(self.clock.random());
        let id = id.unwrap_or_else(|| self.clock.new_id().to_string().into());
        let record = record_of(&secret, id, workspace_id.clone(), user_id.clone(), new, self.clock.now_ms());
        let record = KeyRecord { derived_from: origin, ..record };
        let _changing = self.changing.lock().await;
        let kept = self.control.create_key(&record).await?.ok_or(GONE)?;
        let is_new = kept.hash == record.hash;
        Ok(CreatedKey { record: kept, secret: is_new.then_some(secret) })
    }

    /// The keys of a workspace, newest first.
    pub async fn keys_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        Ok(self.control.read_keys(workspace_id).await?)
    }

    /// Revokes a key of a workspace at once, with everything that was derived from it.
    ///
    /// A key that revokes the one that it was derived from takes its place: that is how keys are rotated.
    pub async fn revoke_key(&self, workspace_id: &str, key_id: &str, by: Option<&str>) -> Result<()> {
        let _changing = self.changing.lock().await;
        for wait in retry::waits() {
            match self.try_revoke(workspace_id, key_id, by).await {
                Err(Error::Unavailable(store::Error::Conflict)) => {
                    tokio::time::sleep(Duration::from_millis(wait)).await
                }
                other => return other,
            }
        }
        self.try_revoke(workspace_id, key_id, by).await
    }

    async fn try_revoke(&self, workspace_id: &str, key_id: &str, by: Option<&str>) -> Result<()> {
        let key = self.control.read_key(key_id).await?.filter(|key| *key.workspace_id == *workspace_id);
        let key = key.ok_or_else(|| Error::not_found("key", key_id))?;
        let derived = self.control.derived_keys(std::slice::from_ref(&key.id)).await?;
        let stays = derived.iter().find(|key| Some(&*key.id) == by).map(|by| by.id.clone());
        let mut line = match &stays {
            Some(by) => self.control.derived_keys(std::slice::from_ref(by)).await?,
            None => Vec::new(),
        };
        line.extend(derived.iter().filter(|key| Some(&key.id) == stays.as_ref()).cloned());
        let ends = |derived: &&KeyRecord| !line.iter().any(|key| key.id == derived.id);
        let mut ids = vec![key.id.clone()];
        ids.extend(derived.iter().filter(ends).map(|key| key.id.clone()));
        let stays = stays.as_deref().map(|by| (by, key.derived_from.as_deref()));
        let deleted = self.control.delete_keys(&ids, stays).await;
        // Also where it is not known whether they were deleted: what is forgotten is read again.
        self.known.forget();
        deleted?;
        ids.into_iter().for_each(|id| self.held.end(&Ground::Key(id)));
        Ok(())
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
        derived_from: None,
    }
}

/// SHA-256 of a key, in hexadecimal: all that is ever stored of it.
pub(super) fn hash_of(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}
