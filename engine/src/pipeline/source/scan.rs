//! The scans of a pipeline. The caller reads the rows of each scan and passes them to the run.

use std::collections::BTreeSet;
use std::sync::Arc;

use strum::IntoStaticStr;

use super::streams::StreamFilter;
use crate::model::graph::Direction;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::filter::Filter;

/// A read that a pipeline requests from a source, with the fields and columns that the pipeline needs.
#[derive(Debug, Clone)]
pub struct Scan {
    pub read: Read,
    /// The top-level fields that the pipeline reads; `None` means all fields. The source may return more fields.
    pub fields: Option<BTreeSet<Arc<str>>>,
    /// The paths whose columns would speed up the pipeline. `None` if the source need not provide columns.
    pub columns: Option<BTreeSet<Arc<str>>>,
}

/// The kind of a scan.
#[derive(Debug, Clone)]
pub enum Read {
    Events(EventScan),
    States(StateScan),
    /// The states that are reached along edges of the knowledge graph.
    Edges(EdgeScan),
}

/// A scan that follows edges of the knowledge graph: the kinds of edges, the direction and the maximum distance.
#[derive(Debug, Clone)]
pub struct EdgeScan {
    /// The kinds of edges. An empty list means all kinds.
    pub kinds: Vec<Arc<str>>,
    pub direction: Direction,
    pub depth: u32,
}

impl EdgeScan {
    /// Returns the description of the scan for `explain`.
    pub fn describe(&self) -> Object {
        Object::from_iter([
            ("source", Value::from("graph")),
            ("kinds", self.kinds.iter().cloned().map(Value::from).collect::<Vec<_>>().into()),
            ("direction", self.direction.name().into()),
            ("depth", Value::Int(self.depth.into())),
        ])
    }
}

/// A scan of events, in the order of their positions.
#[derive(Debug, Clone)]
pub struct EventScan {
    pub streams: StreamFilter,
    /// The filter over events. The source returns only events that match.
    pub filter: Option<Arc<Filter>>,
    /// The maximum number of rows that the pipeline needs.
    pub limit: Option<u64>,
}

/// A scan of states, which are folded from streams of events.
#[derive(Debug, Clone)]
pub struct StateScan {
    pub source: StateSource,
    pub streams: StreamFilter,
    /// The filter over the events that are folded. Set only with [`StateSource::Log`].
    pub event_filter: Option<Arc<Filter>>,
    pub as_of: AsOf,
    /// Whether the source also returns deleted aggregates.
    pub deleted: bool,
    /// Whether each state has the field `_events`.
    pub events: bool,
    /// A filter over states. With [`StateSource::Resident`], the source returns only matching states. With
    /// [`StateSource::Nodes`], [`node_query`](super::surrealql::node_query) translates the filter for the database, and
    /// the pipeline applies the filter again if the translation is not exact. Never set with [`StateSource::Log`].
    pub filter: Option<Arc<Filter>>,
    /// The maximum number of rows that the pipeline needs.
    pub limit: Option<u64>,
}

/// The point in a stream up to which events are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    Now,
    /// A time, in milliseconds since the epoch.
    At(i64),
    Version(i64),
    Position(i64),
}

/// The place from which a scan reads states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum StateSource {
    /// The states in memory.
    Resident,
    /// The stored snapshots.
    Nodes,
    /// The event log, whose events are folded for each query.
    Log,
}

impl StateSource {
    pub fn name(self) -> &'static str {
        self.into()
    }
}
