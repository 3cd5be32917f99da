//! Transfers the members, users and keys of a workspace to another store. Keys are transferred as hashes.

use std::collections::HashSet;
use std::sync::Arc;

use strum::VariantArray;

use super::Access;
use super::keys::NewKey;
use crate::error::{Error, Result};
use crate::model::access::{KeyRecord, Membership, Role, Scope, UserRecord, WorkspaceRecord};
use crate::store::restores::RestoreStatus;

impl Access {
    /// Creates a workspace with the id that it has in another store. If `with_key` is set, also creates a key with
    /// every scope for the owner, and returns that key.
    pub async fn restore_workspace(&self, workspace: &WorkspaceRecord, with_key: bool) -> Result<Option<String>> {
        check_id(&workspace.id)?;
        check_id(&workspace.owner_id)?;
        self.control.restore_workspace(workspace).await?;
        if !with_key {
            return Ok(None);
        }
        let owner =
            UserRecord { id: workspace.owner_id.clone(), email: None, email_verified: false, name: None, plan: None };
        let membership = Membership {
            workspace_id: workspace.id.clone(),
            user_id: owner.id.clone(),
            role: Role::Owner,
            joined_at: workspace.created_at,
        };
        self.control.restore_member(&membership, &owner).await?;
        let new = NewKey { name: "owner".into(), scopes: Scope::VARIANTS.to_vec(), ..NewKey::default() };
        let (record, key) = self.new_key(&workspace.id, &owner.id, new, None);
        self.control.restore_key(&record).await?;
        Ok(Some(key))
    }

    /// Returns the workspaces that a server restores at the moment. Nobody else may open them.
    pub async fn being_restored(&self) -> Result<HashSet<Arc<str>>> {
        let found = self.control.read_restores().await?.into_iter();
        let running = found.filter(|restore| restore.status == RestoreStatus::Running);
        Ok(running.map(|restore| restore.workspace_id).collect())
    }

    /// Begins to delete a workspace at once, because its restore has failed.
    pub async fn discard_workspace(&self, id: &str) -> Result<()> {
        self.control.begin_deletion(id, self.clock.now_ms()).await.map(drop).map_err(Error::from)
    }

    /// Returns the members of a workspace with their users, in the order in which they joined.
    pub async fn people_of(&self, workspace_id: &str) -> Result<Vec<(Membership, UserRecord)>> {
        Ok(self.control.read_members(workspace_id).await?)
    }

    /// Returns the keys of a workspace, newest first.
    pub async fn key_records_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        Ok(self.control.read_keys(workspace_id).await?)
    }

    /// Adds a member and the member's user, unless they already exist. Returns whether the member is new.
    pub async fn restore_member(&self, member: &Membership, user: &UserRecord) -> Result<bool> {
        check_id(&user.id)?;
        Ok(self.control.restore_member(member, user).await?)
    }

    /// Adds a key by its hash, unless a key with the same id or secret exists. Returns whether the key is new.
    pub async fn restore_key(&self, key: &KeyRecord) -> Result<bool> {
        check_id(&key.id)?;
        if key.hash.len() != 64 || !key.hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(Error::invalid_at("/hash", "expected a SHA-256 in lower-case hexadecimal"));
        }
        Ok(self.control.restore_key(key).await?)
    }
}

/// Checks an id that was read from a file. Ids of workspaces are part of the names of databases.
fn check_id(id: &Arc<str>) -> Result<()> {
    let is_ours = uuid::Uuid::try_parse(id).is_ok_and(|uuid| uuid.to_string() == **id);
    if is_ours { Ok(()) } else { Err(Error::invalid("expected a UUID as the id, in lower case with hyphens")) }
}
