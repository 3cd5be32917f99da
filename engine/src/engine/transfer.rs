//! Transfers workspaces, members and keys between stores, for the operator of the store. No request can call these
//! functions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Engine;
use crate::access::restore::{ImportOutcome, check_id};
use crate::error::{Error, Result};
use crate::model::access::{KeyRecord, Membership, RemovedMember, UserRecord, WorkspaceRecord};

impl Engine {
    /// Creates a workspace with the id that it has in another store. If `with_key` is set, also adds the workspace's
    /// owner as a member, creates a key with every scope for the owner, and returns the key.
    pub async fn restore_workspace(&self, workspace: &WorkspaceRecord, with_key: bool) -> Result<Option<String>> {
        self.access.restore_workspace(workspace, with_key).await
    }

    /// Returns the members of a workspace with their users, in the order in which they joined.
    pub async fn people_of(&self, workspace_id: &str) -> Result<Vec<(Membership, UserRecord)>> {
        Ok(self.access.control().read_members(workspace_id).await?)
    }

    /// Returns the keys of a workspace, newest first.
    pub async fn key_records_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        Ok(self.access.control().read_keys(workspace_id).await?)
    }

    /// Returns the removed members of a workspace.
    pub async fn removed_members_of(&self, workspace_id: &str) -> Result<Vec<RemovedMember>> {
        Ok(self.access.control().read_removed_members(workspace_id).await?)
    }

    /// Returns the ids of the revoked keys of a workspace.
    pub async fn revoked_keys_of(&self, workspace_id: &str) -> Result<Vec<Arc<str>>> {
        Ok(self.access.control().read_revoked_keys(workspace_id).await?)
    }

    /// Adds a member from another store, unless the member was removed in this store after joining in the other store.
    /// If the member already exists and has a lower role in the other store, lowers the member's role to that role.
    /// Never raises a role. The owner of the workspace keeps the role of an owner.
    pub async fn import_member(&self, member: &Membership, user: &UserRecord) -> Result<ImportOutcome> {
        check_id(&user.id)?;
        let (workspace_id, user_id) = (&*member.workspace_id, &*member.user_id);
        let removed_at = self.access.control().removed_at(workspace_id, user_id).await?;
        if removed_at.is_some_and(|removed_at| removed_at >= member.joined_at) {
            return Ok(ImportOutcome::Refused);
        }
        if self.access.control().restore_member(member, user).await? {
            return Ok(ImportOutcome::Added);
        }
        let known = self.access.control().read_membership(workspace_id, user_id).await?;
        match known.map_or(Ordering::Less, |known| known.role.cmp(&member.role)) {
            Ordering::Less => Ok(ImportOutcome::Refused),
            Ordering::Equal => Ok(ImportOutcome::Unchanged),
            Ordering::Greater => match self.access.control().write_role(workspace_id, user_id, member.role).await? {
                Ok(_) => Ok(ImportOutcome::Ended),
                Err(_) => Ok(ImportOutcome::Refused),
            },
        }
    }

    /// Adds a key from another store by its hash, unless the key or one of its ancestors was revoked, its user is not a
    /// member, or a different key has the same id or hash. An existing key gets the earlier of the two expiry times.
    pub async fn import_key(&self, key: &KeyRecord) -> Result<ImportOutcome> {
        check_id(&key.id)?;
        if key.hash.len() != 64 || !key.hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(Error::invalid_at("/hash", "expected a SHA-256 in lower-case hexadecimal"));
        }
        let is_member = self.access.control().read_membership(&key.workspace_id, &key.user_id).await?.is_some();
        let line = std::iter::once(&key.id).chain(&key.ancestors);
        if !is_member || self.access.control().has_revoked(line).await? {
            return Ok(ImportOutcome::Refused);
        }
        if self.access.control().restore_key(key).await? {
            return Ok(ImportOutcome::Added);
        }
        let known =
            self.access.control().read_key(&key.id).await?.filter(|known| known.workspace_id == key.workspace_id);
        match (known, key.expires_at) {
            (None, _) => Ok(ImportOutcome::Refused),
            (Some(_), Some(expires_at)) if self.access.control().shorten_key(&key.id, expires_at).await? => {
                Ok(ImportOutcome::Ended)
            }
            _ => Ok(ImportOutcome::Unchanged),
        }
    }

    /// Removes a member and the member's keys, because the member was removed in another store. Keeps a member who has
    /// joined since that removal, and the owner of the workspace. Records the removal of a user who is not a member, so
    /// that a later import cannot add the user with an earlier membership.
    pub async fn import_removal(&self, workspace_id: &str, removed: &RemovedMember) -> Result<ImportOutcome> {
        check_id(&removed.user_id)?;
        let member = self.access.control().read_membership(workspace_id, &removed.user_id).await?;
        if member.is_none_or(|member| member.joined_at > removed.removed_at) {
            self.access.control().write_removed_member(workspace_id, removed).await?;
            return Ok(ImportOutcome::Unchanged);
        }
        match self.access.control().delete_member(workspace_id, &removed.user_id, removed.removed_at).await? {
            Ok(keys) => {
                self.access.end_keys(&keys.unwrap_or_default()).await;
                Ok(ImportOutcome::Ended)
            }
            Err(_) => Ok(ImportOutcome::Refused),
        }
    }

    /// Revokes a key that was revoked in another store. Does not revoke a key of another workspace. Records the
    /// revocation of an unknown key, so that a later import cannot add the key.
    pub async fn import_revocation(&self, workspace_id: &str, key_id: &Arc<str>) -> Result<ImportOutcome> {
        check_id(key_id)?;
        match self.access.control().read_key(key_id).await? {
            None => {
                self.access.control().write_revoked_key(workspace_id, key_id).await?;
                Ok(ImportOutcome::Unchanged)
            }
            Some(key) if *key.workspace_id != *workspace_id => Ok(ImportOutcome::Refused),
            Some(_) => {
                self.access.control().delete_dead_keys(std::slice::from_ref(key_id)).await?;
                self.access.end_keys(std::slice::from_ref(key_id)).await;
                Ok(ImportOutcome::Ended)
            }
        }
    }
}
