//! `/system`: the consumers of the log, and rebuilding the knowledge graph.

use foldwork_engine::workspace::system::{Follower, Rebuilt};
use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::section::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;

pub struct Api;

/// The consumers of the log.
#[derive(Object, Serialize)]
#[oai(rename = "ConsumerList")]
struct Consumers {
    /// The position of the log's last event.
    head: u64,
    consumers: Vec<ConsumerBody>,
}

/// A consumer of the log.
#[derive(Object, Serialize)]
#[oai(rename = "Consumer")]
struct ConsumerBody {
    name: String,
    /// A description of the data that the consumer maintains.
    keeps: String,
    /// The position of the last event that the consumer has applied.
    position: u64,
    /// The number of events that the consumer has not applied yet.
    lag: u64,
    /// The number of parked steps.
    parked: u64,
    /// The number of aggregates whose edges have yet to be compared with redefined types and the enabled plugins.
    unsettled: u64,
}

/// The result of a rebuild.
#[derive(Object, Serialize)]
struct RebuildResult {
    events: u64,
    /// The number of aggregates with facts from plugins.
    nodes: u64,
    /// The number of open edges.
    edges: u64,
    /// The number of parked steps.
    parked: u64,
}

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// Lists the consumers of the log with their positions.
    ///
    /// `lag` is the number of events in the log that a consumer has not applied yet.
    #[oai(path = "/system/consumers", method = "get", operation_id = "list_consumers")]
    async fn list_consumers(&self, access: ApiRead) -> ApiResult<JsonResponse<Consumers>> {
        let followers = access.0.followers().await?;
        let consumers = followers.into_iter().map(ConsumerBody::from).collect();
        Ok(JsonResponse::new(&Consumers { head: access.0.position(), consumers }))
    }

    /// Rebuilds the knowledge graph from the log. The old graph serves requests until the new graph is complete.
    ///
    /// The enabled plugins enrich the whole log again. The response is sent when the rebuild is complete.
    #[oai(path = "/system/rebuild-graph", method = "post", operation_id = "rebuild_graph")]
    async fn rebuild_graph(&self, access: ApiWrite) -> ApiResult<JsonResponse<RebuildResult>> {
        let Rebuilt { events, nodes, edges, parked } = access.0.rebuild_graph().await?;
        Ok(JsonResponse::new(&RebuildResult { events, nodes, edges, parked }))
    }
}

impl From<Follower> for ConsumerBody {
    fn from(follower: Follower) -> ConsumerBody {
        ConsumerBody {
            name: follower.name.into(),
            keeps: follower.keeps.into(),
            position: follower.position,
            lag: follower.lag,
            parked: follower.parked,
            unsettled: follower.unsettled,
        }
    }
}
