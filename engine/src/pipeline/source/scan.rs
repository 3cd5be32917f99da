//! What a pipeline reads: the caller serves each scan and hands its rows over.

use std::collections::BTreeSet;
use std::sync::Arc;

pub use super::ast::AsOf;

use super::column::Columns;
use super::filter::{Comparison, Filter, Node, Test};
use crate::model::graph::Direction;
use crate::model::value::{Object, Value};

/// One thing to read.
#[derive(Debug, Clone)]
pub struct Scan {
    pub read: Read,
    /// Top-level fields that the pipeline looks at; `None` is all of them. More may be given.
    pub fields: Option<BTreeSet<Arc<str>>>,
    /// Paths of which columns would help; `None` if the source need not offer columns.
    pub columns: Option<BTreeSet<Arc<str>>>,
}

#[derive(Debug, Clone)]
pub enum Read {
    Events(EventScan),
    States(StateScan),
    /// States that edges of the knowledge graph lead to.
    Edges(EdgeScan),
}

/// Which edges are followed, and how far.
#[derive(Debug, Clone)]
pub struct EdgeScan {
    /// Empty: all kinds.
    pub kinds: Vec<Arc<str>>,
    pub direction: Direction,
    pub depth: u32,
}

impl EdgeScan {
    /// For `explain`.
    pub fn describe(&self) -> Object {
        Object::from_iter([
            ("source", Value::from("graph")),
            ("kinds", self.kinds.iter().cloned().map(Value::from).collect::<Vec<_>>().into()),
            ("direction", self.direction.name().into()),
            ("depth", Value::Int(self.depth.into())),
        ])
    }
}

/// Events in order of position.
#[derive(Debug, Clone)]
pub struct EventScan {
    pub streams: StreamFilter,
    /// Holds for every event given.
    pub filter: Option<Arc<Filter>>,
    /// As many rows are enough.
    pub limit: Option<u64>,
}

/// Folded streams.
#[derive(Debug, Clone)]
pub struct StateScan {
    pub source: Source,
    pub streams: StreamFilter,
    /// Which events are folded; only with [`Source::Log`].
    pub event_filter: Option<Arc<Filter>>,
    pub as_of: AsOf,
    /// Whether deleted aggregates are given.
    pub deleted: bool,
    /// Whether each state carries `_events`.
    pub events: bool,
    /// Resident: holds for every state given. Nodes: asked by [`node_query`](super::surrealql::node_query), and
    /// asked again by the pipeline where that is not exact. Log: never set.
    pub filter: Option<Arc<Filter>>,
    /// As many rows are enough.
    pub limit: Option<u64>,
}

/// Where states come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The states in memory.
    Resident,
    /// The stored snapshots.
    Nodes,
    /// The log itself, folded for this query.
    Log,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Source::Resident => "resident",
            Source::Nodes => "nodes",
            Source::Log => "log",
        }
    }
}

/// Which streams are read. Sets restrict only where they are given; all parts must hold.
#[derive(Debug, Clone, Default)]
pub struct StreamFilter {
    pub aggregate_ids: Option<Vec<Arc<str>>>,
    pub aggregate_types: Option<Vec<Arc<str>>>,
    /// As they were written: ids or slugs.
    pub project_ids: Option<Vec<Arc<str>>>,
    /// A predicate over rows of `aggregate_id`, `aggregate_type` and `project_id`, where the sets do not say it all.
    pub filter: Option<Arc<Filter>>,
}

/// The fields that are the same for all events of a stream.
const STREAM_FIELDS: [&str; 3] = ["aggregate_id", "aggregate_type", "project_id"];

impl StreamFilter {
    pub fn is_empty(&self) -> bool {
        let StreamFilter { aggregate_ids, aggregate_types, project_ids, filter } = self;
        aggregate_ids.is_none() && aggregate_types.is_none() && project_ids.is_none() && filter.is_none()
    }

    /// Takes a conjunct in if it is a set of ids or names; `id` is the name that the aggregate's id has in the rows.
    pub fn take_set(&mut self, conjunct: &Filter, id: &str) -> bool {
        let Node::And(nodes) = conjunct.node() else { return false };
        let [Node::Field(path, test)] = nodes.as_slice() else { return false };
        let Some(values) = texts(test) else { return false };
        let set = match &**path.text() {
            name if name == id => &mut self.aggregate_ids,
            "aggregate_type" => &mut self.aggregate_types,
            // A state's project is compared as it stands: only the stream's may be meant by a slug.
            "project_id" if id == "aggregate_id" => &mut self.project_ids,
            _ => return false,
        };
        match set {
            Some(known) => known.retain(|value| values.binary_search(value).is_ok()),
            None => *set = Some(values),
        }
        true
    }

    /// For `explain`.
    pub fn describe(&self) -> Value {
        let mut object = Object::new();
        let sets = [
            ("aggregate_ids", &self.aggregate_ids),
            ("aggregate_types", &self.aggregate_types),
            ("project_ids", &self.project_ids),
        ];
        for (name, set) in sets {
            if let Some(set) = set {
                object.push(name, set.iter().cloned().map(Value::from).collect::<Vec<_>>());
            }
        }
        if let Some(filter) = &self.filter {
            object.push("filter", filter.spec().clone());
        }
        object.into()
    }
}

/// Whether a conjunct speaks of nothing but the stream.
pub fn is_of_stream(conjunct: &Filter) -> bool {
    let mut of_stream = true;
    let plain = conjunct.visit_paths(&mut |path| of_stream &= STREAM_FIELDS.contains(&path));
    plain && of_stream
}

/// The texts that a value must be one of, if the test says just that.
fn texts(test: &Test) -> Option<Vec<Arc<str>>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    let mut texts: Vec<Arc<str>> = match test {
        Test::Compare(Comparison::Eq, value) => vec![text(value)?],
        Test::In(members) => members.values().map(text).collect::<Option<_>>()?,
        _ => return None,
    };
    texts.sort();
    Some(texts)
}

/// Rows that a scan gave. They may be asked for more than once.
pub trait Table {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_>;

    /// The rows around nodes, of a scan that follows edges: the nearest first, each node once.
    fn around(&self, _nodes: &[Arc<str>]) -> Vec<Value> {
        Vec::new()
    }

    /// The same rows, before filter and limit of the scan, by columns.
    fn columns(&self) -> Option<&dyn Columns> {
        None
    }
}

impl Table for Vec<Value> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.iter().cloned())
    }
}

impl Table for Arc<[Value]> {
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.iter().cloned())
    }
}
