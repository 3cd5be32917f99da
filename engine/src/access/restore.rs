//! Transfers the members, users and keys of a workspace to another store. Keys are transferred as hashes.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use strum::VariantArray;

use super::Access;
use super::keys::NewKey;
use crate::error::{Error, Result};
use crate::model::access::{KeyRecord, Membership, RemovedMember, Role, Scope, UserRecord, WorkspaceRecord};
use crate::store::control::members::GrantBasis;

/// The result of importing a member, a key, a removal or a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The member or key is new.
    Added,
    /// The import ended a membership or a key, lowered a member's role, or made a key expire earlier.
    Ended,
    /// The import changed no membership and no valid key.
    Unchanged,
    /// The import was rejected. For example, it would bring back a revoked key or a removed member, raise a role, or
    /// remove the owner of the workspace.
    Refused,
}

impl Access {
    /// Creates a workspace with the id that it has in another store. If `with_key` is set, also adds the owner as a
    /// member, creates a key with every scope for the owner, and returns that key.
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

    /// Returns the ids of the workspaces that a server is restoring. No other server may open these workspaces.
    pub async fn being_restored(&self) -> Result<HashSet<Arc<str>>> {
        Ok(self.control.read_running_restores().await?.into_iter().map(|restore| restore.workspace_id).collect())
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

    /// Returns the removed members of a workspace.
    pub async fn removed_members_of(&self, workspace_id: &str) -> Result<Vec<RemovedMember>> {
        Ok(self.control.read_removed_members(workspace_id).await?)
    }

    /// Returns the ids of the revoked keys of a workspace.
    pub async fn revoked_keys_of(&self, workspace_id: &str) -> Result<Vec<Arc<str>>> {
        Ok(self.control.read_revoked_keys(workspace_id).await?)
    }

    /// Adds a member of an export, unless the member was removed after joining. An existing member's role never rises,
    /// and the owner of the workspace keeps the role of an owner.
    pub async fn import_member(&self, member: &Membership, user: &UserRecord) -> Result<ImportOutcome> {
        check_id(&user.id)?;
        let (workspace_id, user_id) = (&*member.workspace_id, &*member.user_id);
        let removed_at = self.control.removed_at(workspace_id, user_id).await?;
        if removed_at.is_some_and(|removed_at| removed_at >= member.joined_at) {
            return Ok(ImportOutcome::Refused);
        }
        if self.control.restore_member(member, user).await? {
            return Ok(ImportOutcome::Added);
        }
        let known = self.control.read_membership(workspace_id, user_id).await?;
        match known.map_or(Ordering::Less, |known| known.role.cmp(&member.role)) {
            Ordering::Less => Ok(ImportOutcome::Refused),
            Ordering::Equal => Ok(ImportOutcome::Unchanged),
            Ordering::Greater => match self.control.write_role(workspace_id, user_id, member.role).await? {
                Ok(_) => Ok(ImportOutcome::Ended),
                Err(_) => Ok(ImportOutcome::Refused),
            },
        }
    }

    /// Adds a key of an export by its hash, unless the key or one of its ancestors was revoked, or its user is not a
    /// member. An existing key gets the earlier of the two expiry times.
    pub async fn import_key(&self, key: &KeyRecord) -> Result<ImportOutcome> {
        check_id(&key.id)?;
        if key.hash.len() != 64 || !key.hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(Error::invalid_at("/hash", "expected a SHA-256 in lower-case hexadecimal"));
        }
        let is_member = self.control.read_membership(&key.workspace_id, &key.user_id).await?.is_some();
        let line = std::iter::once(&key.id).chain(&key.ancestors);
        if !is_member || self.control.has_revoked(line).await? {
            return Ok(ImportOutcome::Refused);
        }
        if self.control.restore_key(key).await? {
            return Ok(ImportOutcome::Added);
        }
        let known = self.control.read_key(&key.id).await?.filter(|known| known.workspace_id == key.workspace_id);
        match (known, key.expires_at) {
            (None, _) => Ok(ImportOutcome::Refused),
            (Some(_), Some(expires_at)) if self.control.shorten_key(&key.id, expires_at).await? => {
                Ok(ImportOutcome::Ended)
            }
            _ => Ok(ImportOutcome::Unchanged),
        }
    }

    /// Removes a member whom an export lists as removed, with the member's keys. A member who has joined since the
    /// removal stays.
    pub async fn import_removal(&self, workspace_id: &str, removed: &RemovedMember) -> Result<ImportOutcome> {
        check_id(&removed.user_id)?;
        let member = self.control.read_membership(workspace_id, &removed.user_id).await?;
        if member.is_none_or(|member| member.joined_at > removed.removed_at) {
            self.control.write_removed_member(workspace_id, removed).await?;
            return Ok(ImportOutcome::Unchanged);
        }
        match self.control.delete_member(workspace_id, &removed.user_id, removed.removed_at).await? {
            Ok(keys) => {
                self.end_keys(&keys.unwrap_or_default()).await;
                Ok(ImportOutcome::Ended)
            }
            Err(_) => Ok(ImportOutcome::Refused),
        }
    }

    /// Revokes a key that an export lists as revoked. A key of another workspace stays valid.
    pub async fn import_revocation(&self, workspace_id: &str, key_id: &Arc<str>) -> Result<ImportOutcome> {
        check_id(key_id)?;
        match self.control.read_key(key_id).await? {
            None => {
                self.control.write_revoked_key(workspace_id, key_id).await?;
                Ok(ImportOutcome::Unchanged)
            }
            Some(key) if *key.workspace_id != *workspace_id => Ok(ImportOutcome::Refused),
            Some(_) => {
                self.control.sweep_keys(std::slice::from_ref(key_id)).await?;
                self.end_keys(std::slice::from_ref(key_id)).await;
                Ok(ImportOutcome::Ended)
            }
        }
    }

    /// Ends the rights that depend on deleted keys, and deletes the keys derived from these keys.
    async fn end_keys(&self, keys: &[Arc<str>]) {
        self.known.forget();
        for key in keys {
            self.held.end(&GrantBasis::Key(key.clone()));
            self.sweep(key).await;
        }
    }
}

/// Checks that an id from a file is a UUID, because the ids of workspaces are part of the names of databases.
fn check_id(id: &Arc<str>) -> Result<()> {
    let is_ours = uuid::Uuid::try_parse(id).is_ok_and(|uuid| uuid.to_string() == **id);
    if is_ours { Ok(()) } else { Err(Error::invalid("expected a UUID as the id, in lower case with hyphens")) }
}
