//! The wire types of `/plugins`.

use foldwork_engine::hook::{Failure, Hook, OnError};
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::facts::Facts;
use foldwork_engine::model::facts_value::list;
use foldwork_engine::model::value::{Object as Fields, Value};
use foldwork_engine::workspace::plugins::{HookResult, PluginStatus, Trial};
use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::closed_sets::{FailurePolicies, Hooks, OneOf, PluginStates};
use super::json::{AnyObject, AnyValue};
use super::page::Whole;

/// All enabled plugins.
#[derive(Object, Serialize)]
pub struct PluginList {
    pub data: Vec<PluginBody>,
}

/// A plugin with the statistics of its calls in this workspace since the server started.
#[derive(Object, Serialize)]
#[oai(rename = "Plugin")]
pub struct PluginBody {
    name: String,
    version: String,
    description: String,
    hooks: Vec<OneOf<Hooks>>,
    /// The events that the plugin is called for: `{events, traits}`.
    on: AnyObject,
    /// The policy for the plugin's failed steps.
    on_error: OneOf<FailurePolicies>,
    settings: AnyObject,
    /// The status. A plugin is `stopped` after failures for several aggregates in a row.
    status: OneOf<PluginStates>,
    /// The id of the event for which the plugin failed last before it was stopped.
    #[oai(nullable)]
    stopped_by: Option<String>,
    runs: u64,
    errors: u64,
    parked: u64,
    p50_ms: f64,
    p99_ms: f64,
    /// The number of script operations of all successful calls together.
    operations: u64,
    #[oai(nullable)]
    last_error: Option<FailureBody>,
}

/// The reason why a plugin's call failed.
#[derive(Object, Serialize)]
#[oai(rename = "PluginFailure")]
pub struct FailureBody {
    kind: String,
    message: String,
    /// The line in the plugin's file at which the call failed.
    #[oai(nullable)]
    line: Option<u32>,
    #[oai(nullable)]
    column: Option<u32>,
}

/// The events for a dry run of a plugin. Exactly one of `event_id`, `from_position` and `event` is required.
#[derive(Object, Deserialize)]
pub struct DryRunBody {
    #[oai(nullable)]
    pub event_id: Option<String>,
    /// The position in the log from which the plugin's events are used.
    #[oai(nullable)]
    pub from_position: Option<Whole>,
    /// The number of events with `from_position`, 1 to 200; the default is 10.
    #[oai(nullable)]
    pub limit: Option<u64>,
    /// An event that need not be in the log.
    #[oai(nullable)]
    pub event: Option<DryRunEvent>,
}

/// An event for a dry run of a plugin.
#[derive(Object, Deserialize)]
pub struct DryRunEvent {
    aggregate_id: String,
    aggregate_type: String,
    event_type: String,
    #[oai(default)]
    #[serde(default)]
    payload: AnyObject,
    #[oai(default)]
    #[serde(default)]
    metadata: AnyObject,
}

/// The result of a dry run: the output of the plugin for each event.
#[derive(Object, Serialize)]
pub struct DryRunResult {
    pub results: Vec<TrialBody>,
}

/// The output of a plugin for one event of a dry run.
#[derive(Object, Serialize)]
#[oai(rename = "DryRun")]
pub struct TrialBody {
    event_id: String,
    position: u64,
    hook: OneOf<Hooks>,
    /// The facts that `enrich` returned.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<AnyValue>,
    /// The assignments that `route` returned.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    assignments: Option<AnyValue>,
    /// The differences between the facts and the plugin's earlier facts: `{derived, edges_added, edges_removed}`.
    #[oai(skip_serializing_if_is_none)]
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<AnyValue>,
    #[oai(nullable)]
    error: Option<FailureBody>,
    /// The number of script operations of this call.
    operations: u64,
    ms: f64,
}

/// The range of the log to replay.
#[derive(Object, Deserialize)]
pub struct ReplayBody {
    /// The position of the first event; the default is the beginning of the log.
    #[oai(nullable)]
    pub from_position: Option<Whole>,
}

