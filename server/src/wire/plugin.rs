//! The wire types of `/plugins`.

use foldwork_engine::hook::{Failure, Hook, OnError};
use foldwork_engine::model::value::{Object as Fields, Value};
use foldwork_engine::workspace::plugins::{MAX_SCRIPT_BYTES, PluginSource, PluginStatus, ReloadOutcome, ReplayTally};
use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::closed_sets::{FailurePolicies, Hooks, OneOf, PluginStates, ReplayedHooks};
use super::json::AnyObject;
use super::page::Whole;
use super::shown::shown;

/// All enabled plugins.
#[derive(Object, Serialize)]
pub struct PluginList {
    pub data: Vec<PluginBody>,
}

shown! {
    /// A plugin with its status and the statistics of its calls in this workspace.
    #[oai(rename = "Plugin")]
    pub struct PluginBody from status: PluginStatus where {
        let PluginStatus { about, adopted, measures, parked: steps, stopped_by: event } = status;
        let list = |names: &[std::sync::Arc<str>]| names.iter().cloned().map(Value::from).collect::<Vec<_>>();
    };

    name: String = about.name.to_string(),
    version: String = about.version,
    /// The SHA-256 of the plugin's source. Null for a native plugin, which is a part of the program, or if the
    /// workspace has not used the plugin yet.
    digest: Option<String> = adopted.as_ref().map(|adopted| adopted.digest.to_string()),
    /// The position of the first event that this version of the plugin processes in this workspace. Null for a native
    /// plugin, or if the workspace has not used the plugin yet.
    from_position: Option<u64> = adopted.map(|adopted| adopted.from_position),
    description: String = about.description,
    hooks: Vec<OneOf<Hooks>> = about.hooks.iter().map(|hook| Hook::name(*hook).into()).collect(),
    /// The events and traits for which the plugin is called: `{events, traits}`.
    on: AnyObject = Fields::from_iter([("events", list(&about.on.events)), ("traits", list(&about.on.traits))]).into(),
    /// The policy for the plugin's failed steps.
    on_error: OneOf<FailurePolicies> = OnError::name(about.on_error).into(),
    settings: AnyObject = about.settings.into(),
    /// The status. A plugin is `stopped` after failures for five aggregates in a row.
    status: OneOf<PluginStates> = if event.is_some() { "stopped" } else { "running" }.into(),
    /// The id of the event whose failure stopped the plugin. Null for a running plugin.
    stopped_by: Option<String> = event.map(|event| event.to_string()),
    /// The number of calls on all running servers. Each server counts its calls since it first opened the workspace.
    runs: u64 = measures.runs,
    /// The number of failed calls among `runs`.
    errors: u64 = measures.errors,
    /// The number of parked steps.
    parked: u64 = steps,
    /// The median duration of the last 1,024 calls, in milliseconds. If several servers run, the value comes from the
    /// server with the last call.
    p50_ms: f64 = measures.p50_ms,
    /// The 99th percentile of the durations of the last 1,024 calls, in milliseconds. If several servers run, the value
    /// comes from the server with the last call.
    p99_ms: f64 = measures.p99_ms,
    /// The total number of script operations of all successful calls.
    operations: u64 = measures.operations,
    last_error: Option<FailureBody> = measures.last_error.map(FailureBody::from),
}

shown! {
    /// The reason why a plugin's call failed.
    #[oai(rename = "PluginFailure")]
    pub struct FailureBody from failure: Failure;

    kind: String = failure.kind.name().to_owned(),
    message: String = failure.message,
    /// The line in the plugin's file at which the call failed; null if the failure has no line.
    line: Option<u32> = failure.line,
    column: Option<u32> = failure.column,
}

shown! {
    /// The source of a plugin, in the version that processes this workspace's events.
    #[oai(rename = "PluginFiles")]
    pub struct SourceBody from (name, source): (String, PluginSource);

    name: String = name,
    version: String = source.version,
    /// The SHA-256 of the plugin's source. Null for a native plugin, which is a part of the program.
    digest: Option<String> = source.digest.map(|digest| digest.to_string()),
    /// The files. A native plugin has no files.
    files: Vec<SourceFile> = source.files.into_iter().map(SourceFile::from).collect(),
}

shown! {
    /// A file of a plugin.
    #[oai(rename = "PluginFile")]
    struct SourceFile from (path, text): (&str, std::sync::Arc<str>);

    path: String = path.to_owned(),
    /// The size of the file, in bytes.
    size: u64 = text.len() as u64,
    /// The text; `null` for a file with more than 256 KiB.
    text: Option<String> = (text.len() <= MAX_SCRIPT_BYTES).then(|| text.to_string()),
}

/// The events to process again, and the hook to run.
#[derive(Object, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayBody {
    /// The position of the first event; the default is the beginning of the log.
    pub from_position: Option<Whole>,
    /// The hook to run again. By default, `enrich` and `route` are run again, if the plugin has these hooks.
    pub hook: Option<OneOf<ReplayedHooks>>,
    /// Whether to return only the number of events, without calling the plugin; the default is false.
    pub dry_run: Option<bool>,
}

shown! {
    /// The result of a replay.
    pub struct ReplayResult from tally: ReplayTally;

    /// The number of events for which the plugin was called. For the hook `work`, tasks are counted instead of events.
    /// With `dry_run`, the number of events or tasks for which a replay would call the plugin.
    pub events: u64 = tally.events,
    /// The number of calls that failed, or whose result the log rejected. The step of each of these calls is parked,
    /// unless the call itself failed and the plugin's `on_error` is `skip`.
    pub failed: u64 = tally.failed,
    /// The number of aggregates whose facts changed.
    pub changed: u64 = tally.changed,
    pub edges_opened: u64 = tally.edges_opened,
    pub edges_closed: u64 = tally.edges_closed,
    /// The number of events for which the plugin assigned tasks.
    pub assigned: u64 = tally.assigned,
    /// The number of events that were not routed again, because the plugin had already assigned tasks for these events.
    pub assigned_before: u64 = tally.assigned_before,
    /// The number of tasks for which the plugin's agent returned an answer that was not rejected. Includes answers that
    /// were dropped, because the task no longer waited for an answer.
    pub delivered: u64 = tally.delivered,
}

shown! {
    /// The result of reloading a plugin.
    pub struct ReloadResult from (plugin, reloaded): (String, ReloadOutcome);

    name: String = plugin,
    version: String = reloaded.version,
    /// The SHA-256 of the plugin's source.
    digest: String = reloaded.adopted.digest.to_string(),
    /// Whether the files differ from the version that was loaded before.
    changed: bool = reloaded.has_changed,
    /// The position of the first event that this version of the plugin processes in this workspace.
    from_position: u64 = reloaded.adopted.from_position,
}

/// The result of resuming a plugin. `resumed` is true if the plugin was stopped before.
#[derive(Object, Serialize)]
pub struct ResumeResult {
    pub resumed: bool,
}
