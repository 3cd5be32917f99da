//! Results of plugins: facts about an aggregate, assignments of tasks, and the products of scripted agents.

use std::fmt;
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::closed_set::closed_set;
use super::value::{Object, Value};

/// The facts that a plugin derived from one event and from the state after the event. The facts replace the earlier
/// facts of the same plugin about the aggregate.
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
    /// The text of the link that the edge represents. While no node matches the target, the link is broken.
    pub link: Option<Arc<str>>,
}

/// A description of the node that an edge points to. The edge is open while at least one node other than the aggregate
/// itself matches the description. The edge points to the oldest such node. With [`Target::Page`], the edge points to
/// the page that the references in the list name, and is not open if this page is the aggregate itself. Except for
/// [`Target::Id`], only nodes of the aggregate's project match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    Id(Arc<str>),
    /// A node with this label, of any type.
    Label(Arc<str>),
    /// A node whose state has this value in a top-level field, such as `slug`. An integer in the field is compared as
    /// text. Other numbers never match.
    Field(Arc<str>, Arc<str>),
    /// The page that a reference in the list names, see [`super::page`]. If several references name a page, the first
    /// of these references is used.
    Page(Arc<[Arc<str>]>),
}

/// The name of the state field with which the engine compares an edge's `to_slug`.
pub const SLUG: &str = "slug";

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Id(id) => write!(f, "{id}"),
            Target::Label(label) => write!(f, "label '{label}'"),
            Target::Field(field, value) => write!(f, "{field} '{value}'"),
            Target::Page(references) => write!(f, "page '{}'", references.join("' or '")),
        }
    }
}

/// An event that a plugin requests to append.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFact {
    pub event_type: String,
    pub payload: Object,
}

/// An assignment of work to an agent or user, decided by a `route` hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub assignee: Assignee,
    /// The title of the task. If the title is `None`, the engine generates one.
    pub title: Option<String>,
    pub priority: Priority,
    pub metadata: Object,
    /// The time from the event to the task's due date, in seconds.
    pub due_in_s: Option<u64>,
}

/// The agent or the user that a task is assigned to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Assignee {
    Agent(Arc<str>),
    User(Arc<str>),
}

/// The maximum length of an assignee's id, in bytes.
const MAX_ASSIGNEE_ID: usize = 128;

impl Assignee {
    /// Returns the assignee with this type, `agent` or `user`, and this id. Returns `None` if the type is unknown or
    /// the id is invalid.
    pub fn of(kind: &str, id: &str) -> Option<Assignee> {
        match kind {
            _ if id.is_empty() || id.len() > MAX_ASSIGNEE_ID => None,
            "agent" => Some(Assignee::Agent(id.into())),
            "user" => Some(Assignee::User(id.into())),
            _ => None,
        }
    }

    /// Parses an assignee from a string: `agent:ID` or `user:ID`.
    pub fn parse(text: &str) -> Option<Assignee> {
        let (kind, id) = text.split_once(':')?;
        Assignee::of(kind, id)
    }

    /// Returns the assignee as a string: `agent:ID` or `user:ID`.
    pub fn text(&self) -> String {
        match self {
            Assignee::Agent(id) => format!("agent:{id}"),
            Assignee::User(id) => format!("user:{id}"),
        }
    }
}

closed_set!(Priority);

/// The priority of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

/// The result of a scripted agent's work on a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Product {
    pub artifacts: Vec<Artifact>,
    pub message: Option<String>,
    /// Whether a person must review the artifacts.
    pub review: bool,
    /// The reason why the agent declines the task. `None` if the agent does not decline the task. If the agent declines
    /// the task, the other fields are empty, and the task becomes available to other assignees.
    pub declined: Option<String>,
}

/// An artifact that a scripted agent produces.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub name: String,
    /// The parts of the artifact. Each part is `{text}`, `{data}` or `{file}`, with an optional `media_type`.
    pub parts: Vec<Value>,
    /// An event for the aggregate that the task is about. The event is appended when the artifact is approved, or with
    /// the delivery if no review is needed.
    pub effect: Option<EventFact>,
}
