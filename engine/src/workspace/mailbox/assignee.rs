//! Who may be given a task. Agents are looked for against the log's end; users are no part of the log.

use crate::error::{Error, Result};
use crate::model::facts::Assignee;
use crate::workspace::entered::Entered;

impl Entered {
    /// Refuses a user who is not of the workspace, as if there were none.
    pub(super) async fn check_user(&self, assignee: Option<&Assignee>) -> Result<()> {
        match assignee {
            Some(Assignee::User(id)) if !self.is_member(id).await? => Err(Error::not_found("user", id)),
            _ => Ok(()),
        }
    }
}
