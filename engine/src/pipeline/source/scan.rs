//! What a pipeline reads: the caller serves each scan and hands its rows over.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::streams::StreamFilter;
use crate::model::graph::Direction;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::filter::Filter;

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

/// Up to which event a stream is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    Now,
    /// Milliseconds since the epoch.
    At(i64),
    Version(i64),
    Position(i64),
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
