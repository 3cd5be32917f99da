//! `/aggregates/:id/graph`: the neighborhood of an aggregate in the knowledge graph.

use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::graph::{Direction, Edge, facts_of};
use foldwork_engine::workspace::graph::{GraphMoment, GraphNeighborhood, GraphNode};
use poem_openapi::param::{Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::section::Section;
use crate::auth::ApiRead;
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;
use crate::wire::closed_sets::{EdgeDirection, OneOf};
use crate::wire::json::AnyObject;
use crate::wire::page::{Whole, time};
use crate::wire::shown::shown;

pub struct Api;

shown! {
    /// A part of the knowledge graph: nodes, the edges between these nodes and, with `closed`, closed edges of the
    /// requested aggregate.
    struct GraphBody from graph: &GraphNeighborhood;

    /// The requested aggregate, followed by the other nodes in the order of their distance.
    nodes: Vec<NodeBody> = graph.nodes.iter().map(NodeBody::from).collect(),
    edges: Vec<EdgeBody> = graph.edges.iter().map(|edge| EdgeBody::from(&**edge)).collect(),
    /// Whether nodes or closed edges were left out because the graph exceeds the size limit.
    truncated: bool = graph.truncated,
}

shown! {
    /// An aggregate as a node of the graph.
    #[oai(rename = "Node")]
    struct NodeBody from node: &GraphNode where {
        let aggregate = &node.aggregate;
    };

    aggregate_id: String = aggregate.id.to_string(),
    aggregate_type: String = aggregate.aggregate_type.to_string(),
    project_id: Option<String> = aggregate.project_id.as_deref().map(str::to_owned),
    /// The label. A label of more than 512 bytes is truncated.
    label: Option<String> = node.label.as_deref().map(str::to_owned),
    /// Further names that plugins found for the aggregate.
    labels: Vec<String> =
        node.facts.values().flat_map(|of_plugin| &of_plugin.labels).map(ToString::to_string).collect(),
    /// The facts about the aggregate, by the plugin that derived them.
    facts: AnyObject = AnyObject(facts_of(&node.facts)),
    /// The number of edges between this node and the requested aggregate.
    distance: u32 = node.distance,
    version: u64 = aggregate.version,
    position: u64 = aggregate.position,
    deleted: bool = aggregate.deleted,
}

shown! {
    /// An edge of the knowledge graph, with the event in which a plugin found the edge.
    #[oai(rename = "Edge")]
    pub struct EdgeBody from edge: &Edge;

    from: String = edge.from.to_string(),
    to: String = edge.to.to_string(),
    kind: String = edge.kind.to_string(),
    weight: f64 = edge.weight,
    source: SourceBody = SourceBody { event_id: edge.event_id.to_string(), plugin: edge.plugin.to_string() },
    /// The position of the event that opened the edge: the event in which the plugin found the edge or, if the target
    /// did not exist then, a later event, such as the event that created or restored the target.
    position: u64 = edge.opened,
    /// The event in which the plugin found the edge.
    event_id: String = edge.event_id.to_string(),
    plugin: String = edge.plugin.to_string(),
    valid_from: String = format_date(edge.valid_from),
    /// The time at which a later event closed the edge, or null if the edge is open.
    valid_to: Option<String> = edge.valid_to.map(format_date),
}

/// The event in which a plugin found an edge.
#[derive(Object, Serialize)]
#[oai(rename = "EdgeSource")]
pub struct SourceBody {
    event_id: String,
    plugin: String,
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Returns the knowledge graph around an aggregate.
    ///
    /// Nodes are aggregates, and edges are relations that plugins found in events. Each edge contains its plugin and
    /// its event, and a closed edge also contains the time of its end. The nearest nodes come first, and `truncated` is
    /// true if nodes or closed edges were left out. With `at` or `position`, the response contains the edges that were
    /// open at that time or position, and the states of the aggregates at that time or position. Such a response
    /// contains no facts and no `labels` from plugins, because the server stores only the current facts.
    #[oai(path = "/aggregates/:aggregate_id/graph", method = "get", operation_id = "get_graph")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the request")]
    async fn get_graph(
        &self,
        access: ApiRead,
        aggregate_id: Path<String>,
        /// The maximum distance in edges, 1 to 3; the default is 1.
        depth: Query<Option<u32>>,
        /// A comma-separated list of edge kinds. The server follows only edges of these kinds; the default is all
        /// kinds.
        kinds: Query<Option<String>>,
        /// The direction of the edges to follow; the default is both.
        direction: Query<Option<OneOf<EdgeDirection>>>,
        /// Whether the response includes closed edges that start at the aggregate; the default is false. The response
        /// contains at most 1,000 closed edges, and none with `direction=in`. Cannot be combined with `at` or
        /// `position`.
        closed: Query<Option<bool>>,
        /// The time of the returned graph, RFC 3339. Cannot be combined with `position`.
        at: Query<Option<String>>,
        /// The log position of the returned graph. Cannot be combined with `at`.
        position: Query<Option<Whole>>,
    ) -> ApiResult<JsonResponse<GraphBody>> {
        let direction = read_direction(direction.0.as_deref())?;
        let kinds = kinds.0.iter().flat_map(|kinds| kinds.split(',')).map(str::trim).filter(|kind| !kind.is_empty());
        let kinds: Vec<Arc<str>> = kinds.map(Arc::from).collect();
        let closed = closed.0.unwrap_or(false);
        let then = match (position.0.map(u64::from), at.0.as_deref()) {
            (None, None) => None,
            (Some(position), None) => Some(GraphMoment::Position(position)),
            (None, Some(at)) => Some(GraphMoment::Time(time("at", at)?)),
            (Some(_), Some(_)) => return Err(Error::invalid("expected either `at` or `position`, not both").into()),
        };
        let graph = access.0.graph(&aggregate_id, depth.0.unwrap_or(1), kinds, direction, closed, then).await;
        let graph = graph?;
        Ok(JsonResponse::large(size_bytes(&graph), || GraphBody::from(&graph)))
    }
}

/// Returns the approximate size of a graph as JSON, in bytes.
fn size_bytes(graph: &GraphNeighborhood) -> usize {
    /// The estimated size of an edge, and of a node without its facts, in bytes.
    const ENTRY_BYTES: usize = 300;
    let facts: usize = graph.nodes.iter().map(|node| node.facts.size_bytes()).sum();
    facts + (graph.nodes.len() + graph.edges.len()) * ENTRY_BYTES
}

fn read_direction(direction: Option<&str>) -> Result<Direction, Error> {
    let Some(name) = direction else { return Ok(Direction::Both) };
    Direction::parse(name).ok_or_else(|| Error::invalid("`direction` must be `out`, `in` or `both`"))
}
