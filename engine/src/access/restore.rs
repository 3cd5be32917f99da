//! The people of a workspace as an operator carries them to another store: members with their users, and keys by their
//! hashes.

use std::sync::Arc;

use super::Access;
use super::keys::NewKey;
use crate::error::{Error, Result};
use crate::model::access::{KeyRecord, Membership, Role, Scope, UserRecord, WorkspaceRecord};

impl Access {
    /// Creates a workspace with the id that it has in another store. If `with_key` is set, its owner gets a key that
    /// holds every scope, which is returned.
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
        let new = NewKey { name: "owner".into(), scopes: Scope::ALL.to_vec(), ..NewKey::default() };
        let (record, key) = self.new_key(&workspace.id, &owner.id, new, None);
        self.control.restore_key(&record).await?;
        Ok(Some(key))
    }

    /// Returns the members of a workspace with their users, in the order in which they joined.
    pub async fn people_of(&self, workspace_id: &str) -> Result<Vec<(Membership, UserRecord)>> {
        Ok(self.control.read_members(workspace_id).await?)
    }

    /// Returns the keys of a workspace, newest first.
    pub async fn key_records_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        Ok(self.control.read_keys(workspace_id).await?)
    }

    /// Adds a member and their user, each unless they exist. Returns whether the member is new.
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
