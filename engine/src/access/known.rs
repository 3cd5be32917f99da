//! What was read of keys and users, kept where no other process can change it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::settings::AccessSettings;
use crate::error::{Error, Result};
use crate::model::access::{KeyRecord, Membership, Scope, UserRecord};
use crate::model::plan::{OfferedPlan, Plan, PlanStatus};

/// Keys and users that were read.
pub struct Known {
    entries: Mutex<Entries>,
    all_scopes: Arc<[Scope]>,
}

#[derive(Default)]
struct Entries {
    keys: HashMap<String, Arc<KnownKey>>,
    users: HashMap<Arc<str>, Arc<KnownUser>>,
    /// How many changes there were: what was read before one of them is not kept.
    changes: u64,
}

/// A key and whose it is.
pub struct KnownKey {
    pub key: Arc<KeyRecord>,
    pub user: Arc<KnownUser>,
}

/// A user, and where they may go.
pub struct KnownUser {
    pub record: UserRecord,
    /// The one that was joined first comes first.
    pub memberships: Vec<Membership>,
    pub plan: Arc<Plan>,
}

impl Default for Known {
    fn default() -> Known {
        Known { entries: Mutex::default(), all_scopes: Scope::ALL.into() }
    }
}

impl Known {
    /// What users hold who show a token.
    pub fn all_scopes(&self) -> Arc<[Scope]> {
        self.all_scopes.clone()
    }

    pub fn changes(&self) -> u64 {
        self.entries().changes
    }

    pub fn key(&self, hash: &str) -> Option<Arc<KnownKey>> {
        self.entries().keys.get(hash).cloned()
    }

    pub fn user(&self, id: &str) -> Option<Arc<KnownUser>> {
        self.entries().users.get(id).cloned()
    }

    /// Keeps a key that was read when there had been so many changes.
    pub fn keep_key(&self, hash: &str, key: &Arc<KnownKey>, changes: u64) {
        let mut entries = self.entries();
        if entries.changes == changes {
            entries.keys.insert(hash.to_owned(), key.clone());
        }
    }

    /// Keeps a user who was read when there had been so many changes.
    pub fn keep_user(&self, user: &Arc<KnownUser>, changes: u64) {
        let mut entries = self.entries();
        if entries.changes == changes {
            entries.users.insert(user.record.id.clone(), user.clone());
        }
    }

    /// Notes when a key was used.
    pub fn touched(&self, hash: &str, now: i64) {
        if let Some(known) = self.entries().keys.get_mut(hash) {
            let key = KeyRecord { last_used_at: Some(now), ..KeyRecord::clone(&known.key) };
            *known = Arc::new(KnownKey { key: Arc::new(key), user: known.user.clone() });
        }
    }

    /// Forgets everything, as something of it has changed or may have.
    pub fn forget(&self) {
        let mut entries = self.entries();
        entries.changes += 1;
        entries.keys.clear();
        entries.users.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownUser {
    pub fn new(record: UserRecord, memberships: Vec<Membership>, settings: &AccessSettings) -> KnownUser {
        let plan = Arc::new(plan_of(&record, settings));
        KnownUser { record, memberships, plan }
    }

    /// What the user is in a workspace. One that is not theirs and one that is not there are alike.
    pub fn member_of(&self, workspace: &str) -> Result<&Membership> {
        self.memberships.iter().find(|member| *member.workspace_id == *workspace).ok_or_else(not_a_member)
    }
}

/// The plan of a user. Who was given none has the default one; a trial begins with a first token only.
pub fn plan_of(user: &UserRecord, settings: &AccessSettings) -> Plan {
    match &user.plan {
        Some(plan) => plan.clone(),
        None => Plan { status: PlanStatus::Active, trial_ends_at: None, ..default_plan(settings).begun_at(0) },
    }
}

pub fn default_plan(settings: &AccessSettings) -> OfferedPlan {
    let found = settings.plans.iter().find(|plan| plan.id == settings.default_plan);
    found.cloned().unwrap_or_else(OfferedPlan::unlimited)
}

pub fn not_a_member() -> Error {
    Error::forbidden("not_a_member", "the user is no member of this workspace")
}

/// What a user is told who signed in and has no workspace.
pub fn nowhere() -> Error {
    let message = "the user is in no workspace; `GET /invitations` lists those that invite them";
    Error::forbidden("not_a_member", message)
}

/// SHA-256 of a key, in hexadecimal: all that is ever stored of it.
pub fn hash_of(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}