/// The result of a replay.
#[derive(Object, Serialize)]
pub struct ReplayResult {
    /// The number of events that the plugin was called for.
    pub events: u64,
    /// The number of failed calls. The step of each failed call is parked.
    pub failed: u64,
    /// The number of aggregates whose facts changed.
    pub changed: u64,
    pub edges_opened: u64,
    pub edges_closed: u64,
}

/// The result of resuming a plugin. `resumed` is true if the plugin was stopped before.
#[derive(Object, Serialize)]
pub struct ResumeResult {
    pub resumed: bool,
}

impl From<PluginStatus> for PluginBody {
    fn from(status: PluginStatus) -> PluginBody {
        let PluginStatus { about, measures, parked, stopped_by } = status;
        let list = |names: &[std::sync::Arc<str>]| names.iter().cloned().map(Value::from).collect::<Vec<_>>();
        PluginBody {
            name: about.name.to_string(),
            version: about.version,
            description: about.description,
            hooks: about.hooks.iter().map(|hook| Hook::name(*hook).into()).collect(),
            on: Fields::from_iter([("events", list(&about.on.events)), ("traits", list(&about.on.traits))]).into(),
            on_error: OnError::name(about.on_error).into(),
            settings: about.settings.into(),
            status: if stopped_by.is_some() { "stopped" } else { "running" }.into(),
            stopped_by: stopped_by.map(|event| event.to_string()),
            runs: measures.runs,
            errors: measures.errors,
            parked,
            p50_ms: measures.p50_ms,
            p99_ms: measures.p99_ms,
            operations: measures.operations,
            last_error: measures.last_error.map(FailureBody::from),
        }
    }
}

impl From<Failure> for FailureBody {
    fn from(failure: Failure) -> FailureBody {
        let Failure { kind, message, line, column } = failure;
        FailureBody { kind: kind.name().to_owned(), message, line, column }
    }
}

impl From<DryRunEvent> for NewEvent {
    fn from(event: DryRunEvent) -> NewEvent {
        NewEvent {
            aggregate_id: event.aggregate_id,
            aggregate_type: event.aggregate_type,
            event_type: event.event_type,
            payload: event.payload.into_object(),
            metadata: event.metadata.into_object(),
            ..NewEvent::default()
        }
    }
}

impl From<Trial> for TrialBody {
    fn from(trial: Trial) -> TrialBody {
        let mut body = TrialBody {
            event_id: trial.context.event.event_id.to_string(),
            position: trial.context.event.position,
            hook: trial.hook.name().into(),
            facts: None,
            assignments: None,
            changes: None,
            error: None,
            operations: trial.operations,
            ms: trial.ms,
        };
        match trial.result {
            Ok(HookResult::Facts(facts, before)) => {
                body.changes = Some(AnyValue(changes(&facts, before.unwrap_or_default())));
                body.facts = Some(AnyValue(Value::from(&facts)));
            }
            Ok(HookResult::Assignments(made)) => {
                body.assignments = Some(AnyValue(list(&made)));
            }
            Err(failure) => body.error = Some(failure.into()),
        }
        body
    }
}

fn changes(facts: &Facts, before: foldwork_engine::model::graph::PluginFacts) -> Value {
    let known: Vec<_> = before.desired.iter().map(|desired| &desired.edge).collect();
    let same = |a: &foldwork_engine::model::facts::EdgeFact, b: &foldwork_engine::model::facts::EdgeFact| {
        a.kind == b.kind && a.to == b.to
    };
    let added = facts.edges.iter().filter(|edge| !known.iter().any(|known| same(known, edge))).map(Value::from);
    let removed = known.iter().filter(|known| !facts.edges.iter().any(|edge| same(known, edge)));
    let removed = removed.map(|edge| Value::from(*edge));
    Fields::from_iter([
        ("derived", Value::from(*before.derived != facts.derived)),
        ("edges_added", added.collect::<Vec<_>>().into()),
        ("edges_removed", removed.collect::<Vec<_>>().into()),
    ])
    .into()
}
