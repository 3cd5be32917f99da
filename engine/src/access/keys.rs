//! Creates and revokes keys. The secret is returned once, on creation, and is not stored.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::Access;
use super::credential_cache::hash_of;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{self, KeyRecord, Scope};
use crate::model::value::{Object, Value};
use crate::store;
use crate::store::control::members::{AccessFault, GrantBasis};
use crate::store::retry;

/// The error for a caller whose right has ended since the caller was authenticated: the key was revoked, or the user
/// has left the workspace or is no longer an owner.
pub(super) const GONE: Error = Error::Unauthenticated(
    "the caller has lost the right during the request: the key was revoked, or the user has left the workspace or is no \
     longer an owner",
);

/// The maximum number of derived keys that an error lists.
const MAX_LISTED: usize = 100;

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
    /// The ids of the agents to which the key is bound. `None` if the key is not bound.
    pub agents: Option<Vec<Arc<str>>>,
}

/// A created key.
#[derive(Debug, Clone)]
pub struct CreatedKey {
    pub record: KeyRecord,
    /// The secret. `None` if an earlier request created the key: the secret is not stored, so only the earlier request
    /// returned the secret.
    pub secret: Option<String>,
}

/// The handling of the keys that are derived from a revoked key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DerivedKeys {
    /// The revocation fails if it would end derived keys.
    #[default]
    Refuse,
    /// The derived keys end with the revoked key. If the key that requests the revocation is one of the derived keys,
    /// the requesting key and the keys derived from it stay valid.
    End,
    /// The derived keys stay valid. After the revocation, the derived keys depend on the ancestors and the origin of
    /// the revoked key.
    Keep,
}

impl Access {
    /// Creates a key for a user in a workspace. If the workspace already has a key with the given id, returns this key
    /// without its secret. The new key is derived from `origin`: a key, a session or a user. If `origin` is a key, the
    /// new key ends when that key is revoked, unless the revocation keeps the new key. A given `secret` must have been
    /// chosen at random. If `secret` is `None`, the secret is generated.
    pub async fn create_key(
        &self,
        secret: Option<String>,
        workspace_id: &Arc<str>,
        user_id: &Arc<str>,
        new: NewKey,
        id: Option<Arc<str>>,
        origin: Option<Arc<str>>,
    ) -> Result<CreatedKey> {
        let secret = secret.unwrap_or_else(|| access::key_from(self.clock.random()));
        let id = id.unwrap_or_else(|| self.clock.new_id().to_string().into());
        let record = record_of(&secret, id, workspace_id.clone(), user_id.clone(), new, self.clock.now_ms());
        let record = KeyRecord { derived_from: origin, ..record };
        let _turn = self.change_locks.lock(user_id).await;
        let kept = self.control.create_key(&record).await?.map_err(refused)?;
        let is_new = kept.hash == record.hash;
        Ok(CreatedKey { record: kept, secret: is_new.then_some(secret) })
    }

    /// Revokes a key of a workspace, effective immediately. `derived` determines what happens to the keys derived from
    /// the key.
    ///
    /// If the key `by` is derived from the revoked key, `by` stays valid. In this case, `by` also takes the place of
    /// the revoked key, unless `derived` is [`DerivedKeys::Keep`].
    pub async fn revoke_key(
        &self,
        workspace_id: &str,
        key_id: &str,
        by: Option<&str>,
        derived: DerivedKeys,
    ) -> Result<()> {
        let _turn = self.change_locks.lock(workspace_id).await;
        retry::after_conflicts(|| self.try_revoke(workspace_id, key_id, by, derived)).await
    }

    async fn try_revoke(&self, workspace_id: &str, key_id: &str, by: Option<&str>, derived: DerivedKeys) -> Result<()> {
        let key = self.key_of(workspace_id, key_id).await?;
        let below = self.control.derived_keys(&key.id).await?;
        let heir = by.and_then(|by| below.iter().find(|one| *one.id == *by));
        let moved = match (derived, heir) {
            (DerivedKeys::Keep, _) => moved_up(&key, &below),
            (_, Some(heir)) => moved_to(&key, heir, &below),
            (_, None) => Vec::new(),
        };
        if derived == DerivedKeys::Refuse {
            let (kept, now): (HashSet<&str>, i64) = (moved.iter().map(|key| &*key.id).collect(), self.clock.now_ms());
            let is_ended = |one: &&KeyRecord| !one.has_expired(now) && !kept.contains(&*one.id);
            let mut ended: Vec<&KeyRecord> = below.iter().filter(is_ended).collect();
            ended.sort_by_key(|one| Reverse((one.created_at, &one.id)));
            if !ended.is_empty() {
                return Err(derived_keys(workspace_id, &ended));
            }
        }
        self.forgetting(self.control.delete_key(&key.id, &below, &moved)).await?;
        self.end_keys(std::slice::from_ref(&key.id)).await;
        Ok(())
    }

    /// Returns a key of a workspace. Fails if no key of the workspace has this id.
    pub(super) async fn key_of(&self, workspace_id: &str, key_id: &str) -> Result<KeyRecord> {
        let key = self.control.read_key(key_id).await?.filter(|key| *key.workspace_id == *workspace_id);
        key.ok_or_else(|| Error::not_found("key", key_id))
    }

