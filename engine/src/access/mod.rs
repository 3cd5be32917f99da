//! Who may enter which workspace: workspaces, their owners, and the keys that open them, over the control database.
//!
//! What is inside a workspace is not known here.

pub mod credential;
pub mod keys;
pub mod provision;
pub mod signing;
pub mod standing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keys::hash_of;
use signing::SigningKeys;
use standing::HeldKeys;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::model::access::{self, Caller, KeyRecord, WorkspaceRecord};
use crate::store::{Database, Store};

/// How often a key's last use is written down, at most; milliseconds.
const TOUCH_MS: i64 = 60_000;

/// The control database, and what of it is known in this process.
pub struct Access {
    control: Database,
    clock: Arc<dyn Clock>,
    exclusive: bool,
    known: Mutex<KnownKeys>,
    held: HeldKeys,
    signing: SigningKeys,
}

/// Keys that were read, where no other process can revoke one.
#[derive(Default)]
struct KnownKeys {
    by_hash: HashMap<String, Arc<KeyRecord>>,
    /// How many revocations there were: a key that was read before one of them is not kept.
    revocations: u64,
}

impl Access {
    pub async fn open(store: &Store, clock: Arc<dyn Clock>) -> Result<Access> {
        let control = store.control().await?;
        Ok(Access {
            control,
            clock,
            exclusive: store.is_exclusive(),
            known: Mutex::default(),
            held: HeldKeys::default(),
            signing: SigningKeys::default(),
        })
    }

    /// All workspaces of the store, the oldest first.
    pub async fn workspaces(&self) -> Result<Vec<WorkspaceRecord>> {
        Ok(self.control.read_workspaces().await?)
    }

    pub async fn workspace(&self, id: &str) -> Result<WorkspaceRecord> {
        let found = self.workspaces().await?.into_iter().find(|record| *record.id == *id);
        found.ok_or_else(|| Error::not_found("workspace", id))
    }

    /// Who shows this bearer token.
    pub async fn authenticate(&self, bearer: &str) -> Result<Caller> {
        if !access::is_key(bearer) {
            return Err(Error::Unauthenticated("the bearer token is not valid"));
        }
        let key = self.find_key(&hash_of(bearer)).await?;
        let now = self.clock.now_ms();
        if key.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(Error::Unauthenticated("the key has expired"));
        }
        if key.last_used_at.is_none_or(|last| last + TOUCH_MS <= now) {
            self.touch(&key, now).await;
        }
        Ok(Caller {
            user_id: key.user_id.clone(),
            workspace_id: key.workspace_id.clone(),
            key_id: Some(key.id.clone()),
            scopes: key.scopes.as_slice().into(),
            expires_at: key.expires_at,
        })
    }

    async fn find_key(&self, hash: &str) -> Result<Arc<KeyRecord>> {
        let (known, revocations) = {
            let known = self.known();
            (known.by_hash.get(hash).cloned(), known.revocations)
        };
        if let Some(key) = known {
            return Ok(key);
        }
        let found = self.control.find_key(hash).await?;
        let key = Arc::new(found.ok_or(Error::Unauthenticated("the bearer token is not valid"))?);
        let mut known = self.known();
        if self.exclusive && known.revocations == revocations {
            known.by_hash.insert(hash.to_owned(), key.clone());
        }
        Ok(key)
    }

    /// Writes down when a key was used. That it fails is no reason to refuse the caller.
    async fn touch(&self, key: &KeyRecord, now: i64) {
        if let Some(known) = self.known().by_hash.get_mut(&key.hash) {
            *known = Arc::new(KeyRecord { last_used_at: Some(now), ..key.clone() });
        }
        if let Err(error) = self.control.touch_key(&key.id, now).await {
            tracing::warn!(%error, key = %key.id, "the key's last use was not written");
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownKeys> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
