//! Transfers workspaces, members and keys from and to other stores, for the operator of the store. Requests cannot reach
//! these operations.

use super::Engine;
use crate::error::Result;
use crate::model::access::{KeyRecord, Membership, UserRecord, WorkspaceRecord};

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

    /// Adds a member from another store, unless the user is already a member. Returns whether the member is new.
    pub async fn restore_member(&self, member: &Membership, user: &UserRecord) -> Result<bool> {
        self.access.restore_member(member, user).await
    }

    /// Adds a key from another store, unless a key with the same id or secret exists. Returns whether the key is new.
    pub async fn restore_key(&self, key: &KeyRecord) -> Result<bool> {
        self.access.restore_key(key).await
    }
}
