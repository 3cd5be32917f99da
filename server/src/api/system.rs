//! `/system`: what follows the log, and building it anew.

use foldwork_engine::workspace::system::{Follower, Rebuilt};
use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::Section;
use crate::auth::{ApiRead, ApiWrite};
use crate::http::error::{ApiResult, answer};
use crate::wire::body::Written;

pub struct Api;

/// What follows the log.
#[derive(Object, Serialize)]
#[oai(rename = "ConsumerList")]
struct Consumers {
    /// Position of the log's last event.
    head: u64,
    consumers: Vec<ConsumerBody>,
}

/// One follower of the log.
#[derive(Object, Serialize)]
#[oai(rename = "Consumer")]
struct ConsumerBody {
    name: String,
    /// What it keeps.
    keeps: String,
    /// The last event that it has taken in.
    position: u64,
    /// Events that it has not taken in yet.
    lag: u64,
    /// Steps that failed and are put aside.
    parked: u64,
}

/// What a rebuild made.
#[derive(Object, Serialize)]
struct RebuildResult {
    events: u64,
    /// Aggregates about which plugins found something.
    nodes: u64,
    /// Open edges.
    edges: u64,
    /// Steps that failed and are parked.
    parked: u64,
}

#[OpenApi(tag = "Section::Plugins")]
impl Api {
    /// How far what follows the log has come.
    ///
    /// Their lag is the number of events that are in the log and not yet in what they keep.
    #[oai(path = "/system/consumers", method = "get", operation_id = "list_consumers")]
    async fn list_consumers(&self, access: ApiRead) -> ApiResult<Written<Consumers>> {
        let followers = answer(access.0.followers().await)?;
        let consumers = followers.into_iter().map(ConsumerBody::from).collect();
        Ok(Written::new(&Consumers { head: access.0.position(), consumers }))
    }

    /// Builds the knowledge graph anew from the log; the old one serves until the new one is whole.
    ///
    /// Enrichment runs again over the whole log, with the plugins as they are now. The answer comes when it is done.
    #[oai(path = "/system/rebuild-graph", method = "post", operation_id = "rebuild_graph")]
    async fn rebuild_graph(&self, access: ApiWrite) -> ApiResult<Written<RebuildResult>> {
        let Rebuilt { events, nodes, edges, parked } = answer(access.0.rebuild_graph().await)?;
        Ok(Written::new(&RebuildResult { events, nodes, edges, parked }))
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
        }
    }
}
