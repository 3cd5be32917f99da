//! `/system`: the running server, the consumers of the log, and rebuilding the knowledge graph.

use std::sync::Arc;

use foldwork_engine::model::date::format_date;
use foldwork_engine::workspace::followers::{FollowerStatus, LeaderStatus, RebuildOutcome};
use foldwork_engine::{Engine, EngineStatus};
use poem::web::Data;
use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::config::Config;
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;
use crate::wire::closed_sets::{OneOf, ServerCounts, StoreKinds};
use crate::wire::page::MAX_LIMIT;
use crate::wire::shown::shown;

pub struct Api;

/// The consumers of the log.
#[derive(Object, Serialize)]
#[oai(rename = "ConsumerList")]
struct Consumers {
    /// The position of the log's last event.
    head: u64,
    consumers: Vec<ConsumerBody>,
    /// The server that runs the plugins and timers of the workspace, or null if the store belongs to one server.
    leader: Option<LeaderBody>,
}

shown! {
    /// The server that runs the plugins and timers of a workspace.
    #[oai(rename = "Leader")]
    struct LeaderBody from status: LeaderStatus;

    /// The id of the server, or null while no server runs the plugins and timers. A server gets a new id at each start.
    server_id: Option<String> = status.leader.server.map(|id| id.to_string()),
    /// Whether the server that responds to this request is the leader.
    is_here: bool = status.is_here,
    /// A number that increases when another server becomes the leader.
    epoch: u64 = status.leader.epoch,
    /// The number of milliseconds since the responding server last read the progress of the other servers.
    pulse_age_ms: u64 = u64::try_from(status.beat_age.as_millis()).unwrap_or(u64::MAX),
}

shown! {
    /// A consumer of the log.
    #[oai(rename = "Consumer")]
    struct ConsumerBody from follower: FollowerStatus;

    name: String = follower.name.into(),
    /// A description of the data that the consumer maintains.
    keeps: String = follower.keeps.into(),
    /// The position of the last event that the consumer has applied.
    position: u64 = follower.position,
    /// The number of events that the consumer has not applied yet.
    lag: u64 = follower.lag,
    /// The number of parked steps of enabled plugins.
    parked: u64 = follower.parked,
    /// The number of aggregates whose edges have yet to be adapted to redefined types and to the enabled plugins.
    unsettled: u64 = follower.unsettled,
}

shown! {
    /// The result of a rebuild.
    struct RebuildResult from rebuilt: RebuildOutcome;

    events: u64 = rebuilt.events,
    /// The number of aggregates with facts from plugins.
    nodes: u64 = rebuilt.nodes,
    /// The number of open edges.
    edges: u64 = rebuilt.edges,
    /// The number of parked steps.
    parked: u64 = rebuilt.parked,
}

shown! {
    /// Information about the server that handles the request.
    #[oai(rename = "SystemInfo")]
    struct SystemInfo from (running, configured): (EngineStatus, &InfoSettings);

    version: String = env!("CARGO_PKG_VERSION").to_owned(),
    /// The time at which this server started.
    started_at: String = format_date(running.started_at),
    /// The number of seconds since this server started.
    uptime_s: u64 = running.now.saturating_sub(running.started_at).max(0).unsigned_abs() / 1_000,
    store: OneOf<StoreKinds> = configured.store.into(),
    servers: OneOf<ServerCounts> = if running.is_exclusive { "one" } else { "several" }.into(),
    limits: LimitsBody = configured.limits.clone(),
}

shown! {
    /// The limits of the server. The plan of a workspace's owner may have further limits.
    #[derive(Clone)]
    #[oai(rename = "SystemLimits")]
    pub struct LimitsBody from config: &Config;

    /// The maximum size of a request with a JSON body, in bytes.
    body_bytes: u64 = config.http.body_limit.0,
    /// The maximum number of rows in a page of a list.
    page_rows: u64 = MAX_LIMIT,
    /// The size at which a page of a list ends, in bytes.
    page_bytes: u64 = config.constants.page_bytes as u64,
    /// The time limit of a pipeline, in milliseconds.
    pipeline_ms: u64 = config.pipeline.timeout.millis(),
    /// The memory limit of a pipeline, in bytes.
    pipeline_bytes: u64 = config.pipeline.memory.0,
    /// The maximum number of open event streams of a workspace on each server.
    event_streams: u64 = config.http.streams_per_workspace as u64,
    /// The maximum number of open sockets of a workspace's agents on each server.
    sockets: u64 = config.http.streams_per_workspace as u64,
    /// The maximum number of requests of a key per minute on each server, or null without a limit.
    requests_per_minute: Option<u32> = Some(config.http.rate_limit_per_minute).filter(|limit| *limit > 0),
}

/// The settings that `/system/info` shows. Handlers receive these settings as request data.
#[derive(Clone)]
pub struct InfoSettings {
    store: &'static str,
    limits: LimitsBody,
}

impl InfoSettings {
    pub fn of(config: &Config) -> InfoSettings {
        let store = match config.store.url.split_once("://") {
            Some(("mem", _)) => "memory",
            Some(("surrealkv", _)) => "folder",
            _ => "service",
        };
        InfoSettings { store, limits: config.into() }
    }
}

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// Returns the version of the server, its start time, the kind of its store, and its limits.
    ///
    /// The limits apply to every workspace. The configuration of the server sets all limits except `page_rows` and
    /// `page_bytes`, which are fixed.
    #[oai(path = "/system/info", method = "get", operation_id = "get_system_info")]
    async fn get_system_info(
        &self,
        _access: ApiRead,
        engine: Data<&Arc<Engine>>,
        configured: Data<&InfoSettings>,
    ) -> ApiResult<JsonResponse<SystemInfo>> {
        Ok(JsonResponse::new(&SystemInfo::from((engine.running(), *configured))))
    }

    /// Lists the consumers of the log with their positions.
    ///
    /// `lag` is the number of events in the log that a consumer has not applied yet.
    #[oai(path = "/system/consumers", method = "get", operation_id = "list_consumers")]
    async fn list_consumers(&self, access: ApiRead) -> ApiResult<JsonResponse<Consumers>> {
        let followers = access.0.followers().await?;
        let consumers = followers.into_iter().map(ConsumerBody::from).collect();
        let leader = access.0.leader().await?.map(LeaderBody::from);
        Ok(JsonResponse::new(&Consumers { head: access.0.position(), consumers, leader }))
    }

    /// Rebuilds the knowledge graph from the log. The old graph serves requests until the new graph is complete.
    ///
    /// The enabled plugins enrich the whole log again. The response is sent when the rebuild is complete. While a
    /// rebuild runs, a second request to the same server gets 409 `rebuild_running`. A rebuild fails with 409
    /// `rebuild_overtaken` if a plugin is reloaded during the rebuild, or if another server completes a rebuild of the
    /// graph first.
    #[oai(path = "/system/rebuild-graph", method = "post", operation_id = "rebuild_graph")]
    async fn rebuild_graph(&self, access: ApiWrite) -> ApiResult<JsonResponse<RebuildResult>> {
        Ok(JsonResponse::new(&RebuildResult::from(access.0.rebuild_graph().await?)))
    }
}
