//! `/plugins`: listing, reading, reloading, dry-running, replaying and resuming plugins.

use foldwork_engine::Error;
use foldwork_engine::hook::{Hook, PluginDraft};
use foldwork_engine::workspace::plugins::{DryRun, DryRunInput, DryRunVersion, MAX_TRIALS};
use poem_openapi::OpenApi;
use poem_openapi::param::Path;

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite, OperatorWrite};
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::parked::step_ids;
use crate::wire::plugin::{PluginBody, PluginList, ReloadResult, ReplayBody, ReplayResult, ResumeResult, SourceBody};
use crate::wire::trial::{DryRunBody, DryRunResult};

pub struct Api;

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// Lists the plugins in execution order, each with the statistics of its calls.
    ///
    /// The statistics cover the calls for this workspace on all running servers. Each server counts its calls since it
    /// opened the workspace.
    #[oai(path = "/plugins", method = "get", operation_id = "list_plugins")]
    async fn list_plugins(&self, access: ApiRead) -> ApiResult<JsonResponse<PluginList>> {
        let data = access.0.plugins().await?.into_iter().map(PluginBody::from).collect();
        Ok(JsonResponse::new(&PluginList { data }))
    }

    /// Returns one plugin.
    ///
    /// The response contains the plugin's settings, the statistics of its calls for this workspace, and its last
    /// failure.
    #[oai(path = "/plugins/:name", method = "get", operation_id = "get_plugin")]
    async fn get_plugin(&self, access: ApiRead, name: Path<String>) -> ApiResult<JsonResponse<PluginBody>> {
        Ok(JsonResponse::new(&PluginBody::from(access.0.plugin(&name).await?)))
    }

    /// Returns the source of a plugin: the manifest and the script that process this workspace's events.
    ///
    /// A native plugin, which is a part of the program, has no files.
    #[oai(path = "/plugins/:name/source", method = "get", operation_id = "get_plugin_source")]
    async fn get_plugin_source(&self, access: ApiRead, name: Path<String>) -> ApiResult<JsonResponse<SourceBody>> {
        let source = access.0.plugin_source(&name).await?;
        Ok(JsonResponse::new(&SourceBody::from((name.0, source))))
    }

    /// Loads a plugin from its current files, without a restart.
    ///
    /// Requires an owner of the installation's first workspace (`operator_required`). The server checks the files
    /// in the same way as when the server starts, and runs the plugin's cases. If the files are rejected, nothing
    /// changes, and the response is 409 `plugin_refused` with `file`, `line` and `column`. Otherwise every workspace
    /// switches to the new version between two events, on all servers of the store. Each event is processed by exactly
    /// one version.
    #[oai(path = "/plugins/:name/reload", method = "post", operation_id = "reload_plugin")]
    async fn reload_plugin(&self, access: OperatorWrite, name: Path<String>) -> ApiResult<JsonResponse<ReloadResult>> {
        let reloaded = access.0.reload_plugin(&name).await?;
        Ok(JsonResponse::new(&ReloadResult::from((name.0, reloaded))))
    }

    /// Calls the hooks `enrich` and `route` of a plugin for events, and returns the output. The server does not store
    /// the output.
    ///
    /// The input is one or several events of the log, or an event in the request. The events of the log are selected by
    /// the id of one event, by the position of the first event, by the number of last events, or by the ids of parked
    /// steps. The plugin is called as in normal operation. With `source`, `script` and `manifest`, a dry run tests a
    /// plugin before it is enabled or reloaded. If the script or the manifest is rejected, the response is 400
    /// `plugin_refused` with the line and the column.
    #[oai(path = "/plugins/:name/dry-run", method = "post", operation_id = "dry_run_plugin")]
    async fn dry_run_plugin(
        &self,
        access: ApiWrite,
        name: Path<String>,
        body: Body<DryRunBody>,
    ) -> ApiResult<JsonResponse<DryRunResult>> {
        let mut body = body.value;
        let version = dry_run_version(&mut body)?;
        let DryRun { trials, ended_at } = access.0.dry_run(&name, version, dry_run_input(body)?).await?;
        Ok(JsonResponse::new(&DryRunResult { results: trials.into_iter().map(Into::into).collect(), ended_at }))
    }

    /// Runs a plugin's hooks `enrich` and `route`, or a single hook, again over the log. New facts replace the plugin's
    /// earlier facts.
    ///
    /// A replay applies a changed plugin to old events. Events that the plugin has already appended are not appended
    /// again, and work is assigned only for events for which the plugin has not assigned work yet. With the hook
    /// `work`, the plugin is called for the tasks that wait for its agent or have failed. If the plugin lacks the hook,
    /// the response is 400 `no_such_hook` with the hooks of the plugin. With `dry_run`, the plugin is not called, and
    /// `events` is the number of events that a replay would call the plugin for.
    #[oai(path = "/plugins/:name/replay", method = "post", operation_id = "replay_plugin")]
    async fn replay_plugin(
        &self,
        access: ApiWrite,
        name: Path<String>,
        body: Body<ReplayBody>,
    ) -> ApiResult<JsonResponse<ReplayResult>> {
        let from = body.from_position.map_or(1, u64::from).saturating_sub(1);
        let hook = body.hook.as_deref().map(replayed_hook).transpose()?;
        let tally = match body.dry_run {
            Some(true) => access.0.count_replay(&name, hook, from).await?,
            _ => access.0.replay_plugin(&name, hook, from).await?,
        };
        Ok(JsonResponse::new(&ReplayResult::from(tally)))
    }

    /// Resumes a plugin that was stopped after repeated failures.
    ///
    /// A plugin is stopped when it fails for five different aggregates in a row. Steps are parked while the plugin is
    /// stopped.
    #[oai(path = "/plugins/:name/resume", method = "post", operation_id = "resume_plugin")]
    async fn resume_plugin(&self, access: ApiWrite, name: Path<String>) -> ApiResult<JsonResponse<ResumeResult>> {
        Ok(JsonResponse::new(&ResumeResult { resumed: access.0.resume_plugin(&name).await? }))
    }
}

