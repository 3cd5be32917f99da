//! Reads the members of the workspace, so that plugins and escalations assign work only to members.

use std::sync::Arc;

use crate::access::Access;
use crate::error::Result;

/// The members of one workspace.
#[derive(Clone)]
pub struct Members {
    access: Arc<Access>,
    workspace_id: Arc<str>,
}

impl Members {
    pub fn new(access: Arc<Access>, workspace_id: Arc<str>) -> Members {
        Members { access, workspace_id }
    }

    /// Returns the id of the owner of the workspace. The owner may have changed since the workspace was opened.
    pub async fn owner(&self) -> Result<Arc<str>> {
        Ok(self.access.workspace(&self.workspace_id).await?.owner_id)
    }

    /// Returns whether a user is a member.
    pub async fn contain(&self, user_id: &str) -> Result<bool> {
        Ok(self.access.role_of(&self.workspace_id, user_id).await?.is_some())
    }
}
