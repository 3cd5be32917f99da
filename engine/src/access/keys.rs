//! Keys: making, listing and revoking them. The secret is told once and never kept.

use std::sync::Arc;
use std::time::Duration;

use super::Access;
use super::known::hash_of;
use crate::error::{Error, Result};
use crate::model::access::{self, KeyRecord, Scope};
use crate::store;
use crate::store::keys::Origin;
use crate::store::members::Ground;
use crate::store::retry;

/// Between a request's beginning and its end its key was revoked, or its user has left.
pub(super) const GONE: Error = Error::Unauthenticated("the bearer token is not valid any more");

/// A key that is to be made.
#[derive(Debug, Clone, Default)]
pub struct NewKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// Milliseconds since the epoch.
    pub expires_at: Option<i64>,
    /// Whether it opens every workspace of its user, and not only the one that it is made in.
    pub opens_all: bool,
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
        let _turn = self.turns.take(user_id).await;
        let kept = self.control.create_key(&record).await?.map_err(refused)?;
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
        let _turn = self.turns.take(workspace_id).await;
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
        let stays = match by {
            Some(by) => self.control.read_key(by).await?.filter(|by| by.ancestors.contains(&key.id)),
            None => None,
        };
        let moved = match &stays {
            Some(by) => moved(&key, by, &self.control.derived_keys(&by.id).await?),
            None => Vec::new(),
        };
        let deleted = self.control.delete_key(&key.id, &moved).await;
        // Also where it is not known whether it was deleted: what is forgotten is read again.
        self.known.forget();
        deleted?;
        self.held.end(&Ground::Key(key.id.clone()));
        self.sweep(&key.id).await;
        Ok(())
    }

    /// Deletes what was derived from a key that is gone. It opens nothing any more, whether or not this succeeds.
    pub(super) async fn sweep(&self, id: &Arc<str>) {
        let swept = async {
            loop {
                let derived = self.control.derived_keys(id).await?;
                if derived.is_empty() {
                    return store::Result::Ok(());
                }
                let ids: Vec<Arc<str>> = derived.into_iter().map(|key| key.id).collect();
                self.control.sweep_keys(&ids).await?;
                ids.into_iter().for_each(|id| self.held.end(&Ground::Key(id)));
            }
        };
        if let Err(error) = swept.await {
            tracing::warn!(%error, key = %id, "keys that open nothing any more were not deleted");
        }
    }
}

/// A key that takes the place of the one that it revokes, and what was derived from it, with their new origins.
fn moved(revoked: &KeyRecord, by: &KeyRecord, line: &[KeyRecord]) -> Vec<KeyRecord> {
    let below = by.ancestors.len();
    let moved = |key: &KeyRecord| {
        let own = key.ancestors.iter().skip(below);
        KeyRecord { ancestors: revoked.ancestors.iter().chain(own).cloned().collect(), ..key.clone() }
    };
    let first = KeyRecord { derived_from: revoked.derived_from.clone(), ..moved(by) };
    std::iter::once(first).chain(line.iter().map(moved)).collect()
}

/// What it means that a key was not written.
pub(super) fn refused(origin: Origin) -> Error {
    match origin {
        Origin::Gone => GONE,
        Origin::TooDeep => Error::forbidden("derived_too_often", "a key is derived over 16 steps at most"),
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
        opens_all: new.opens_all,
        created_at: now,
        expires_at: new.expires_at,
        last_used_at: None,
        derived_from: None,
        ancestors: Vec::new(),
    }
}
