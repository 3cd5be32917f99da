//! Keys: creating, listing and revoking them. The secret is returned once, on creation, and is not stored.

use std::sync::Arc;

use super::Access;
use super::known::hash_of;
use crate::error::{Error, Result};
use crate::model::access::{self, KeyRecord, Scope};
use crate::store;
use crate::store::keys::Origin;
use crate::store::members::GrantBasis;
use crate::store::retry;

/// The error for a key that was revoked, or a user who left, while the request was running.
pub(super) const GONE: Error = Error::Unauthenticated("the bearer token is no longer valid");

/// A key to create.
#[derive(Debug, Clone, Default)]
pub struct NewKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The expiry time, in milliseconds since the epoch.
    pub expires_at: Option<i64>,
    /// Whether the key grants access to every workspace of its user, and not only to the workspace in which it was
    /// created.
    pub opens_all: bool,
    /// The ids of the agents to which the key is bound. `None` if it is not bound.
    pub agents: Option<Vec<Arc<str>>>,
}

/// A created key.
#[derive(Debug, Clone)]
pub struct CreatedKey {
    pub record: KeyRecord,
    /// The secret. `None` if an earlier request created the key: the secret is not stored, so only that request
    /// returned it.
    pub secret: Option<String>,
}

impl Access {
    /// Creates a key for a user in a workspace, unless a key with the given id exists. The new key stops working when
    /// `origin`, the key or session that it is derived from, does.
    pub async fn create_key(
        &self,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
        id: Option<Arc<str>>,
        origin: Option<Arc<str>>,
    ) -> Result<CreatedKey> {
        self.create_key_from(access::key_from(self.clock.random()), workspace_id, user_id, new, id, origin).await
    }

    /// Creates a key like [`Access::create_key`], with a secret that the caller has chosen at random.
    pub async fn create_key_from(
        &self,
        secret: String,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
        id: Option<Arc<str>>,
        origin: Option<Arc<str>>,
    ) -> Result<CreatedKey> {
        let id = id.unwrap_or_else(|| self.clock.new_id().to_string().into());
        let record = record_of(&secret, id, workspace_id.clone(), user_id.clone(), new, self.clock.now_ms());
        let record = KeyRecord { derived_from: origin, ..record };
        let _turn = self.turns.take(user_id).await;
        let kept = self.control.create_key(&record).await?.map_err(refused)?;
        let is_new = kept.hash == record.hash;
        Ok(CreatedKey { record: kept, secret: is_new.then_some(secret) })
    }

    /// Returns the keys of a workspace, newest first.
    pub async fn keys_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        Ok(self.control.read_keys(workspace_id).await?)
    }

    /// Revokes a key of a workspace and all keys derived from it, effective immediately.
    ///
    /// A key that revokes the key it was derived from is not revoked, but takes the place of the revoked key. Clients
    /// rotate keys this way.
    pub async fn revoke_key(&self, workspace_id: &str, key_id: &str, by: Option<&str>) -> Result<()> {
        let _turn = self.turns.take(workspace_id).await;
        retry::after_conflicts(|| self.try_revoke(workspace_id, key_id, by)).await
    }

    async fn try_revoke(&self, workspace_id: &str, key_id: &str, by: Option<&str>) -> Result<()> {
        let key = self.control.read_key(key_id).await?.filter(|key| *key.workspace_id == *workspace_id);
        let key = key.ok_or_else(|| Error::not_found("key", key_id))?;
        let stays = match by {
            Some(by) => self.control.read_key(by).await?.filter(|by| by.ancestors.contains(&key.id)),
            None => None,
        };
        let moved = match &stays {
            Some(by) => moved(&key, by, &self.control.derived_keys(&by.id).await?),
            None => Vec::new(),
        };
        let deleted = self.control.delete_key(&key.id, &moved).await;
        // Clears the cache even if the outcome of the deletion is unknown. Later reads fill the cache again.
        self.known.forget();
        deleted?;
        self.held.end(&GrantBasis::Key(key.id.clone()));
        self.sweep(&key.id).await;
        Ok(())
    }

    /// Deletes the keys derived from a deleted key. The derived keys are already invalid, even if the deletion fails.
    pub(super) async fn sweep(&self, id: &Arc<str>) {
        let swept = async {
            loop {
                let derived = self.control.derived_keys(id).await?;
                if derived.is_empty() {
                    return store::Result::Ok(());
                }
                let ids: Vec<Arc<str>> = derived.into_iter().map(|key| key.id).collect();
                self.control.sweep_keys(&ids).await?;
                ids.into_iter().for_each(|id| self.held.end(&GrantBasis::Key(id)));
            }
        };
        if let Err(error) = swept.await {
            tracing::warn!(%error, key = %id, "failed to delete the keys derived from a deleted key");
        }
    }
}

/// Returns the new records of the key `by`, which takes the place of the revoked key, and of the keys derived from
/// `by`.
fn moved(revoked: &KeyRecord, by: &KeyRecord, line: &[KeyRecord]) -> Vec<KeyRecord> {
    let below = by.ancestors.len();
    let moved = |key: &KeyRecord| {
        let own = key.ancestors.iter().skip(below);
        KeyRecord { ancestors: revoked.ancestors.iter().chain(own).cloned().collect(), ..key.clone() }
    };
    let first = KeyRecord { derived_from: revoked.derived_from.clone(), ..moved(by) };
    std::iter::once(first).chain(line.iter().map(moved)).collect()
}

/// Returns the error for a key that cannot be derived from its origin.
pub(super) fn refused(origin: Origin) -> Error {
    match origin {
        Origin::Gone => GONE,
        Origin::TooDeep => Error::forbidden("derived_too_often", "a key can be derived over at most 16 steps"),
    }
}

/// Returns the record to store for a key.
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
        opens_all: new.opens_all,
        agents: new.agents.map(Arc::from),
        created_at: now,
        expires_at: new.expires_at,
        last_used_at: None,
        derived_from: None,
        ancestors: Vec::new(),
    }
}
