//! Creates a new key for the owner of the first workspace. An operator who has lost all keys regains access with the
//! key.

use std::sync::Arc;

use super::Access;
use super::credential_cache::hash_of;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{KeyRecord, WorkspaceRecord};

/// A new key of the first workspace's owner, and the owner's earlier keys.
pub struct OwnerKey {
    pub workspace: WorkspaceRecord,
    /// The key. Only its hash is stored, so the key cannot be retrieved later.
    pub key: String,
    /// The earlier keys of the owner in the workspace, newest first. Includes keys that the reset has revoked.
    pub others: Vec<KeyRecord>,
}

impl Access {
    /// Creates a key with every scope for the owner of the first workspace. If `revokes` is set, revokes the owner's
    /// other keys in this workspace, with all keys derived from these keys.
    pub async fn reset_owner_key(&self, revokes: bool) -> Result<OwnerKey> {
        let first = self.control.first_workspace_id().await?;
        let first = first.ok_or_else(|| Error::conflict(ErrorCode::NoWorkspace, "the store has no workspace yet"))?;
        let workspace = self.workspace(&first).await?;
        let owner: Arc<str> = workspace.owner_id.clone();
        let others: Vec<KeyRecord> =
            self.control.read_keys(&workspace.id).await?.into_iter().filter(|key| key.user_id == owner).collect();
        // A workspace that was restored from an export may have an owner who is not a member yet.
        let key = self.restore_owner_key(&workspace).await?;
        if revokes {
            let ids: Vec<Arc<str>> = others.iter().map(|key| key.id.clone()).collect();
            self.forgetting(self.control.delete_dead_keys(&ids)).await?;
            self.end_keys(&ids).await;
        }
        Ok(OwnerKey { workspace, key, others })
    }

    /// Returns whether the store contains a key, even if the key has expired. Unlike [`Access::authenticate`], this
    /// function does not mark the key as used.
    pub async fn knows_key(&self, key: &str) -> Result<bool> {
        Ok(self.control.find_key(&hash_of(key)).await?.is_some())
    }
}
