//! The event types of a task's stream.

/// The kind of an event in a task's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    Approved,
    Edited,
    Rejected,
    Deferred,
    Resumed,
    Released,
    Expired,
    Failed,
    /// A person gave a failed task back to its assignee.
    Retried,
    Canceled,
    /// The due date has passed.
    Overdue,
    /// An escalation step reassigned the overdue task or raised its priority.
    Escalated,
    Read,
    Unread,
}

impl TaskEvent {
    pub const ALL: [TaskEvent; 24] = [
        TaskEvent::Created,
        TaskEvent::Assigned,
        TaskEvent::Unassigned,
        TaskEvent::Claimed,
        TaskEvent::Message,
        TaskEvent::Artifact,
        TaskEvent::Delivered,
        TaskEvent::Completed,
        TaskEvent::InputRequested,
        TaskEvent::Asked,
        TaskEvent::Approved,
        TaskEvent::Edited,
        TaskEvent::Rejected,
        TaskEvent::Deferred,
        TaskEvent::Resumed,
        TaskEvent::Released,
        TaskEvent::Expired,
        TaskEvent::Failed,
        TaskEvent::Retried,
        TaskEvent::Canceled,
        TaskEvent::Overdue,
        TaskEvent::Escalated,
        TaskEvent::Read,
        TaskEvent::Unread,
    ];

    /// Returns the event type that the log uses for this kind.
    pub fn name(self) -> &'static str {
        match self {
            TaskEvent::Created => "task.created",
            TaskEvent::Assigned => "task.assigned",
            TaskEvent::Unassigned => "task.unassigned",
            TaskEvent::Claimed => "task.claimed",
            TaskEvent::Message => "task.message",
            TaskEvent::Artifact => "task.artifact",
            TaskEvent::Delivered => "task.delivered",
            TaskEvent::Completed => "task.completed",
            TaskEvent::InputRequested => "task.input_requested",
            TaskEvent::Asked => "task.asked",
            TaskEvent::Approved => "task.approved",
            TaskEvent::Edited => "task.edited",
            TaskEvent::Rejected => "task.rejected",
            TaskEvent::Deferred => "task.deferred",
            TaskEvent::Resumed => "task.resumed",
            TaskEvent::Released => "task.released",
            TaskEvent::Expired => "task.expired",
            TaskEvent::Failed => "task.failed",
            TaskEvent::Retried => "task.retried",
            TaskEvent::Canceled => "task.canceled",
            TaskEvent::Overdue => "task.overdue",
            TaskEvent::Escalated => "task.escalated",
            TaskEvent::Read => "task.read",
            TaskEvent::Unread => "task.unread",
        }
    }

    /// Returns the kind with this event type.
    pub fn parse(event_type: &str) -> Option<TaskEvent> {
        TaskEvent::ALL.into_iter().find(|event| event.name() == event_type)
    }
}
