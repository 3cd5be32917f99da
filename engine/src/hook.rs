//! The interface for plugins: hooks for enrichment, routing, scripted agents and tools.
//!
//! A hook is a function from data to data. Hooks run on dedicated threads that serve no requests. The running time of a
//! script's hook is limited, but a native hook has no time limit. The same input must give the same output. The hook
//! `mount` is an exception: the HTTP server calls the endpoints of this hook while it serves a request.

mod loader;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::model::aggregate::Aggregate;
use crate::model::closed_set::{closed_set, named};
use crate::model::definition::Definition;
use crate::model::event::Event;
use crate::model::facts::{Assignment, Facts, Product};
use crate::model::value::{Object, Value};
use crate::model::violation::Violation;

pub use crate::model::plugin::ScriptSource;
pub use loader::{Loader, PluginDraft, VersionRefusal};

/// A named set of hooks.
pub trait Plugin: Send + Sync + 'static {
    /// Returns the description and settings of the plugin.
    fn about(&self) -> &PluginDescription;

    /// Returns the source of the plugin, or `None` for a plugin that is compiled into the program.
    fn source(&self) -> Option<&ScriptSource> {
        None
    }

    /// Derives facts from an event and the state after the event.
    fn enrich(&self, _call: &EnrichInput<'_>) -> Outcome<Facts> {
        Ok(HookOutput::default())
    }

    /// Returns the assignments that an event causes. Each assignment creates a task for an agent or a user.
    fn route(&self, _call: &RouteInput<'_>) -> Outcome<Vec<Assignment>> {
        Ok(HookOutput::default())
    }

    /// Performs a task of the plugin's agent.
    fn work(&self, _call: &WorkInput<'_>) -> Outcome<Product> {
        Ok(HookOutput::default())
    }

    /// Checks the arguments with which a language model calls the plugin's tool. Returns the violations.
    fn check_arguments(&self, _arguments: &Object) -> Vec<Violation> {
        Vec::new()
    }

    /// Runs the plugin's tool for a model.
    fn tool(&self, _call: &ToolInput<'_>) -> Outcome<Object> {
        Ok(HookOutput::default())
    }
}

/// The description and settings of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginDescription {
    pub name: Arc<str>,
    pub version: String,
    pub description: String,
    pub hooks: Vec<Hook>,
    pub on: Subscription,
    pub on_error: OnError,
    /// The settings passed to the plugin's hooks.
    pub settings: Object,
    /// The agent registered for the plugin. Set for plugins with the hook `work`.
    pub agent: Option<PluginAgent>,
    /// The description of the tool for models. Set for plugins with the hook `tool`.
    pub tool: Option<ToolProfile>,
    /// The choice of the agents that are passed to the hook `route`.
    pub candidates: Candidates,
}

closed_set!(Hook);
named!(OnError, Candidates, FailureKind);

/// The kinds of functions that a plugin may implement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Hook {
    Enrich,
    Route,
    Work,
    /// A tool that models can call.
    Tool,
    /// The HTTP endpoints under the plugin's path, or a protocol such as MCP. Only native plugins can have this hook.
    Mount,
}

/// The events that a plugin is called for. An event must match both lists; an empty list matches every event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    /// The patterns of event types: `article.created`, `article.*`, `*.created` or `*`.
    pub events: Vec<Arc<str>>,
    /// The names of traits. The event's aggregate type must have at least one of these traits.
    pub traits: Vec<Arc<str>>,
}

impl Subscription {
    /// Returns whether the plugin is called for an event type. `traits` contains the traits of the event's aggregate
    /// type.
    pub fn admits(&self, event_type: &str, traits: &[Arc<str>]) -> bool {
        (self.events.is_empty() || self.events.iter().any(|pattern| pattern_admits(pattern, event_type)))
            && (self.traits.is_empty() || self.traits.iter().any(|required| traits.contains(required)))
    }
}

fn pattern_admits(pattern: &str, event_type: &str) -> bool {
    let matches = |expected: &str, actual: &str| expected == "*" || expected == actual;
    match (pattern.split_once('.'), event_type.split_once('.')) {
        (Some((name, verb)), Some((event_name, event_verb))) => matches(name, event_name) && matches(verb, event_verb),
        _ => matches(pattern, event_type),
    }
}

/// The handling of an event for which a hook failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum OnError {
    /// Retries the call a few times, then parks the step with the reason of the failure.
    #[default]
    Park,
    /// If the call fails, skips the event without parking the step. The failure counts in the plugin's measures, but
    /// not among the failures that pause the plugin. If the call succeeds but the log rejects the appends of the call,
    /// parks the step.
    Skip,
    /// Retries the call a few times with increasing delays, then parks the step. Other events do not wait for the
    /// retries. If too many steps of the plugin already wait for a retry, parks the step without a retry.
    Retry,
}

/// The choice of the agents that are passed to `route`. A workspace may have thousands of agents, so a plugin should
/// request only the agents that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Candidates {
    /// All agents.
    #[default]
    All,
    /// The agents that subscribe to at least one trait of the event's aggregate type.
    Subscribed,
}

