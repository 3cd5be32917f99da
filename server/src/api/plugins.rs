//! `/plugins`: status, dry runs, replays and resuming of plugins.

use foldwork_engine::Error;
use foldwork_engine::workspace::plugins::{DryRunInput, MAX_TRIALS, Tally};
use poem_openapi::OpenApi;
use poem_openapi::param::Path;

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::plugin::{DryRunBody, DryRunResult, PluginBody, PluginList, ReplayBody, ReplayResult, ResumeResult};

pub struct Api;

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// Lists the plugins in execution order, each with the statistics of its calls.
    ///
    /// The statistics cover the calls for this workspace since the server started.
    #[oai(path = "/plugins", method = "get", operation_id = "list_plugins")]
    async fn list_plugins(&self, access: ApiRead) -> ApiResult<JsonResponse<PluginList>> {
        let data = access.0.plugins().await?.into_iter().map(PluginBody::from).collect();
        Ok(JsonResponse::new(&PluginList { data }))
    }

    /// Returns one plugin.
    ///
    /// The response has the plugin's settings, the statistics of its calls for this workspace, and its last failure.
    #[oai(path = "/plugins/:name", method = "get", operation_id = "get_plugin")]
    async fn get_plugin(&self, access: ApiRead, name: Path<String>) -> ApiResult<JsonResponse<PluginBody>> {
        Ok(JsonResponse::new(&PluginBody::from(access.0.plugin(&name).await?)))
    }

    /// Calls a plugin for events and returns the plugin's output. The server stores nothing.
    ///
    /// The events are one or several events of the log, or an event in the request. The plugin is called as in normal
    /// operation. A dry run therefore tests a plugin before it is enabled or after a change.
    #[oai(path = "/plugins/:name/dry-run", method = "post", operation_id = "dry_run_plugin")]
    async fn dry_run_plugin(
        &self,
        access: ApiWrite,
        name: Path<String>,
        body: Body<DryRunBody>,
    ) -> ApiResult<JsonResponse<DryRunResult>> {
        let input = dry_run_input(body.value)?;
        let trials = access.0.dry_run(&name, input).await?;
        Ok(JsonResponse::new(&DryRunResult { results: trials.into_iter().map(Into::into).collect() }))
    }

    /// Runs a plugin's enrichment again over the log. The new facts replace the plugin's earlier facts.
    ///
    /// A replay applies a changed plugin to old events. Events that the plugin has already appended are not appended
    /// again.
    #[oai(path = "/plugins/:name/replay", method = "post", operation_id = "replay_plugin")]
    async fn replay_plugin(
        &self,
        access: ApiWrite,
        name: Path<String>,
        body: Body<ReplayBody>,
    ) -> ApiResult<JsonResponse<ReplayResult>> {
        let from = body.from_position.map_or(1, u64::from).saturating_sub(1);
        let Tally { events, failed, changed, edges_opened, edges_closed } = access.0.replay_plugin(&name, from).await?;
        Ok(JsonResponse::new(&ReplayResult { events, failed, changed, edges_opened, edges_closed }))
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

fn dry_run_input(body: DryRunBody) -> Result<DryRunInput, Error> {
    match (body.event_id, body.from_position, body.event) {
        (Some(event_id), None, None) => Ok(DryRunInput::Event(event_id)),
        (None, Some(position), None) => {
            let position = u64::from(position);
            let limit = body.limit.unwrap_or(10);
            if !(1..=MAX_TRIALS as u64).contains(&limit) {
                return Err(Error::invalid(format!("limit is {limit}; allowed is 1 to {MAX_TRIALS}")));
            }
            Ok(DryRunInput::From { position: position.saturating_sub(1), limit: limit as usize })
        }
        (None, None, Some(event)) => Ok(DryRunInput::New(Box::new(event.into()))),
        _ => Err(Error::invalid("give one of event_id, from_position and event")),
    }
}
