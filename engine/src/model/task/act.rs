//! What may be done to a task: by people, by agents, and by the time.

/// Something that is done to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Person(Action),
    Agent(Verb),
    Time(Deadline),
}

/// What a person does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Approve,
    Edit,
    Reject,
    Defer,
    Ask,
    Assign,
    Read,
    Unread,
}

/// What an agent does, and `cancel`, which is for whoever made the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    Claim,
    /// To say something.
    Message,
    /// To add output.
    Artifact,
    /// To deliver what was claimed.
    Complete,
    /// To deliver without a claim, as scripted agents do.
    Deliver,
    RequestInput,
    Fail,
    Release,
    Cancel,
}

/// What happens when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// A deferred task wakes.
    Wake,
    /// A lease ends.
    Expire,
    /// The due date passes. That decides nothing.
    Overdue,
    /// The task has been overdue for as long as a step of its escalation waits.
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
    pub const ALL: [Action; 8] = [
        Action::Approve,
        Action::Edit,
        Action::Reject,
        Action::Defer,
        Action::Ask,
        Action::Assign,
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
            Action::Assign => "assign",
            Action::Read => "read",
            Action::Unread => "unread",
        }
    }

    /// The action of this name.
    pub fn parse(name: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Whether the action says what becomes of the task's output, so that a review may leave it out.
    pub fn is_decision(self) -> bool {
        match self {
            Action::Approve | Action::Edit | Action::Reject | Action::Defer | Action::Ask => true,
            Action::Assign | Action::Read | Action::Unread => false,
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

    /// As it stands in the sentence "cannot … a task".
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
