//! Stores the identity of a caller, and restores the caller later with the rights that the key or the user then has.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Access;
use super::credential_cache::CachedUser;
use super::keys::GONE;
use crate::error::Result;
use crate::model::access::Caller;

/// The identity of an earlier caller, in a form that can be stored or signed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredCaller {
    user: Arc<str>,
    workspace: Arc<str>,
    key: Option<Arc<str>>,
}

impl From<&Caller> for StoredCaller {
    fn from(caller: &Caller) -> StoredCaller {
        let (user, workspace) = (caller.user_id.clone(), caller.workspace_id.clone());
        StoredCaller { user, workspace, key: caller.key_id.clone() }
    }
}

impl Access {
    /// Returns an earlier caller with the current rights of the key or the user. Fails if the key was revoked or has
    /// expired, or if the user has left the workspace.
    pub async fn return_of(&self, stored: &StoredCaller) -> Result<Caller> {
        if let Some(key_id) = &stored.key {
            let key = self.control.read_key(key_id).await?.ok_or(GONE)?;
            return self.key_caller(&key.hash, Some(&stored.workspace)).await;
        }
        let user = match self.known.user(&stored.user) {
            Some(user) => user,
            None => {
                let found = self.control.find_user(&stored.user).await?.ok_or(GONE)?;
                Arc::new(CachedUser::new(found, &self.policy().settings))
            }
        };
        let member = user.member_of(&stored.workspace)?;
        Ok(self.caller(&user, member, self.known.all_scopes.clone(), self.clock.now_ms()))
    }
}
