//! `/parked`: listing, replaying and deleting failed steps of plugins.

use foldwork_engine::Error;
use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::parked::{Parked, Replayed, StepId};
use poem_openapi::param::{Path, Query};
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::closed_sets::{Hooks, OneOf};
use crate::wire::page::{Listed, PageBody, limit};

pub struct Api;

/// A parked step: the call of one plugin's hook for one event, which failed.
#[derive(Object, Serialize)]
#[oai(rename = "ParkedStep")]
pub struct ParkedBody {
    id: String,
    plugin: String,
    hook: OneOf<Hooks>,
    event_id: String,
    event_type: String,
    aggregate_id: String,
    position: u64,
    /// The kind of failure, such as `thrown`, `deadline`, `memory` or `circuit_open`.
    kind: String,
    /// The error message.
    message: String,
    /// The line in the plugin's file at which the step failed.
    #[oai(nullable)]
    line: Option<u32>,
    #[oai(nullable)]
    column: Option<u32>,
    /// The version of the plugin at the time of the failure.
    version: String,
    attempts: u32,
    parked_at: String,
}

impl Listed for ParkedBody {
    const PAGE: &'static str = "ParkedPage";
    const DESCRIPTION: &'static str = "A page of parked steps.";
}

/// A selection of the parked steps to replay.
#[derive(Object, Deserialize)]
struct ReplayParked {
    /// The name of the plugin whose steps are replayed; the default is all plugins.
    #[oai(nullable)]
    plugin: Option<String>,
}

/// The result of replaying parked steps.
#[derive(Object, Serialize)]
struct ReplayedBody {
    done: u64,
    /// The steps that failed again, each with the new failure.
    failed: Vec<ParkedBody>,
    /// Whether parked steps remain that this request did not replay.
    more: bool,
}

#[derive(ApiResponse)]
enum Deleted {
    /// The step was deleted.
    #[oai(status = 204)]
    Done,
}

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// Lists parked steps in the order of their events.
    ///
    /// A step is one plugin's hook for one event. Each entry has the last failure and the number of attempts.
    #[oai(path = "/parked", method = "get", operation_id = "list_parked")]
    async fn list_parked(
        &self,
        access: ApiRead,
        /// Only the steps of this plugin.
        plugin: Query<Option<String>>,
        /// Rows per page, 1 to 200; the default is 50.
        #[oai(name = "limit")]
        Query(rows): Query<Option<u64>>,
        /// The `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
    ) -> ApiResult<JsonResponse<PageBody<ParkedBody>>> {
        let rows = limit(rows)?;
        let after = cursor.0.as_deref().map(read_cursor).transpose()?;
        let mut steps = access.0.list_parked(plugin.0.as_deref(), after.as_ref(), rows + 1).await?;
        let more = steps.len() > rows;
        steps.truncate(rows);
        let next_cursor = steps.last().filter(|_| more).map(|last| hex::encode(last.id.text()));
        Ok(JsonResponse::new(&PageBody { data: steps.iter().map(ParkedBody::from).collect(), next_cursor }))
    }

    /// Replays one parked step.
    ///
    /// A step that succeeds is removed from the list. If the step fails again, the response has the new failure.
    #[oai(path = "/parked/:step_id/replay", method = "post", operation_id = "replay_parked_step")]
    async fn replay_parked_step(
        &self,
        access: ApiWrite,
        step_id: Path<String>,
    ) -> ApiResult<JsonResponse<ReplayedBody>> {
        Ok(JsonResponse::new(&ReplayedBody::from(access.0.replay_parked(&step_id).await?)))
    }

    /// Replays the parked steps of one plugin or of all plugins, oldest first.
    ///
    /// One request replays at most 1,000 steps. If `more` is true in the response, further steps remain.
    #[oai(path = "/parked/replay", method = "post", operation_id = "replay_parked")]
    async fn replay_parked(&self, access: ApiWrite, body: Body<ReplayParked>) -> ApiResult<JsonResponse<ReplayedBody>> {
        let replayed = access.0.replay_all_parked(body.plugin.as_deref()).await?;
        Ok(JsonResponse::new(&ReplayedBody::from(replayed)))
    }

    /// Deletes a parked step without running it again.
    ///
    /// The plugin's facts from this event stay missing until the plugin is replayed over the log.
    #[oai(path = "/parked/:step_id", method = "delete", operation_id = "delete_parked_step")]
    async fn delete_parked_step(&self, access: ApiWrite, step_id: Path<String>) -> ApiResult<Deleted> {
        access.0.delete_parked(&step_id).await?;
        Ok(Deleted::Done)
    }
}

/// Decodes a cursor, which holds the id of the previous page's last step.
fn read_cursor(cursor: &str) -> Result<StepId, Error> {
    let text = hex::decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let step = text.and_then(|text| StepId::parse(&text));
    step.ok_or_else(|| Error::invalid("the cursor does not belong to this list"))
}

impl From<&Parked> for ParkedBody {
    fn from(parked: &Parked) -> ParkedBody {
        let Parked { id, reason } = parked;
        ParkedBody {
            id: id.text(),
            plugin: id.plugin.to_string(),
            hook: id.hook.to_string().into(),
            event_id: reason.event_id.to_string(),
            event_type: reason.event_type.to_string(),
            aggregate_id: reason.aggregate_id.to_string(),
            position: id.position,
            kind: reason.kind.to_string(),
            message: reason.message.clone(),
            line: reason.line,
            column: reason.column,
            version: reason.version.clone(),
            attempts: reason.attempts,
            parked_at: format_date(reason.parked_at),
        }
    }
}

impl From<Replayed> for ReplayedBody {
    fn from(replayed: Replayed) -> ReplayedBody {
        let failed = replayed.failed.iter().map(ParkedBody::from).collect();
        ReplayedBody { done: replayed.done, failed, more: replayed.more }
    }
}
