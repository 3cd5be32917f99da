//! The wire types of dry runs of plugins.

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::facts::Facts;
use foldwork_engine::model::value::{Object as Fields, Value};
use foldwork_engine::workspace::plugins::{HookResult, Trial};
use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::closed_sets::{Hooks, OneOf, PluginSources};
use super::json::{AnyObject, AnyValue};
use super::page::Whole;
use super::plugin::FailureBody;
use super::shown::shown;

/// The events for a dry run, and the version of the plugin to call. Exactly one of `event_id`, `from_position`, `last`,
/// `step_ids` and `event` is required.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DryRunBody {
    pub event_id: Option<String>,
    /// A position in the log. The plugin is called for the events from this position on, up to `limit` events. Events
    /// that the plugin does not handle are skipped and not counted. The search ends after about 20,000 events of the
    /// log.
    pub from_position: Option<Whole>,
    /// The maximum number of events from `from_position`, 1 to 200; the default is 10.
    pub limit: Option<u64>,
    /// The number of events, 1 to 200. The plugin is called for the last events in the log. Events that the plugin does
    /// not handle are skipped and not counted. The search ends after about 20,000 events of the log.
    pub last: Option<u64>,
    /// The ids of parked steps, at most 200. The plugin is called for the events of these steps.
    pub step_ids: Option<Vec<String>>,
    /// An event that need not be in the log.
    pub event: Option<DryRunEvent>,
    /// The version to call. If the plugin is not enabled, or if the request contains `script` or `manifest`, the
    /// default is `folder`. Otherwise, the default is `loaded`.
    pub source: Option<OneOf<PluginSources>>,
    /// A script to call instead of the script in the plugin's folder, at most 256 KiB.
    pub script: Option<String>,
    /// A manifest to use instead of the manifest in the plugin's folder, at most 64 KiB. The manifest cannot raise the
    /// limits of a call.
    pub manifest: Option<String>,
}

/// An event for a dry run of a plugin.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// The position of the last event in `results`, if the dry run took too long to call the plugin for all events.
    #[oai(read_only)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
}

shown! {
    /// The output of one hook of a plugin, `enrich` or `route`, for one event of a dry run.
    #[oai(rename = "DryRun")]
    pub struct TrialBody from trial: Trial where {
        let (facts, assignments, changes, error) = match trial.result {
            Ok(HookResult::Facts(facts, before)) => {
                (Some(Value::from(&facts)), None, Some(changes(&facts, before.unwrap_or_default())), None)
            }
            Ok(HookResult::Assignments(made)) => (None, Some(made.iter().collect::<Value>()), None, None),
            Err(failure) => (None, None, None, Some(failure)),
        };
    };

    event_id: String = trial.context.event.event_id.to_string(),
    position: u64 = trial.context.event.position,
    hook: OneOf<Hooks> = trial.hook.name().into(),
    /// The facts that `enrich` returned.
    @read_only facts: Option<AnyValue> = facts.map(AnyValue),
    /// The assignments that `route` returned.
    @read_only assignments: Option<AnyValue> = assignments.map(AnyValue),
    /// The differences between `facts` and the facts of the plugin that are stored for the aggregate:
    /// `{derived, edges_added, edges_removed}`.
    @read_only changes: Option<AnyValue> = changes.map(AnyValue),
    error: Option<FailureBody> = error.map(FailureBody::from),
    /// The number of script operations of this call. 0 if the call failed.
    operations: u64 = trial.operations,
    ms: f64 = trial.ms,
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
