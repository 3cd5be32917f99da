//! The statuses of a task.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::model::closed_set::closed_set;

closed_set!(Status);

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// The work has not been started, or must be started again.
    Pending,
    /// An agent holds the task.
    InProgress,
    /// The agent has asked for input.
    InputRequired,
    /// The agent has delivered output or replied, and a person must decide.
    Review,
    /// A person has asked a question, requested changes, or answered the agent's question.
    AwaitingReply,
    /// The task is paused until a given time, or until an action ends the deferral.
    Deferred,
    Approved,
    Rejected,
    Completed,
    Failed,
    Canceled,
}

impl Status {
    /// Returns whether the task is not finished yet.
    pub fn is_open(self) -> bool {
        match self {
            Status::Pending
            | Status::InProgress
            | Status::InputRequired
            | Status::Review
            | Status::AwaitingReply
            | Status::Deferred => true,
            Status::Approved | Status::Rejected | Status::Completed | Status::Failed | Status::Canceled => false,
        }
    }
}
