//! Hands over the tasks of members and agents who leave the workspace.

use strum::VariantArray;

use super::tasks::{TaskFilter, TaskLimit};
use crate::append::request::Decide;
use crate::error::{Error, ErrorCode, Result};
use crate::mailbox::check_gets_work;
use crate::mailbox::offboarding::{self, Departure};
use crate::mailbox::person::parts;
use crate::model::agent;
use crate::model::builtin::AGENT;
use crate::model::facts::Assignee;
use crate::model::task::Status;
use crate::workspace::call_context::{CallContext, Operation};

/// The maximum number of tasks that are handed over with one append.
const AT_ONCE: usize = 500;
/// The approximate size of the event of one task, in bytes.
const EVENT_BYTES: usize = 1_024;

impl CallContext {
    /// Checks that a successor may take over the tasks of a member or agent that leaves: the successor must be another
    /// member, or another agent that gets work.
    pub(in crate::workspace) async fn check_successor(
        &self,
        leaving: &Assignee,
        successor: Option<&Assignee>,
    ) -> Result<()> {
        let Some(successor) = successor else { return Ok(()) };
        if successor == leaving {
            let message = "`reassign_to` names the leaving agent or member; expected another agent or member";
            return Err(Error::invalid(message));
        }
        if let Assignee::Agent(id) = successor {
            self.state().refresh().await?;
            let found = self.live(AGENT, id)?;
            if agent::is_disabled(&found) {
                return Err(Error::conflict(
                    ErrorCode::AgentDisabled,
                    "`reassign_to` names a disabled agent; expected an agent that is not disabled",
                ));
            }
            check_gets_work(&self.state().plugins, &found)?;
        }
        self.check_user(Some(successor)).await
    }
}

impl Operation {
    /// Assigns the open tasks of an assignee who has left to the assignee's successor. If there is no successor, or if
    /// the successor is an agent that gets no work, the tasks become unassigned.
    pub(in crate::workspace) async fn hand_over(&self, left: &Departure) -> Result<()> {
        let (kind, id) = parts(Some(&left.who));
        let filter = TaskFilter {
            statuses: Some(Status::VARIANTS.iter().copied().filter(|status| status.is_open()).collect()),
            assignee_type: Some(kind),
            assignee_id: id.map(|id| id.to_string()),
            ..TaskFilter::default()
        };
        let mut before = None;
        loop {
            let page = self.context().select_tasks(&filter, before, TaskLimit::tasks(AT_ONCE)).await?;
            let ids: Vec<String> = page.items.iter().map(|task| task.id.to_string()).collect();
            if !ids.is_empty() {
                let given_bytes = ids.len() * EVENT_BYTES;
                let (left, stamp) = (left.clone(), self.context().stamp());
                let decide: Decide = Box::new(move |view| {
                    let decided = |id: &String| offboarding::decide(view, id, &left, Some(&stamp));
                    Ok(ids.iter().filter_map(decided).collect())
                });
                self.append_decided(decide, None, given_bytes).await?;
            }
            before = page.next;
            if before.is_none() {
                return Ok(());
            }
        }
    }

    /// Hands over the tasks of the user to whom a task was just assigned, if the user was removed at the same time. The
    /// removal may have handed over the user's tasks before this task was assigned. Returns whether the user was
    /// removed.
    pub(super) async fn settle_assignee(&self, assignee: Option<&Assignee>) -> Result<bool> {
        match assignee {
            Some(Assignee::User(id)) if !self.context().is_member(id).await? => {
                self.hand_over(&Departure::member(id, None)).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
