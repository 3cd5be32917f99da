//! `/aggregates/:id/graph`: the neighbourhood of an aggregate in the knowledge graph.

use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::model::date::format_date;
use foldwork_engine::model::graph::{Direction, Edge, facts_of};
use foldwork_engine::workspace::graph::Node;
use poem_openapi::param::{Path, Query};
use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::section::Section;
use crate::auth::ApiRead;
use crate::http::error::ApiResult;
use crate::wire::body::JsonResponse;
use crate::wire::closed_sets::{EdgeDirection, OneOf};
use crate::wire::json::AnyObject;

pub struct Api;

/// A part of the knowledge graph: nodes, and the edges between these nodes.
#[derive(Object, Serialize)]
struct GraphBody {
    /// The requested aggregate, followed by the other nodes in the order of their distance.
    nodes: Vec<NodeBody>,
    edges: Vec<EdgeBody>,
    /// Whether nodes were left out because the graph exceeds the size limit.
    truncated: bool,
}

/// An aggregate as a node of the graph.
#[derive(Object, Serialize)]
#[oai(rename = "Node")]
struct NodeBody {
    aggregate_id: String,
    aggregate_type: String,
    #[oai(nullable)]
    project_id: Option<String>,
    #[oai(nullable)]
    label: Option<String>,
    /// Further names that plugins found for the aggregate.
    labels: Vec<String>,
    /// The facts about the aggregate, by the plugin that derived them.
    facts: AnyObject,
    /// The number of edges between this node and the requested aggregate.
    distance: u32,
    version: u64,
    position: u64,
    deleted: bool,
}

/// An edge of the knowledge graph, with the event that it was found in.
#[derive(Object, Serialize)]
#[oai(rename = "Edge")]
struct EdgeBody {
    from: String,
    to: String,
    kind: String,
    weight: f64,
    source: SourceBody,
    valid_from: String,
    /// The time at which a later event closed the edge.
    #[oai(nullable)]
    valid_to: Option<String>,
}

/// The event in which a plugin found an edge.
#[derive(Object, Serialize)]
#[oai(rename = "EdgeSource")]
struct SourceBody {
    event_id: String,
    plugin: String,
}

#[OpenApi(tag = "Section::Aggregates")]
impl Api {
    /// Returns the knowledge graph around an aggregate.
    ///
    /// Nodes are aggregates, and edges are relations that plugins found in events. Each edge names its plugin and its
    /// event, and a closed edge has the time of its end. The nearest nodes come first, and `truncated` is true if nodes
    /// were left out.
    #[oai(path = "/aggregates/:aggregate_id/graph", method = "get", operation_id = "get_graph")]
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
        /// Whether the response includes closed edges that start at the aggregate.
        closed: Query<Option<bool>>,
    ) -> ApiResult<JsonResponse<GraphBody>> {
        let direction = read_direction(direction.0.as_deref())?;
        let kinds = kinds.0.iter().flat_map(|kinds| kinds.split(',')).map(str::trim).filter(|kind| !kind.is_empty());
        let kinds: Vec<Arc<str>> = kinds.map(Arc::from).collect();
        let closed = closed.0.unwrap_or(false);
        let graph = access.0.graph(&aggregate_id, depth.0.unwrap_or(1), kinds, direction, closed).await;
        let graph = graph?;
        Ok(JsonResponse::new(&GraphBody {
            nodes: graph.nodes.iter().map(NodeBody::from).collect(),
            edges: graph.edges.iter().map(|edge| EdgeBody::from(&**edge)).collect(),
            truncated: graph.truncated,
        }))
    }
}

fn read_direction(direction: Option<&str>) -> Result<Direction, Error> {
    let Some(name) = direction else { return Ok(Direction::Both) };
    Direction::parse(name).ok_or_else(|| Error::invalid("direction must be out, in or both"))
}

impl From<&Node> for NodeBody {
    fn from(node: &Node) -> NodeBody {
        let aggregate = &node.aggregate;
        NodeBody {
            aggregate_id: aggregate.id.to_string(),
            aggregate_type: aggregate.aggregate_type.to_string(),
            project_id: aggregate.project_id.as_deref().map(str::to_owned),
            label: node.label.as_deref().map(str::to_owned),
            labels: node.facts.values().flat_map(|of_plugin| &of_plugin.labels).map(ToString::to_string).collect(),
            facts: AnyObject(facts_of(&node.facts)),
            distance: node.distance,
            version: aggregate.version,
            position: aggregate.position,
            deleted: aggregate.deleted,
        }
    }
}

impl From<&Edge> for EdgeBody {
    fn from(edge: &Edge) -> EdgeBody {
        EdgeBody {
            from: edge.from.to_string(),
            to: edge.to.to_string(),
            kind: edge.kind.to_string(),
            weight: edge.weight,
            source: SourceBody { event_id: edge.event_id.to_string(), plugin: edge.plugin.to_string() },
            valid_from: format_date(edge.valid_from),
            valid_to: edge.valid_to.map(format_date),
        }
    }
}
