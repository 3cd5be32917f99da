//! The event types of a task's stream.

use strum::{EnumString, IntoStaticStr};

use crate::model::closed_set::named;

named!(TaskEvent);

/// The kind of an event in a task's stream. The name of a kind is the event type in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(prefix = "task.", serialize_all = "snake_case")]
pub enum TaskEvent {
    Created,
    Assigned,
    Unassigned,
    Claimed,
    Message,
    Artifact,
    /// Output that needs a review was delivered.
    Delivered,
    /// Output that needs no review was delivered.
    Completed,
    InputRequested,
    Asked,
    /// A person sent the output back to the agent.
    ChangesRequested,
    /// A person answered the agent's question.
    Answered,
    Approved,
    Edited,
    Rejected,
    Deferred,
    Resumed,
    Released,
    Expired,
    Failed,
    /// A person made a failed task pending again.
    Retried,
    Canceled,
    /// The due date has passed.
    Overdue,
    /// An escalation step of the overdue task became due. The step may have reassigned the task or raised its priority.
    Escalated,
    Read,
    Unread,
}

impl TaskEvent {
    /// Returns the kind with this event type, or `None` if the event type is unknown.
    pub fn parse(event_type: &str) -> Option<TaskEvent> {
        // `strum` puts the prefix before the names, but does not accept the prefix when it parses a name.
        event_type.strip_prefix("task.")?.parse().ok()
    }
}
