//! A cache of keys and users. If no other process can change the records in the store, requests use the cached records.
//! If other processes can change the records, each request reads the store. The cache then only remembers the keys of
//! recent requests. A remembered key is used for reads while the store does not respond.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use strum::VariantArray;

use super::settings::AccessSettings;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{KeyRecord, Membership, Scope, UserRecord};
use crate::model::plan::{OfferedPlan, PlanStatus, UserPlan};
use crate::store::control::sign_up::FoundUser;

/// The time for which a key is remembered, in milliseconds.
const REMEMBERED_MS: i64 = 300_000;
/// The maximum number of remembered keys.
const MAX_REMEMBERED: usize = 10_000;

/// The cached keys and users.
pub struct CredentialCache {
    entries: Mutex<Entries>,
    /// The scopes of users who present a token: all scopes.
    pub all_scopes: Arc<[Scope]>,
}

#[derive(Default)]
struct Entries {
    keys: HashMap<String, Arc<CachedKey>>,
    users: HashMap<Arc<str>, Arc<CachedUser>>,
    /// The keys that were read from a store that several servers may share, each with the time of the read.
    remembered: HashMap<String, (Arc<CachedKey>, i64)>,
    /// The number of times that the cache was cleared because records in the store had changed or might have changed.
    /// Records that were read before the cache was last cleared are not cached.
    changes: u64,
}

/// A key and its user.
pub struct CachedKey {
    pub key: Arc<KeyRecord>,
    pub user: Arc<CachedUser>,
}

/// A user with their memberships and plan.
pub struct CachedUser {
    pub record: UserRecord,
    /// The memberships in the order of joining.
    pub memberships: Vec<Membership>,
    pub plan: Arc<UserPlan>,
}

impl Default for CredentialCache {
    fn default() -> CredentialCache {
        CredentialCache { entries: Mutex::default(), all_scopes: Scope::VARIANTS.into() }
    }
}

impl CredentialCache {
    pub fn changes(&self) -> u64 {
        self.entries.lock().changes
    }

    pub fn key(&self, hash: &str) -> Option<Arc<CachedKey>> {
        self.entries.lock().keys.get(hash).cloned()
    }

    pub fn user(&self, id: &str) -> Option<Arc<CachedUser>> {
        self.entries.lock().users.get(id).cloned()
    }

    /// Caches a key, if nothing has changed since `changes` was read.
    pub fn keep_key(&self, hash: &str, key: &Arc<CachedKey>, changes: u64) {
        let mut entries = self.entries.lock();
        if entries.changes == changes {
            entries.keys.insert(hash.to_owned(), key.clone());
        }
    }

    /// Caches a user, if nothing has changed since `changes` was read.
    pub fn keep_user(&self, user: &Arc<CachedUser>, changes: u64) {
        let mut entries = self.entries.lock();
        if entries.changes == changes {
            entries.users.insert(user.record.id.clone(), user.clone());
        }
    }

    /// Remembers a key, so that reads with the key remain possible while the store does not respond. If the cache
    /// already has `MAX_REMEMBERED` other keys, forgets these keys first.
    pub fn remember(&self, hash: &str, key: &Arc<CachedKey>, now_ms: i64) {
        let mut entries = self.entries.lock();
        if entries.remembered.len() >= MAX_REMEMBERED && !entries.remembered.contains_key(hash) {
            entries.remembered.clear();
        }
        entries.remembered.insert(hash.to_owned(), (key.clone(), now_ms));
    }

    /// Returns a remembered key, if it was read from the store at most `REMEMBERED_MS` milliseconds ago.
    pub fn remembered(&self, hash: &str, now_ms: i64) -> Option<Arc<CachedKey>> {
        let entries = self.entries.lock();
        let (key, at) = entries.remembered.get(hash)?;
        (now_ms.saturating_sub(*at) <= REMEMBERED_MS).then(|| key.clone())
    }

    /// Sets the time of the last use of a cached key.
    pub fn touched(&self, hash: &str, now: i64) {
        if let Some(known) = self.entries.lock().keys.get_mut(hash) {
            let key = KeyRecord { last_used_at: Some(now), ..KeyRecord::clone(&known.key) };
            *known = Arc::new(CachedKey { key: Arc::new(key), user: known.user.clone() });
        }
    }

    /// Clears the cache. Called when records have changed or may have changed.
    pub fn forget(&self) {
        let mut entries = self.entries.lock();
        entries.changes += 1;
        entries.keys.clear();
        entries.users.clear();
        entries.remembered.clear();
    }
}

impl CachedUser {
    pub fn new(found: FoundUser, settings: &AccessSettings) -> CachedUser {
        let plan = Arc::new(plan_of(&found.user, settings));
        CachedUser { record: found.user, memberships: found.memberships, plan }
    }

    /// Returns the membership of the user in a workspace. Fails with the same error if the user is not a member and if
    /// the workspace does not exist.
    pub fn member_of(&self, workspace: &str) -> Result<&Membership> {
        self.memberships.iter().find(|member| *member.workspace_id == *workspace).ok_or_else(not_a_member)
    }
}

/// Returns the plan of a user. Users without a stored plan get the default plan, but no trial: a trial begins only at a
/// user's first sign-in.
pub fn plan_of(user: &UserRecord, settings: &AccessSettings) -> UserPlan {
    match &user.plan {
        Some(plan) => plan.clone(),
        None => UserPlan { status: PlanStatus::Active, trial_ends_at: None, ..default_plan(settings).begun_at(0) },
    }
}

pub fn default_plan(settings: &AccessSettings) -> OfferedPlan {
    let found = settings.plans.iter().find(|plan| plan.id == settings.default_plan);
    found.cloned().unwrap_or_else(OfferedPlan::unlimited)
}

pub fn not_a_member() -> Error {
    Error::forbidden(ErrorCode::NotAMember, "the user is not a member of this workspace")
}

/// Returns the error for a signed-in user without a workspace.
pub fn without_workspace() -> Error {
    let message = "the user is not in any workspace; `GET /invitations` lists the user's invitations";
    Error::forbidden(ErrorCode::NotAMember, message)
}

/// Returns the SHA-256 of a key or a sign-in code, in hexadecimal. Only this hash is stored.
pub fn hash_of(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}
