//! The actions of people on tasks, with their content.

use crate::error::{Error, Result};
use crate::model::facts::Assignee;
use crate::model::task::Action;
use crate::model::task::content::Message;
use crate::model::task::edit::Edit;

/// The flags that allow a person to approve output despite a reason to reject the approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApprovalOverrides {
    /// Whether to append an effect even if its aggregate has changed since the author of the effect read the aggregate.
    pub stale: bool,
    /// Whether to approve output that a person has sent back for changes.
    pub superseded: bool,
}

/// An action of a person on a task, with the action's content.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCommand {
    Approve {
        comment: Option<String>,
        accepted: ApprovalOverrides,
    },
    Edit {
        edit: Edit,
        comment: Option<String>,
        accepted: ApprovalOverrides,
    },
    Reject {
        reason: Option<String>,
    },
    Defer {
        /// The time at which the deferral ends, in milliseconds since the epoch. `None` defers the task until another
        /// action ends the deferral.
        until: Option<i64>,
        reason: Option<String>,
    },
    Ask {
        message: Message,
    },
    RequestChanges {
        message: Message,
    },
    Answer {
        message: Message,
    },
    Assign {
        /// The new assignee. `None` leaves the task without an assignee.
        assignee: Option<Assignee>,
        /// The new due date, in milliseconds since the epoch. `None` leaves the due date unchanged.
        due_at: Option<i64>,
    },
    Retry {
        comment: Option<String>,
    },
    Read,
    Unread,
}

impl TaskCommand {
    /// Returns the command that defers a task. Fails if both the time and the reason are missing, because such a task
    /// might be forgotten.
    pub fn defer(until: Option<i64>, reason: Option<String>) -> Result<TaskCommand> {
        if until.is_none() && reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
            let message = "expected `until`, `for_seconds` or a `reason` that is not only white space";
            return Err(Error::invalid_at("/until", message));
        }
        Ok(TaskCommand::Defer { until, reason })
    }

    /// Returns the action without its content.
    pub fn action(&self) -> Action {
        match self {
            TaskCommand::Approve { .. } => Action::Approve,
            TaskCommand::Edit { .. } => Action::Edit,
            TaskCommand::Reject { .. } => Action::Reject,
            TaskCommand::Defer { .. } => Action::Defer,
            TaskCommand::Ask { .. } => Action::Ask,
            TaskCommand::RequestChanges { .. } => Action::RequestChanges,
            TaskCommand::Answer { .. } => Action::Answer,
            TaskCommand::Assign { .. } => Action::Assign,
            TaskCommand::Retry { .. } => Action::Retry,
            TaskCommand::Read => Action::Read,
            TaskCommand::Unread => Action::Unread,
        }
    }

    /// Returns the approximate size of the action's content, in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            TaskCommand::Edit { edit, .. } => edit.size_bytes(),
            TaskCommand::Ask { message }
            | TaskCommand::RequestChanges { message }
            | TaskCommand::Answer { message } => message.size_bytes(),
            TaskCommand::Approve { comment: text, .. }
            | TaskCommand::Retry { comment: text }
            | TaskCommand::Reject { reason: text }
            | TaskCommand::Defer { reason: text, .. } => text.as_ref().map_or(0, String::len),
            TaskCommand::Assign { .. } | TaskCommand::Read | TaskCommand::Unread => 0,
        }
    }
}
