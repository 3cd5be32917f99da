//! Restores workspaces and their members from another store.

use std::collections::HashSet;
use std::sync::Arc;

use super::Access;
use crate::error::{Error, Result};
use crate::model::access::{UserRecord, WorkspaceRecord};
use crate::store::control::catalog::owner_of;
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
    /// The import was rejected, for example because it would restore a revoked key or a removed member, raise a role,
    /// or remove the owner of the workspace.
    Refused,
}

impl Access {
    /// Creates a workspace with the id that it has in another store. If `with_key` is set, also adds the owner as a
    /// member, creates a key with every scope for the owner, and returns that key.
    pub async fn restore_workspace(&self, workspace: &WorkspaceRecord, with_key: bool) -> Result<Option<String>> {
        check_id(&workspace.id)?;
        check_id(&workspace.owner_id)?;
        self.control.restore_workspace(workspace).await?;
        if with_key { self.restore_owner_key(workspace).await.map(Some) } else { Ok(None) }
    }

    /// Adds the owner of a workspace as a member, and creates a key with every scope for the owner. Returns the key.
    pub(super) async fn restore_owner_key(&self, workspace: &WorkspaceRecord) -> Result<String> {
        self.restore_owner(workspace).await?;
        let (record, key) = self.new_key(&workspace.id, &workspace.owner_id, "owner", None);
        self.control.restore_key(&record).await?;
        Ok(key)
    }

    /// Returns the ids of the workspaces that a server is restoring. No other server may open these workspaces.
    pub async fn being_restored(&self) -> Result<HashSet<Arc<str>>> {
        Ok(self.control.read_running_restores().await?.into_iter().map(|restore| restore.workspace_id).collect())
    }

    /// Creates the user of a workspace's owner, and adds the owner as a member. A user or member that already exists
    /// stays unchanged.
    pub async fn restore_owner(&self, workspace: &WorkspaceRecord) -> Result<()> {
        let id = workspace.owner_id.clone();
        let owner = UserRecord { id, email: None, email_verified: false, name: None, plan: None };
        self.control.restore_member(&owner_of(workspace), &owner).await?;
        Ok(())
    }

    /// Ends the rights that depend on deleted keys, and deletes the keys derived from these keys.
    pub async fn end_keys(&self, keys: &[Arc<str>]) {
        self.known.forget();
        for key in keys {
            self.held.end(&GrantBasis::Key(key.clone()));
            self.sweep(key).await;
        }
    }
}

/// Checks that an id is a UUID. An id from a file could be any text, but ids become parts of the names of objects and
/// databases.
pub fn check_id(id: &Arc<str>) -> Result<()> {
    let is_ours = uuid::Uuid::try_parse(id).is_ok_and(|uuid| uuid.to_string() == **id);
    match is_ours {
        true => Ok(()),
        false => Err(Error::invalid(format!("the id '{id:.64}' is not a UUID in lower case with hyphens"))),
    }
}
