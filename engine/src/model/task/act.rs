//! The acts that change a task: acts of people, acts of agents, and deadlines.

/// An act on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Person(Action),
    Agent(Verb),
    Time(Deadline),
}

/// An act of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Approve,
    Edit,
    Reject,
    Defer,
    Ask,
    /// Sends the output back to the agent, with what is to be different.
    RequestChanges,
    /// Answers the question of the agent.
    Answer,
    Assign,
    /// Gives a failed task back to its assignee.
    Retry,
    Read,
    Unread,
}

/// An act of an agent. `Cancel` is also available to the creator of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    RequestInput,
    Fail,
    Release,
    Cancel,
}

/// An act that occurs at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// The deferral of a task ends.
    Wake,
    /// The lease on a task expires.
    Expire,
    /// The due date of a task passes. The status of the task does not change.
    Overdue,
    /// A task has been overdue for the delay of its next escalation step.
    Escalate,
}

impl Act {
    pub fn name(self) -> &'static str {
        match self {
            Act::Person(action) => action.name(),
            Act::Agent(verb) => verb.name(),
            Act::Time(deadline) => deadline.name(),
        }
    }
}

impl Action {
    pub const ALL: [Action; 11] = [
        Action::Approve,
        Action::Edit,
        Action::Reject,
        Action::Defer,
        Action::Ask,
        Action::RequestChanges,
        Action::Answer,
        Action::Assign,
        Action::Retry,
        Action::Read,
        Action::Unread,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Action::Approve => "approve",
            Action::Edit => "edit",
            Action::Reject => "reject",
            Action::Defer => "defer",
            Action::Ask => "ask",
            Action::RequestChanges => "request_changes",
            Action::Answer => "answer",
            Action::Assign => "assign",
            Action::Retry => "retry",
            Action::Read => "read",
            Action::Unread => "unread",
        }
    }

    /// Returns the action with this name.
    pub fn parse(name: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Returns whether the action is a decision about the task's output. The review settings of a task may exclude
    /// decisions.
    pub fn is_decision(self) -> bool {
        match self {
            Action::Approve | Action::Edit | Action::Reject | Action::Defer => true,
            Action::Ask | Action::RequestChanges | Action::Answer => true,
            Action::Assign | Action::Retry | Action::Read | Action::Unread => false,
        }
    }
}

impl Verb {
    pub const ALL: [Verb; 9] = [
        Verb::Claim,
        Verb::Message,
        Verb::Artifact,
        Verb::Complete,
        Verb::Deliver,
        Verb::RequestInput,
        Verb::Fail,
        Verb::Release,
        Verb::Cancel,
    ];

    /// Returns the verb in the form that fits the error message "cannot … a task".
    pub fn name(self) -> &'static str {
        match self {
            Verb::Claim => "claim",
            Verb::Message => "message",
            Verb::Artifact => "artifact",
            Verb::Complete => "complete",
            Verb::Deliver => "deliver",
            Verb::RequestInput => "request_input",
            Verb::Fail => "fail",
            Verb::Release => "release",
            Verb::Cancel => "cancel",
        }
    }
}

impl Deadline {
    pub const ALL: [Deadline; 4] = [Deadline::Wake, Deadline::Expire, Deadline::Overdue, Deadline::Escalate];

    pub fn name(self) -> &'static str {
        match self {
            Deadline::Wake => "wake",
            Deadline::Expire => "expire",
            Deadline::Overdue => "overdue",
            Deadline::Escalate => "escalate",
        }
    }
}
