//! The statuses of a task.

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The work has not been started.
    Pending,
    /// An agent holds the task.
    InProgress,
    /// The agent has asked for input.
    InputRequired,
    /// Output has been delivered and awaits a decision.
    Review,
    /// A person has asked the agent a question.
    AwaitingReply,
    /// The task is paused until a given time, or until a person resumes it.
    Deferred,
    Approved,
    Rejected,
    Completed,
    Failed,
    Canceled,
}

impl Status {
    pub const ALL: [Status; 11] = [
        Status::Pending,
        Status::InProgress,
        Status::InputRequired,
        Status::Review,
        Status::AwaitingReply,
        Status::Deferred,
        Status::Approved,
        Status::Rejected,
        Status::Completed,
        Status::Failed,
        Status::Canceled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::InputRequired => "input_required",
            Status::Review => "review",
            Status::AwaitingReply => "awaiting_reply",
            Status::Deferred => "deferred",
            Status::Approved => "approved",
            Status::Rejected => "rejected",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Canceled => "canceled",
        }
    }

    /// Returns the status with this name.
    pub fn parse(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

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
