//! Transfers workspaces, members and keys from and to other stores, for the operator of the store. Requests cannot reach
//! these operations.

use std::sync::Arc;

use super::Engine;
use crate::access::restore::ImportOutcome;
use crate::error::Result;
use crate::model::access::{KeyRecord, Membership, RemovedMember, UserRecord, WorkspaceRecord};

impl Engine {
    /// Creates a workspace with the id that it has in another store. If `with_key` is set, returns a key for its owner
    /// that holds every scope.
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

    /// Adds a member from another store, unless the member was removed. An existing member's role never rises.
    pub async fn import_member(&self, member: &Membership, user: &UserRecord) -> Result<ImportOutcome> {
        self.access.import_member(member, user).await
    }

    /// Adds a key from another store, unless the key was revoked. An existing key never lives longer.
    pub async fn import_key(&self, key: &KeyRecord) -> Result<ImportOutcome> {
        self.access.import_key(key).await
    }

    /// Removes a member who was removed in another store.
    pub async fn import_removal(&self, workspace_id: &str, removed: &RemovedMember) -> Result<ImportOutcome> {
        self.access.import_removal(workspace_id, removed).await
    }

    /// Revokes a key that was revoked in another store.
    pub async fn import_revocation(&self, workspace_id: &str, key_id: &Arc<str>) -> Result<ImportOutcome> {
        self.access.import_revocation(workspace_id, key_id).await
    }
}
