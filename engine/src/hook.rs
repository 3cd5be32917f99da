//! What a plugin may implement: the doors through which enrichment, routing and scripted agents come in.
//!
//! A hook is a function from data to data. It is called on threads of its own, never on those that answer requests,
//! and may take as long as its host allows; the same input gives the same output.

use std::sync::Arc;

use crate::model::aggregate::Aggregate;
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::facts::{Assignment, Facts, Product};
use crate::model::value::{Object, Value};
use crate::model::violation::Violation;

/// A named set of hooks.
pub trait Plugin: Send + Sync + 'static {
    fn about(&self) -> &About;

    /// What an event and the state after it tell.
    fn enrich(&self, _call: &Enrich<'_>) -> Outcome<Facts> {
        Ok(Done::default())
    }

    /// Who gets work because of an event.
    fn route(&self, _call: &Route<'_>) -> Outcome<Vec<Assignment>> {
        Ok(Done::default())
    }

    /// What a scripted agent makes of its task.
    fn work(&self, _call: &Work<'_>) -> Outcome<Product> {
        Ok(Done::default())
    }

    /// What is wrong with arguments that a model wants to call its tool with.
    fn check_arguments(&self, _arguments: &Object) -> Vec<Violation> {
        Vec::new()
    }

    /// What its tool answers a model.
    fn tool(&self, _call: &Tool<'_>) -> Outcome<Object> {
        Ok(Done::default())
    }
}

/// What a plugin says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    pub name: Arc<str>,
    pub version: String,
    pub description: String,
    pub hooks: Vec<Hook>,
    pub on: Subscription,
    pub on_error: OnError,
    /// The settings that its hooks are given.
    pub settings: Object,
    /// For plugins that work: the agent that is made for it.
    pub agent: Option<AgentProfile>,
    /// For plugins with the hook `tool`: what models are told of it.
    pub tool: Option<ToolProfile>,
    /// For plugins with the hook `route`: the agents that it is given.
    pub candidates: Candidates,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    Enrich,
    Route,
    Work,
    /// What models may call.
    Tool,
    /// An endpoint under the plugin's path; native plugins only.
    Mount,
}

impl Hook {
    pub const ALL: [Hook; 5] = [Hook::Enrich, Hook::Route, Hook::Work, Hook::Tool, Hook::Mount];

    pub fn name(self) -> &'static str {
        match self {
            Hook::Enrich => "enrich",
            Hook::Route => "route",
            Hook::Work => "work",
            Hook::Tool => "tool",
            Hook::Mount => "mount",
        }
    }
}

/// Which events a plugin is called for. Both parts must hold; an empty one always does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    /// `article.created`, `article.*`, `*.created` or `*`.
    pub events: Vec<Arc<str>>,
    /// Of which the event's aggregate type has at least one.
    pub traits: Vec<Arc<str>>,
}

impl Subscription {
    pub fn admits(&self, event_type: &str, traits: &[Arc<str>]) -> bool {
        (self.events.is_empty() || self.events.iter().any(|pattern| pattern_admits(pattern, event_type)))
            && (self.traits.is_empty() || self.traits.iter().any(|wanted| traits.contains(wanted)))
    }
}

fn pattern_admits(pattern: &str, event_type: &str) -> bool {
    let part = |wanted: &str, part: &str| wanted == "*" || wanted == part;
    match (pattern.split_once('.'), event_type.split_once('.')) {
        (Some((name, verb)), Some((event_name, event_verb))) => part(name, event_name) && part(verb, event_verb),
        _ => part(pattern, event_type),
    }
}

/// What becomes of an event for which a hook failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Tried again a few times, then kept aside with its reason.
    #[default]
    Park,
    /// Counted and passed over.
    Skip,
    /// Tried again until it succeeds; the events behind it wait.
    Retry,
}

impl OnError {
    pub const ALL: [OnError; 3] = [OnError::Park, OnError::Skip, OnError::Retry];

    pub fn name(self) -> &'static str {
        match self {
            OnError::Park => "park",
            OnError::Skip => "skip",
            OnError::Retry => "retry",
        }
    }
}

/// The agents that `route` chooses among. There may be thousands: a plugin should be given no more than it looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Candidates {
    /// All agents.
    #[default]
    All,
    /// Those that subscribe to one of the traits of the event's aggregate type.
    Subscribed,
}

impl Candidates {
    pub const ALL: [Candidates; 2] = [Candidates::All, Candidates::Subscribed];

    pub fn name(self) -> &'static str {
        match self {
            Candidates::All => "all",
            Candidates::Subscribed => "subscribed",
        }
    }

    /// Whether an agent is given, by the traits that it subscribes to, an array of texts, and those of the type.
    pub fn admit(self, subscribed: Option<&Value>, traits: &[Arc<str>]) -> bool {
        let shared = |name: &Value| name.as_str().is_some_and(|name| traits.iter().any(|known| **known == *name));
        match self {
            Candidates::All => true,
            Candidates::Subscribed => {
                subscribed.and_then(Value::as_array).is_some_and(|names| names.iter().any(shared))
            }
        }
    }
}

/// The agent that a plugin with the hook `work` is.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentProfile {
    pub description: String,
    /// Work on aggregates of these traits is its work.
    pub traits: Vec<Arc<str>>,
    pub capabilities: Object,
}

