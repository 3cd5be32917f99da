//! Results of plugins: facts about an aggregate, assignments of tasks, and the products of scripted agents.

use std::fmt;
use std::sync::Arc;

use super::value::{Object, Value};

/// The facts that a plugin derived from one event and the state after the event. They replace the earlier facts of the
/// same plugin about the aggregate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Additional labels by which searches find the aggregate's node.
    pub labels: Vec<Arc<str>>,
    pub edges: Vec<EdgeFact>,
    /// The derived data, which pipelines show as `_facts.<plugin>`.
    pub derived: Object,
    /// Events to append to the aggregate's stream.
    pub events: Vec<EventFact>,
}

/// An edge that starts at the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeFact {
    pub kind: Arc<str>,
    pub to: Target,
    pub weight: f64,
}

/// A description of the node that an edge points to. The edge is open while at least one node matches the description,
/// and it points to the oldest matching node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    Id(Arc<str>),
    /// A node with this label, of any type.
    Label(Arc<str>),
    /// A node whose state has this value in a top-level field, such as `slug`. Numbers are compared as text.
    Field(Arc<str>, Arc<str>),
}

/// The name of the state field with which `to_slug` is compared.
pub const SLUG: &str = "slug";

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Id(id) => write!(f, "{id}"),
            Target::Label(label) => write!(f, "label '{label}'"),
            Target::Field(field, value) => write!(f, "{field} '{value}'"),
        }
    }
}

/// An event that enrichment requests to append.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFact {
    pub event_type: String,
    pub payload: Object,
}

/// An assignment of work to an agent or user, decided by a `route` hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub assignee: Assignee,
    /// The title of the task. The host generates a title if this is `None`.
    pub title: Option<String>,
    pub priority: Priority,
    pub metadata: Object,
    /// The time from the event to the task's due date, in seconds.
    pub due_in_s: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Assignee {
    Agent(Arc<str>),
    User(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

impl Priority {
    pub const ALL: [Priority; 4] = [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];

    pub fn name(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
            Priority::Urgent => "urgent",
        }
    }
}

/// The result of a scripted agent's work on a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Product {
    pub artifacts: Vec<Artifact>,
    pub message: Option<String>,
    /// Whether a person must review the artifacts.
    pub review: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub name: String,
    /// The parts of the artifact. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    pub parts: Vec<Value>,
    /// The event to append to the task's aggregate when the artifact is approved.
    pub effect: Option<EventFact>,
}
