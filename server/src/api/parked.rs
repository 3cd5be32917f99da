//! `/parked`: listing, replaying and deleting parked steps of plugins.

use foldwork_engine::Error;
use foldwork_engine::workspace::parked::StepId;
use poem_openapi::OpenApi;
use poem_openapi::param::{Path, Query};

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::wire::body::{Body, JsonResponse};
use crate::wire::page::{PageBody, limit, wrong_list};
use crate::wire::parked::{DeleteParked, DeletedSteps, GroupsBody, ParkedBody, ReplayParked, ReplayedBody};
use crate::wire::response::no_content;

pub struct Api;

no_content!(StepDeletionResponse: "The step was deleted.");

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// Lists parked steps in the order of their events. Without `plugin`, lists only the steps of enabled plugins.
    ///
    /// A step is the call of one hook of a plugin for one event. Each entry contains the last failure and the number of
    /// attempts, and, if the server retries the step, the time of the next retry.
    #[oai(path = "/parked", method = "get", operation_id = "list_parked")]
    async fn list_parked(
        &self,
        access: ApiRead,
        /// Only the steps of this plugin.
        plugin: Query<Option<String>>,
        #[oai(name = "limit")] Query(rows): Query<Option<u64>>,
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
    /// A step that succeeds is removed from the list. If the step fails again, the response contains the new failure.
    #[oai(path = "/parked/:step_id/replay", method = "post", operation_id = "replay_parked_step")]
    async fn replay_parked_step(
        &self,
        access: ApiWrite,
        step_id: Path<String>,
    ) -> ApiResult<JsonResponse<ReplayedBody>> {
        Ok(JsonResponse::new(&ReplayedBody::from(access.0.replay_parked(&step_id).await?)))
    }

    /// Replays parked steps, oldest first.
    ///
    /// Replays all steps of enabled plugins, the steps of one plugin or of a group, or the steps with the given ids.
    /// One request replays at most 1,000 steps. If `more` is true in the response, further steps remain, and a request
    /// with `after` continues with these steps. If the request selects a different number of steps than `expected`, the
    /// request is rejected (409 `count_mismatch` with `count`). Therefore a request with `expected` cannot replay steps
    /// that the caller has not counted. With `dry_run`, no step is replayed, and `selected` is the number of steps, at
    /// most 100,000.
    #[oai(path = "/parked/replay", method = "post", operation_id = "replay_parked")]
    async fn replay_parked(&self, access: ApiWrite, body: Body<ReplayParked>) -> ApiResult<JsonResponse<ReplayedBody>> {
        let selection = body.selection()?;
        let replayed = match body.dry_run {
            Some(true) => access.0.count_selected(selection).await?,
            _ => access.0.replay_selected(selection).await?,
        };
        Ok(JsonResponse::new(&ReplayedBody::from(replayed)))
    }

    /// Lists parked steps in groups, the largest group first. Without `plugin`, lists only the steps of enabled
    /// plugins.
    ///
    /// The steps of a group failed in the same hook of the same plugin, with the same kind of failure at the same line.
    /// `POST /parked/replay` and `POST /parked/delete` accept a group together with `expected`, the number of its
    /// steps.
    #[oai(path = "/parked/groups", method = "get", operation_id = "list_parked_groups")]
    async fn list_parked_groups(
        &self,
        access: ApiRead,
        /// Only the steps of this plugin.
        plugin: Query<Option<String>>,
    ) -> ApiResult<JsonResponse<GroupsBody>> {
        let groups = access.0.parked_groups(plugin.0.as_deref()).await?;
        Ok(JsonResponse::new(&GroupsBody::from(groups)))
    }

    /// Deletes parked steps without running the steps again.
    ///
    /// Deletes all steps of enabled plugins, the steps of one plugin or of a group, or the steps with the given ids.
    /// The plugin's facts from the events of these steps stay missing until the plugin is replayed over the log. A
    /// request without `ids` requires `expected`, the number of the steps. If the request selects a different number of
    /// steps, the request is rejected (409 `count_mismatch` with `count`).
    #[oai(path = "/parked/delete", method = "post", operation_id = "delete_parked")]
    async fn delete_parked(&self, access: ApiWrite, body: Body<DeleteParked>) -> ApiResult<JsonResponse<DeletedSteps>> {
        let deleted = access.0.delete_selected(body.selection()?).await?;
        Ok(JsonResponse::new(&DeletedSteps { deleted }))
    }

    /// Deletes a parked step without running it again.
    ///
    /// The plugin's facts from the step's event stay missing until the plugin is replayed over the log.
    #[oai(path = "/parked/:step_id", method = "delete", operation_id = "delete_parked_step")]
    async fn delete_parked_step(&self, access: ApiWrite, step_id: Path<String>) -> ApiResult<StepDeletionResponse> {
        access.0.delete_parked(&step_id).await?;
        Ok(StepDeletionResponse::Done)
    }
}

/// Decodes a cursor into the id of the previous page's last step.
fn read_cursor(cursor: &str) -> Result<StepId, Error> {
    let text = hex::decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let step = text.and_then(|text| StepId::parse(&text));
    step.ok_or_else(wrong_list)
}