fn replayed_hook(name: &str) -> Result<Hook, Error> {
    let hook = [Hook::Enrich, Hook::Route, Hook::Work].into_iter().find(|hook| hook.name() == name);
    hook.ok_or_else(|| Error::invalid_at("/hook", "expected enrich, route or work"))
}

fn dry_run_version(body: &mut DryRunBody) -> Result<DryRunVersion, Error> {
    let draft = PluginDraft { manifest: body.manifest.take(), script: body.script.take() };
    let is_empty = draft == PluginDraft::default();
    match body.source.as_deref() {
        None if is_empty => Ok(DryRunVersion::Usual),
        Some("loaded") if is_empty => Ok(DryRunVersion::Loaded),
        Some("loaded") => Err(Error::invalid_at(
            "/source",
            "`loaded` is not allowed with `script` or `manifest`, which replace files of the folder",
        )),
        None | Some("folder") => Ok(DryRunVersion::Draft(draft)),
        Some(_) => Err(Error::invalid_at("/source", "expected `loaded` or `folder`")),
    }
}

fn dry_run_input(body: DryRunBody) -> Result<DryRunInput, Error> {
    let DryRunBody { event_id, from_position, limit, last, step_ids: steps, event, .. } = body;
    match (event_id, from_position, last, steps, event) {
        (Some(event_id), None, None, None, None) => Ok(DryRunInput::Event(event_id)),
        (None, Some(position), None, None, None) => {
            let limit = check_event_count("limit", limit.unwrap_or(10))?;
            Ok(DryRunInput::From { position: u64::from(position).saturating_sub(1), limit })
        }
        (None, None, Some(last), None, None) => Ok(DryRunInput::Last(check_event_count("last", last)?)),
        (None, None, None, Some(steps), None) => {
            check_event_count("the number of step_ids", steps.len() as u64)?;
            Ok(DryRunInput::Steps(step_ids(&steps, "/step_ids")?))
        }
        (None, None, None, None, Some(event)) => Ok(DryRunInput::New(Box::new(event.into()))),
        _ => Err(Error::invalid("expected exactly one of `event_id`, `from_position`, `last`, `step_ids` and `event`")),
    }
}

fn check_event_count(what: &str, count: u64) -> Result<usize, Error> {
    let allowed = usize::try_from(count).ok().filter(|count| (1..=MAX_TRIALS).contains(count));
    allowed.ok_or_else(|| Error::invalid(format!("{what} is {count}; expected 1 to {MAX_TRIALS}")))
}
