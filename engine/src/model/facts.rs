//! What plugins return: facts about an aggregate, assignments of work, and the product of a scripted agent's work.

use std::fmt;
use std::sync::Arc;

use super::value::{Object, Value};

/// What enrichment found in one event and the state after it. It replaces what the plugin found before.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Further names under which the aggregate's node is found.
    pub labels: Vec<Arc<str>>,
    pub edges: Vec<EdgeFact>,
    /// Shown in pipelines as `_facts.<plugin>`.
    pub derived: Object,
    /// To be appended to the same stream.
    pub events: Vec<EventFact>,
}

/// An edge that goes out from the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeFact {
    pub kind: Arc<str>,
    pub to: Target,
    pub weight: f64,
}

/// Which node an edge means. It is open while a node answers to this, and goes to the oldest that does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    Id(Arc<str>),
    /// A node by its label, whatever its type.
    Label(Arc<str>),
    /// A node whose state has this value in a top-level field, `slug` for example. Numbers stand as their text.
    Field(Arc<str>, Arc<str>),
}

/// The name of the field that `to_slug` means.
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

/// An event that enrichment wants appended.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFact {
    pub event_type: String,
    pub payload: Object,
}

/// Who gets work, decided by a `route` hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub assignee: Assignee,
    /// The task's title; the host makes one where it is missing.
    pub title: Option<String>,
    pub priority: Priority,
    pub metadata: Object,
    /// Seconds after the event.
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

/// What a scripted agent made of its task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Product {
    pub artifacts: Vec<Artifact>,
    pub message: Option<String>,
    /// Whether a person has to look at it.
    pub review: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub name: String,
    /// `{text}`, `{data}` or `{file}`, each with an optional `media_type`.
    pub parts: Vec<Value>,
    /// What approval of the artifact appends to the task's aggregate.
    pub effect: Option<EventFact>,
}