/// What models are told of a tool, and what is read before it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolProfile {
    pub title: Option<String>,
    /// JSON Schema of its arguments.
    pub input: Object,
    /// JSON Schema of its answer.
    pub output: Option<Object>,
    /// The pipeline whose rows it is given. `{"$argument": "name"}` in it stands for an argument.
    pub pipeline: Option<Value>,
}

/// What stands in a tool's pipeline for one of its arguments.
const ARGUMENT: &str = "$argument";

impl ToolProfile {
    /// The arguments of a call, with the schema's own for those that are not given.
    pub fn completed(&self, mut arguments: Object) -> Object {
        let properties = self.input.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flat_map(Object::iter) {
            if let Some(usual) = schema.get("default").filter(|_| !arguments.contains(name)) {
                arguments.push(name.clone(), usual.clone());
            }
        }
        arguments
    }

    /// The argument that an object in a pipeline stands for, if it does.
    pub fn argument(object: &Object) -> Option<&str> {
        object.get(ARGUMENT).and_then(Value::as_str).filter(|_| object.len() == 1)
    }
}

/// What `enrich` is given.
pub struct Enrich<'a> {
    pub event: &'a Event,
    /// The aggregate after the event.
    pub aggregate: &'a Aggregate,
    pub definition: &'a Definition,
}

/// What `route` is given.
pub struct Route<'a> {
    pub event: &'a Event,
    /// The aggregate after the event, with its facts.
    pub aggregate: &'a Aggregate,
    pub definition: &'a Definition,
    /// Those that the plugin's [`Candidates`] admit, in the order of their registration: `{id, name, traits, capabilities,
    /// status, open_tasks}` each.
    pub agents: &'a [Value],
}

/// The field of a state by which hooks are told the label of an aggregate: the text by which its type says it is known.
pub const LABEL: &str = "_label";

/// What `work` is given.
pub struct Work<'a> {
    /// The state of the task, with its id as `_id`.
    pub task: &'a Value,
    pub messages: &'a [Value],
    /// The state of the aggregate that the task is about, as [`Work::row`] makes it.
    pub aggregate: Option<&'a Value>,
    /// Nodes beside the aggregate's own: `{id, aggregate_type, label, slug, linked}` each.
    pub related: &'a [Value],
    /// The time of the event that made the task; milliseconds since the epoch.
    pub now_ms: i64,
}

impl Work<'_> {
    /// The row of an aggregate as pipelines show it, with its label.
    pub fn row(aggregate: &Aggregate, definition: &Definition) -> Value {
        let row = aggregate.row(definition);
        let fields = row.as_object().into_iter().flat_map(Object::iter).filter(|(name, _)| &***name != LABEL);
        let mut labelled: Object = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        labelled.push(LABEL, definition.label_of(&aggregate.state));
        labelled.into()
    }
}

/// What `tool` is given.
pub struct Tool<'a> {
    /// They are what its schema allows.
    pub arguments: &'a Object,
    /// The rows of its pipeline; none without one.
    pub rows: &'a [Value],
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}

/// A hook's result and what it cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Done<T> {
    pub value: T,
    /// Steps of the script.
    pub operations: u64,
}

pub type Outcome<T> = Result<Done<T>, Failure>;

/// Why a call failed, for the person who wrote the plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    /// Where in the plugin's file.
    pub line: Option<u32>,
    pub column: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The script threw, or did what the language refuses.
    Thrown,
    /// What it returned is not what its hook returns.
    Result,
    Operations,
    Deadline,
    Memory,
    /// A text, an array or a map grew too large.
    Size,
    /// Calls or expressions were nested too deeply.
    Depth,
    /// A function of the host failed; our bug.
    Panic,
}

impl FailureKind {
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Thrown => "thrown",
            FailureKind::Result => "result",
            FailureKind::Operations => "operations",
            FailureKind::Deadline => "deadline",
            FailureKind::Memory => "memory",
            FailureKind::Size => "size",
            FailureKind::Depth => "depth",
            FailureKind::Panic => "panic",
        }
    }
}

/// What turns texts into vectors that lie near one another where the texts mean alike.
pub trait Embed: Send + Sync + 'static {
    /// Names the model. Vectors of one model are never compared with those of another.
    fn model(&self) -> &str;

    /// A vector for each text, in their order, all of one length. It may block.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedFailure>;
}

/// Why texts could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmbedFailure(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_admits_what_its_patterns_and_traits_say() {
        let on = |events: &[&str], traits: &[&str]| Subscription {
            events: events.iter().map(|text| Arc::from(*text)).collect(),
            traits: traits.iter().map(|text| Arc::from(*text)).collect(),
        };
        let bears = [Arc::from("content-bearing")];
        assert!(on(&[], &[]).admits("note.created", &[]));
        assert!(on(&["*"], &[]).admits("note.created", &[]));
        assert!(on(&["note.*"], &[]).admits("note.created", &[]));
        assert!(on(&["*.created"], &["content-bearing"]).admits("note.created", &bears));
        assert!(!on(&["*.created"], &["publishable"]).admits("note.created", &bears));
        assert!(!on(&["article.*", "note.updated"], &[]).admits("note.created", &bears));
    }
}
