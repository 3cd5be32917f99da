//! `/plugins`: what each plugin does here, what it would do, and doing it again.

use foldwork_engine::Error;
use foldwork_engine::workspace::plugins::{DryRunInput, MAX_TRIALS, Tally};
use poem_openapi::OpenApi;
use poem_openapi::param::Path;

use super::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::{ApiResult, answer};
use crate::wire::body::{Body, Written};
use crate::wire::plugin::{DryRunBody, DryRunResult, PluginBody, PluginList, ReplayBody, ReplayResult, ResumeResult};

pub struct Api;

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// The plugins in the order of their execution, with what their calls did and cost.
    ///
    /// Measures are of this workspace since the program started.
    #[oai(path = "/plugins", method = "get", operation_id = "list_plugins")]
    async fn list_plugins(&self, access: ApiRead) -> ApiResult<Written<PluginList>> {
        let data = answer(access.0.plugins().await)?.into_iter().map(PluginBody::from).collect();
        Ok(Written::new(&PluginList { data }))
    }

    /// One plugin.
    ///
    /// With its settings, its measures in this workspace, and why it failed last.
    #[oai(path = "/plugins/:name", method = "get", operation_id = "get_plugin")]
    async fn get_plugin(&self, access: ApiRead, name: Path<String>) -> ApiResult<Written<PluginBody>> {
        Ok(Written::new(&PluginBody::from(answer(access.0.plugin(&name).await)?)))
    }

    /// What a plugin would make of events: one of the log, several of it, or one that is given. Nothing is written.
    ///
    /// For trying a plugin before it is enabled, or after it was changed: it is called as it would be, and what it says
    /// is answered.
    #[oai(path = "/plugins/:name/dry-run", method = "post", operation_id = "dry_run_plugin")]
    async fn dry_run_plugin(
        &self,
        access: ApiWrite,
        name: Path<String>,
        body: Body<DryRunBody>,
    ) -> ApiResult<Written<DryRunResult>> {
        let input = answer(dry_run_input(body.value))?;
        let trials = answer(access.0.dry_run(&name, input).await)?;
        Ok(Written::new(&DryRunResult { results: trials.into_iter().map(Into::into).collect() }))
    }

    /// Runs a plugin's enrichment again over the log. What it found before is replaced, not added to.
    ///
    /// For a plugin that was changed: it looks at old events again. Events that it once appended are not appended
    /// again.
    #[oai(path = "/plugins/:name/replay", method = "post", operation_id = "replay_plugin")]
    async fn replay_plugin(
        &self,
        access: ApiWrite,
        name: Path<String>,
        body: Body<ReplayBody>,
    ) -> ApiResult<Written<ReplayResult>> {
        let from = body.from_position.map_or(1, u64::from).saturating_sub(1);
        let Tally { events, failed, changed, edges_opened, edges_closed } =
            answer(access.0.replay_plugin(&name, from).await)?;
        Ok(Written::new(&ReplayResult { events, failed, changed, edges_opened, edges_closed }))
    }

    /// Lets a plugin work again that was stopped after failures for several aggregates in a row.
    ///
    /// A plugin that fails for five different aggregates in a row is stopped, and the steps that it misses are parked.
    #[oai(path = "/plugins/:name/resume", method = "post", operation_id = "resume_plugin")]
    async fn resume_plugin(&self, access: ApiWrite, name: Path<String>) -> ApiResult<Written<ResumeResult>> {
        Ok(Written::new(&ResumeResult { resumed: answer(access.0.resume_plugin(&name).await)? }))
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
