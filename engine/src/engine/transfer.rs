//! Transfers workspaces, members and keys between stores, for the operator of the store. No request can call these
//! functions.

use std::sync::Arc;

use super::Engine;
use crate::access::restore::ImportOutcome;
use crate::error::Result;
use crate::model::access::{KeyRecord, Membership, RemovedMember, UserRecord, WorkspaceRecord};

impl Engine {
    /// Creates a workspace with the id that it has in another store. If `with_key` is set, also adds the workspace's
    /// owner as a member, creates a key with every scope for the owner, and returns the key.
    pub async fn restore_workspace(&self, workspace: &WorkspaceRecord, with_key: bool) -> Result<Option<String>> {
        self.access.restore_workspace(workspace, with_key).await
    }

    /// Returns the members of a workspace with their users, for the operator of the store.
    pub async fn people_of(&self, workspace_id: &str) -> Result<Vec<(Membership, UserRecord)>> {
        self.access.people_of(workspace_id).await
    }

    /// Returns the keys of a workspace, for the operator of the store.
    pub async fn key_records_of(&self, workspace_id: &str) -> Result<Vec<KeyRecord>> {
        self.access.key_records_of(workspace_id).await
    }

    /// Returns the removed members of a workspace, for the operator of the store.
    pub async fn removed_members_of(&self, workspace_id: &str) -> Result<Vec<RemovedMember>> {
        self.access.removed_members_of(workspace_id).await
    }

    /// Returns the ids of the revoked keys of a workspace, for the operator of the store.
    pub async fn revoked_keys_of(&self, workspace_id: &str) -> Result<Vec<Arc<str>>> {
        self.access.revoked_keys_of(workspace_id).await
    }

    /// Adds a member from another store, unless the member was removed after joining. Never raises the role of an
    /// existing member.
    pub async fn import_member(&self, member: &Membership, user: &UserRecord) -> Result<ImportOutcome> {
        self.access.import_member(member, user).await
    }

    /// Adds a key from another store, unless the key or one of its ancestors was revoked, or its user is not a member.
    /// An existing key expires at the earlier of both times.
    pub async fn import_key(&self, key: &KeyRecord) -> Result<ImportOutcome> {
        self.access.import_key(key).await
    }

    /// Removes a member who was removed in another store, unless the member has joined since the removal.
    pub async fn import_removal(&self, workspace_id: &str, removed: &RemovedMember) -> Result<ImportOutcome> {
        self.access.import_removal(workspace_id, removed).await
    }

    /// Revokes a key that was revoked in another store. Does not revoke a key of another workspace.
    pub async fn import_revocation(&self, workspace_id: &str, key_id: &Arc<str>) -> Result<ImportOutcome> {
        self.access.import_revocation(workspace_id, key_id).await
    }
}