impl Candidates {
    /// Returns whether an agent is passed to `route`. `subscribed` is the array of traits that the agent subscribes to.
    /// `traits` contains the traits of the event's aggregate type.
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

/// The agent of a plugin with the hook `work`.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginAgent {
    pub description: String,
    /// The traits of the aggregates that the agent is responsible for.
    pub traits: Vec<Arc<str>>,
    pub capabilities: Object,
}

/// The description of a tool for models, and the pipeline that runs before the tool is called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolProfile {
    pub title: Option<String>,
    /// The JSON Schema of the arguments.
    pub input: Object,
    /// The JSON Schema of the result.
    pub output: Option<Object>,
    /// The pipeline whose rows are passed to the tool. `{"$argument": "name"}` is replaced by the argument `name`, or
    /// by null if this argument is missing.
    pub pipeline: Option<Value>,
}

/// The field of a placeholder object in a tool's pipeline. The value of the field is the name of an argument.
const ARGUMENT: &str = "$argument";

impl ToolProfile {
    /// Adds the schema's default values for arguments that are missing.
    pub fn completed(&self, mut arguments: Object) -> Object {
        let properties = self.input.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flat_map(Object::iter) {
            if let Some(usual) = schema.get("default").filter(|_| !arguments.contains(name)) {
                arguments.push(name.clone(), usual.clone());
            }
        }
        arguments
    }

    /// Returns the name of the argument if `object` is a placeholder.
    pub fn argument(object: &Object) -> Option<&str> {
        object.get(ARGUMENT).and_then(Value::as_str).filter(|_| object.len() == 1)
    }
}

/// The input of `enrich`.
pub struct EnrichInput<'a> {
    pub event: &'a Event,
    /// The aggregate after the event.
    pub aggregate: &'a Aggregate,
    pub definition: &'a Definition,
}

/// The input of `route`.
pub struct RouteInput<'a> {
    pub event: &'a Event,
    /// The aggregate after the event, with its facts.
    pub aggregate: &'a Aggregate,
    pub definition: &'a Definition,
    /// The agents that the plugin's [`Candidates`] admit, in the order of their registration, without disabled agents
    /// and agents whose plugin is not enabled. Each agent has the fields `{id, name, traits, capabilities, status,
    /// open_tasks}`.
    pub agents: &'a [Value],
}

/// The field under which hooks receive an aggregate's label. The aggregate's type defines which text is the label.
pub const LABEL: &str = "_label";

/// The input of `work`.
pub struct WorkInput<'a> {
    /// The state of the task, with its id as `_id`.
    pub task: &'a Value,
    pub messages: &'a [Value],
    /// The state of the aggregate that the task is about, as returned by [`WorkInput::row`].
    pub aggregate: Option<&'a Value>,
    /// At most 200 nodes that are linked with the aggregate, or that belong to the same project and whose labels the
    /// aggregate's texts mention. Each node has the fields `{id, aggregate_type, label, slug, linked}`.
    pub related: &'a [Value],
    /// The time of the event that made the task wait for its agent, in milliseconds since the epoch.
    pub now_ms: i64,
}

impl WorkInput<'_> {
    /// Returns the pipeline row of an aggregate, with the label of the aggregate in the field [`LABEL`].
    pub fn row(aggregate: &Aggregate, definition: &Definition) -> Value {
        let row = aggregate.row(definition);
        let fields = row.as_object().into_iter().flat_map(Object::iter).filter(|(name, _)| &***name != LABEL);
        let mut labelled: Object = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        labelled.push(LABEL, definition.label_of(&aggregate.state));
        labelled.into()
    }
}

/// The input of `tool`.
pub struct ToolInput<'a> {
    /// Arguments that are valid under the tool's schema.
    pub arguments: &'a Object,
    /// The first 1,000 rows of the tool's pipeline. Empty if the tool has no pipeline.
    pub rows: &'a [Value],
    /// The current time, in milliseconds since the epoch.
    pub now_ms: i64,
}

/// The result of a hook, and the cost of computing the result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookOutput<T> {
    pub value: T,
    /// The number of script operations that the hook executed.
    pub operations: u64,
}

/// The result of a hook, or the reason why the hook failed.
pub type Outcome<T> = Result<HookOutput<T>, Failure>;

/// The reason why a hook failed, written for the author of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    /// The line of the failure in the plugin's file. `None` if the failure has no line.
    pub line: Option<u32>,
    pub column: Option<u32>,
}

/// The kinds of failures of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The script threw an error, or did something that the language forbids.
    Thrown,
    /// The returned value is not valid for the hook, or the log rejected the events that the call requested.
    Result,
    Operations,
    Deadline,
    Memory,
    /// A text, an array or a map became too large, or the call used too many variables.
    Size,
    /// Calls, expressions or the returned value were nested too deeply.
    Depth,
    /// A host function or a native plugin panicked, or the call ended without a result. This is a bug in this program.
    Panic,
}

/// A model that turns texts into vectors. Texts with similar meanings get vectors that are close to each other.
pub trait Embed: Send + Sync + 'static {
    /// Returns the name of the model. Vectors of different models are never compared.
    fn model(&self) -> &str;

    /// Returns one vector for each text, in the order of the texts. All vectors have the same length. The call may
    /// block.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedFailure>;
}

/// The reason why texts could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmbedFailure(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_selects_events_by_patterns_and_traits() {
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
