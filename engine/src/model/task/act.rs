//! The acts that change a task: acts of people, acts of agents, deadlines, and the departure of the assignee.

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::model::closed_set::{closed_set, named};

/// An act on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Person(Action),
    Agent(Verb),
    Time(Deadline),
    /// The assignee has left: a removed member, or an agent that is disabled or deleted.
    AssigneeLeft,
}

closed_set!(Action);
named!(Verb, Deadline);

/// An act of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    Approve,
    Edit,
    Reject,
    Defer,
    Ask,
    /// Sends the output back to the agent, with a description of the requested changes.
    RequestChanges,
    /// Answers the question of the agent.
    Answer,
    Assign,
    /// Makes a failed task pending again.
    Retry,
    Read,
    Unread,
}

/// An act of an agent, except for `Cancel`, and for a `Message` in a request that names no agent. Only the task's
/// creator or an owner of the workspace may cancel a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Verb {
    Claim,
    /// Adds a message.
    Message,
    /// Adds an artifact.
    Artifact,
    /// Delivers the output of a claimed task.
    Complete,
    /// Delivers output without claiming the task first. Only scripted agents do this.
    Deliver,
    /// Declines a task that is not claimed. The task loses its assignee and waits for a new assignee. Only scripted
    /// agents do this.
    Decline,
    /// Ends a task that is not claimed, after the agent's plugin failed. Only scripted agents do this.
    GiveUp,
    RequestInput,
    Fail,
    Release,
    Cancel,
}

/// An act that occurs at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Deadline {
    /// The deferral of a task ends.
    Wake,
    /// The lease on a task expires.
    Expire,
    /// The due date of a task passes. The status of the task does not change.
    Overdue,
    /// The next escalation step of an overdue task becomes due.
    Escalate,
}

impl Act {
    pub fn name(self) -> &'static str {
        match self {
            Act::Person(action) => action.name(),
            Act::Agent(verb) => verb.name(),
            Act::Time(deadline) => deadline.name(),
            Act::AssigneeLeft => "hand over",
        }
    }
}

impl Action {
    /// Returns whether the action is a decision about the task's output. The review settings of a task can forbid
    /// decisions, but no other actions.
    pub fn is_decision(self) -> bool {
        match self {
            Action::Approve | Action::Edit | Action::Reject | Action::Defer => true,
            Action::Ask | Action::RequestChanges | Action::Answer => true,
            Action::Assign | Action::Retry | Action::Read | Action::Unread => false,
        }
    }
}
