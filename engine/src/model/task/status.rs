//! The statuses of a task.

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Nobody has begun.
    Pending,
    /// An agent holds it.
    InProgress,
    /// The agent asked for something.
    InputRequired,
    /// Output is delivered.
    Review,
    /// A person asked for something.
    AwaitingReply,
    /// It is set aside.
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

    /// The status of this name.
    pub fn parse(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether there is still something to do.
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
