//! Lists the workspaces and users of a store for operators, renames workspaces, and deletes workspaces after a grace
//! period.

use std::sync::Arc;

use super::Access;
use super::credential_cache::plan_of;
use crate::error::{Error, ErrorCode, Result};
use crate::model::access::{Membership, UserRecord};
use crate::model::plan::UserPlan;
pub use crate::store::control::workspaces::ListedWorkspace;
use crate::store::control::workspaces::WorkspaceDeletion;

/// The maximum length of the name of a workspace, in characters.
const MAX_NAME_CHARS: usize = 200;

/// A user of the store.
#[derive(Debug, Clone)]
pub struct ListedUser {
    pub record: UserRecord,
    pub plan: UserPlan,
    /// The memberships in the order of joining.
    pub memberships: Vec<Membership>,
}

impl Access {
    /// Returns up to `limit` workspaces after the given id, in the order of their ids.
    pub async fn workspace_page(&self, after: Option<&str>, limit: usize) -> Result<Vec<ListedWorkspace>> {
        Ok(self.control.workspace_page(after, limit).await?)
    }

    /// Returns up to `limit` users after the given id, in the order of their ids.
    pub async fn user_page(&self, after: Option<&str>, limit: usize) -> Result<Vec<ListedUser>> {
        let found = self.control.user_page(after, limit).await?;
        let settings = &self.policy().settings;
        let users = found.into_iter().map(|found| ListedUser {
            plan: plan_of(&found.user, settings),
            record: found.user,
            memberships: found.memberships,
        });
        Ok(users.collect())
    }

    /// Returns the current state of a workspace from the store.
    pub async fn listed_workspace(&self, id: &str) -> Result<ListedWorkspace> {
        let record = self.workspace(id).await?;
        let delete_at = self.control.read_deletion(id).await?.and_then(|deletion| deletion.delete_at);
        Ok(ListedWorkspace { record, delete_at })
    }

    /// Changes the name of a workspace.
    pub async fn rename_workspace(&self, id: &str, name: &str) -> Result<ListedWorkspace> {
        let name = name.trim();
        check_name(name)?;
        let renamed = self.control.rename_workspace(id, name).await?;
        renamed.ok_or_else(|| Error::not_found("workspace", id))?;
        self.listed_workspace(id).await
    }

    /// Begins the grace period after which a workspace is deleted. A grace period that has already begun stays
    /// unchanged.
    pub async fn delete_workspace(&self, id: &str, grace_ms: i64) -> Result<ListedWorkspace> {
        if self.is_first(id).await? {
            let message = "the first workspace belongs to the operators of the installation and cannot be deleted";
            return Err(Error::conflict(ErrorCode::FirstWorkspace, message));
        }
        let delete_at = self.clock.now_ms().saturating_add(grace_ms);
        match self.control.begin_deletion(id, delete_at).await? {
            true => self.listed_workspace(id).await,
            false => Err(Error::not_found("workspace", id)),
        }
    }

    /// Cancels the planned deletion of a workspace, if there is one. Fails if the workspace was removed.
    pub async fn keep_workspace(&self, id: &str) -> Result<ListedWorkspace> {
        match self.control.cancel_deletion(id).await? {
            true => self.listed_workspace(id).await,
            false => Err(Error::not_found("workspace", id)),
        }
    }

    /// Returns the records of workspace deletions, including canceled deletions.
    pub async fn deletions(&self) -> Result<Vec<WorkspaceDeletion>> {
        Ok(self.control.read_deletions().await?)
    }

    /// Removes a workspace whose grace period has ended, with its memberships and keys. Returns whether this call
    /// removed the workspace.
    pub async fn remove_due_workspace(&self, id: &Arc<str>) -> Result<bool> {
        let removal = self.control.remove_due_workspace(id, self.clock.now_ms());
        let Some(removed) = self.forgetting(removal).await? else { return Ok(false) };
        for user in &removed.members {
            self.held.end_above(id, user, None);
        }
        self.end_keys(&removed.keys).await;
        Ok(true)
    }
}

/// Fails if the name of a workspace is empty, only white space or too long, or contains a control character.
pub fn check_name(name: &str) -> Result<()> {
    if !name.trim().is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let expected =
        format!("expected 1 to {MAX_NAME_CHARS} characters, not only white space, and no control characters");
    Err(Error::invalid_at("/name", expected))
}
