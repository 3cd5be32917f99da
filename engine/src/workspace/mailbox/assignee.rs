//! Checks whether a user may be assigned a task. Users are not part of the log, so they are checked here. Agents are
//! checked by the decision on the append.

use crate::error::{Error, Result};
use crate::model::facts::Assignee;
use crate::workspace::call_context::CallContext;

impl CallContext {
    /// Rejects a user who is not a member of the workspace, with the same error as for an unknown user.
    pub(super) async fn check_user(&self, assignee: Option<&Assignee>) -> Result<()> {
        match assignee {
            Some(Assignee::User(id)) if !self.is_member(id).await? => Err(Error::not_found("user", id)),
            _ => Ok(()),
        }
    }
}