    /// Deletes the keys derived from a deleted key, and ends the rights that depend on the derived keys. The derived
    /// keys became invalid when the key was deleted, so the derived keys stay invalid even if this function fails to
    /// delete them.
    pub(super) async fn sweep(&self, id: &Arc<str>) {
        let swept = async {
            loop {
                let derived = self.control.derived_keys(id).await?;
                if derived.is_empty() {
                    return store::Result::Ok(());
                }
                let ids: Vec<Arc<str>> = derived.into_iter().map(|key| key.id).collect();
                self.control.delete_dead_keys(&ids).await?;
                ids.into_iter().for_each(|id| self.held.end(&GrantBasis::Key(id)));
            }
        };
        if let Err(error) = swept.await {
            tracing::warn!(%error, key = %id, "failed to delete the keys derived from a deleted key");
        }
    }
}

/// Returns the new records of the key `heir` and of the keys derived from `heir`. The key `heir` takes the place of the
/// revoked key. `below` contains all keys that are derived from the revoked key.
fn moved_to(revoked: &KeyRecord, heir: &KeyRecord, below: &[KeyRecord]) -> Vec<KeyRecord> {
    let line = below.iter().filter(|one| one.id == heir.id || one.ancestors.contains(&heir.id));
    line.map(|one| moved(one, &revoked.ancestors, heir.ancestors.len(), revoked.derived_from.clone())).collect()
}

/// Returns the new records of the keys that are derived from a revoked key and stay valid. These keys then depend on
/// the ancestors and the origin of the revoked key. If the revoked key has no origin, its user becomes the origin of
/// the keys.
///
/// The ancestors of the revoked key stay ancestors of the derived keys. Otherwise a caller could revoke a key that is
/// derived from the caller's own key, and the keys derived from the revoked key would stay valid after the caller's own
/// key is revoked.
fn moved_up(revoked: &KeyRecord, below: &[KeyRecord]) -> Vec<KeyRecord> {
    let own = || format!("user:{}", revoked.user_id).into();
    let origin = revoked.derived_from.clone().unwrap_or_else(own);
    let top = revoked.ancestors.len() + 1;
    below.iter().map(|one| moved(one, &revoked.ancestors, top, Some(origin.clone()))).collect()
}

/// Returns a copy of a key's record in which `above` replaces the key's first `top` ancestors. If the key has at most
/// `top` ancestors, `origin` becomes the origin of the key.
pub(super) fn moved(key: &KeyRecord, above: &[Arc<str>], top: usize, origin: Option<Arc<str>>) -> KeyRecord {
    let is_first = key.ancestors.len() <= top;
    let ancestors = above.iter().chain(key.ancestors.iter().skip(top)).cloned().collect();
    let derived_from = if is_first { origin } else { key.derived_from.clone() };
    KeyRecord { ancestors, derived_from, ..key.clone() }
}

/// Returns the error for a key that cannot be revoked without a decision about the keys derived from it. The error
/// lists the derived keys of the workspace, newest first, up to [`MAX_LISTED`]. Derived keys of other workspaces are
/// counted, but not listed.
fn derived_keys(workspace_id: &str, ended: &[&KeyRecord]) -> Error {
    let here = ended.iter().filter(|key| *key.workspace_id == *workspace_id).take(MAX_LISTED);
    let listed = here.map(|key| {
        let fields = [("id", &*key.id), ("name", &key.name), ("display", &key.display)];
        Value::from(Object::from_iter(fields.map(|(name, text)| (name, Value::from(text)))))
    });
    let mut details = Object::new();
    details.push("derived_keys", listed.collect::<Vec<_>>());
    details.push("derived_count", ended.len() as i64);
    let count = if ended.len() == 1 { "1 key is".to_owned() } else { format!("{} keys are", ended.len()) };
    let message = format!(
        "{count} derived from the key; cascade=true revokes the derived keys too, and cascade=false keeps them"
    );
    Error::conflict_with(ErrorCode::DerivedKeys, message, details)
}

/// Returns the error for a key, sign-in code or invitation that cannot be created, or for a refused change of a member.
pub(super) fn refused(fault: AccessFault) -> Error {
    match fault {
        AccessFault::Gone => GONE,
        AccessFault::TooDeep => Error::forbidden(ErrorCode::DerivedTooOften, "a key can have at most 16 ancestors"),
        AccessFault::TooManyKeys => {
            Error::forbidden(ErrorCode::TooManyKeys, "a user can have at most 1000 keys; revoke one first")
        }
        AccessFault::TooManyInvitations => {
            let message = "a workspace can have at most 1000 invitations; withdraw one first";
            Error::forbidden(ErrorCode::TooManyInvitations, message)
        }
        AccessFault::OwnerStays => {
            let message = "the owner of the workspace cannot be removed or given another role; first make another \
                           member the owner with `workspace_owner`";
            Error::conflict(ErrorCode::WorkspaceOwner, message)
        }
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
