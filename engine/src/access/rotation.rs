//! Rotation: a successor replaces a key. The replaced key stays valid for some time, so that its users can switch to
//! the successor.

use std::sync::Arc;

use super::Access;
use super::keys::{CreatedKey, GONE, NewKey, moved, record_of, refused};
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{self, Caller, KeyRecord};
use crate::store::control::keys::MAX_ANCESTORS;
use crate::store::control::members::AccessFault;
use crate::store::retry;

impl Access {
    /// Creates the successor of a key, with the same name, scopes, workspaces, agents and expiry. If the workspace
    /// already has a key with the given id, returns this key without its secret. The replaced key expires after
    /// `ends_after_ms` milliseconds, or at its own expiry if that is earlier. The expiry is stored, so every server
    /// rejects the key after the expiry, even if the server was restarted. The keys that are derived from the replaced
    /// key become keys that are derived from the successor.
    pub async fn rotate_key(
        self: &Arc<Self>,
        caller: &Caller,
        key_id: &str,
        ends_after_ms: i64,
        id: Option<Arc<str>>,
    ) -> Result<CreatedKey> {
        let id = id.unwrap_or_else(|| self.clock.new_id().to_string().into());
        let _turn = self.change_locks.lock(caller.workspace_id()).await;
        let rotation = retry::after_conflicts(|| self.try_rotate(caller, key_id, ends_after_ms, &id));
        let rotated = self.forgetting(rotation).await;
        self.watch_grants();
        rotated
    }

    async fn try_rotate(&self, caller: &Caller, key_id: &str, ends_after_ms: i64, id: &Arc<str>) -> Result<CreatedKey> {
        let workspace_id = caller.workspace_id();
        if let Some(record) = self.control.read_key(id).await?.filter(|key| *key.workspace_id == *workspace_id) {
            return Ok(CreatedKey { record, secret: None });
        }
        let (key, now) = (self.key_of(workspace_id, key_id).await?, self.clock.now_ms());
        if key.has_expired(now) {
            return Err(Error::conflict(
                ErrorCode::KeyExpired,
                "the key has expired, and an expired key cannot be rotated",
            ));
        }
        let secret = access::key_from(self.clock.random());
        let successor = self.successor(caller, &key, &secret, id.clone(), now).await?;
        let (until, expired_at) = (now.saturating_add(ends_after_ms), key.expires_at);
        let replaced = KeyRecord { expires_at: Some(key.expires_at.map_or(until, |end| end.min(until))), ..key };
        let below = self.control.derived_keys(&replaced.id).await?;
        let moved = moved_below(&replaced, &successor, &below)?;
        self.control.replace_key(&replaced, expired_at, &successor, &below, &moved).await?.map_err(refused)?;
        Ok(CreatedKey { record: successor, secret: Some(secret) })
    }

    /// Returns the record of the successor of a key.
    ///
    /// If the caller's key is neither the rotated key, nor one of its ancestors, nor derived from it, the successor is
    /// derived from the caller's key: the caller receives the secret of the successor, so the successor must not outlast
    /// the caller's key. Otherwise, or if the caller has no key, the successor has the origin and the ancestors of the
    /// rotated key.
    async fn successor(
        &self,
        caller: &Caller,
        key: &KeyRecord,
        secret: &str,
        id: Arc<str>,
        now: i64,
    ) -> Result<KeyRecord> {
        let KeyRecord { name, scopes, expires_at, opens_all, agents, .. } = key.clone();
        let new = NewKey { name, scopes, expires_at, opens_all, agents: agents.map(|agents| agents.to_vec()) };
        let record = record_of(secret, id, key.workspace_id.clone(), key.user_id.clone(), new, now);
        let (derived_from, ancestors) = match caller.key_id.as_ref().filter(|own| !are_related(own, caller, key)) {
            None => (key.derived_from.clone(), key.ancestors.clone()),
            Some(own) => {
                let own = self.control.read_key(own).await?.ok_or(GONE)?;
                (Some(own.id.clone()), own.ancestors.into_iter().chain([own.id]).collect())
            }
        };
        Ok(KeyRecord { derived_from, ancestors, ..record })
    }
}

/// Returns whether the caller's key `own` is `key` itself, an ancestor of `key`, or derived from `key`.
fn are_related(own: &Arc<str>, caller: &Caller, key: &KeyRecord) -> bool {
    *own == key.id || key.ancestors.contains(own) || caller.above.contains(&key.id)
}

/// Changes the records of the keys that are derived from a replaced key, so that the keys are derived from the
/// successor. Returns the changed records.
fn moved_below(replaced: &KeyRecord, successor: &KeyRecord, below: &[KeyRecord]) -> Result<Vec<KeyRecord>> {
    let above: Vec<Arc<str>> = successor.ancestors.iter().chain([&successor.id]).cloned().collect();
    let (top, origin) = (replaced.ancestors.len() + 1, Some(successor.id.clone()));
    let moved: Vec<KeyRecord> = below.iter().map(|one| moved(one, &above, top, origin.clone())).collect();
    let deepest = moved.iter().chain([successor]).map(|one| one.ancestors.len()).max().unwrap_or_default();
    if deepest > MAX_ANCESTORS { Err(refused(AccessFault::TooDeep)) } else { Ok(moved) }
}
