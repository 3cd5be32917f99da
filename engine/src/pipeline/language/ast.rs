//! What was asked for, checked and compiled, stage by stage, before anything is known about where rows come from.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::expression::projection::Projection;
use crate::pipeline::source::scan::{AsOf, EdgeScan};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::Path;

/// A pipeline or sub-pipeline.
#[derive(Debug, Default)]
pub struct Pipeline {
    pub stages: Vec<Staged>,
}

/// A stage and where it stands.
#[derive(Debug)]
pub struct Staged {
    /// Index of the top-level stage that it belongs to.
    pub index: usize,
    /// The stage as it was written, under its one name: `$set`, never `$addFields`.
    pub text: Value,
    pub stage: Stage,
}

#[derive(Debug)]
pub enum Stage {
    Documents(Documents),
    Match(Filter),
    Fold(Fold),
    Project(Projection),
    Set(Projection),
    Unset(Projection),
    Group(Group),
    Sort(Vec<SortKey>),
    Limit(u64),
    Skip(u64),
    Count(Arc<str>),
    SortByCount(Expr),
    Unwind(Unwind),
    ReplaceRoot(Expr),
    Facet(Vec<(Arc<str>, Pipeline)>),
    Bucket(Bucket),
    BucketAuto(BucketAuto),
    /// Another aggregate type, events, or literal rows.
    Lookup(Box<Lookup>),
    /// A lookup along the edges of the knowledge graph.
    Follow(Box<Follow>),
    UnionWith(From, Pipeline),
    Sample(u64),
    Redact(Expr),
}

/// Rows that the pipeline brings along.
#[derive(Debug, Clone)]
pub enum Documents {
    Literal(Arc<Vec<Value>>),
    /// An expression that makes the rows; there is no row for it to read.
    Computed(Arc<Expr>),
}

/// How streams become states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    pub as_of: AsOf,
    /// Whether deleted aggregates are shown.
    pub deleted: bool,
    /// Whether each state carries its events as `_events`.
    pub events: bool,
}

impl Default for Fold {
    fn default() -> Fold {
        Fold { as_of: AsOf::Now, deleted: false, events: false }
    }
}

#[derive(Debug)]
pub struct Group {
    pub id: Expr,
    pub fields: Vec<(Arc<str>, Accumulator)>,
}

impl Group {
    /// Visits the paths of the row that it reads.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        self.id.visit_paths(visit);
        self.fields.iter().for_each(|(_, accumulator)| accumulator.visit_paths(visit));
    }
}

#[derive(Debug, Clone)]
pub struct SortKey {
    pub path: Path,
    pub descending: bool,
}

#[derive(Debug, Clone)]
pub struct Unwind {
    pub path: FieldPath,
    pub index: Option<FieldPath>,
    /// Whether rows without items pass.
    pub preserve: bool,
}

#[derive(Debug)]
pub struct Bucket {
    pub by: Expr,
    /// Ascending, at least two, of one type.
    pub boundaries: Vec<Value>,
    pub default: Option<Value>,
    pub fields: Vec<(Arc<str>, Accumulator)>,
}

#[derive(Debug)]
pub struct BucketAuto {
    pub by: Expr,
    pub buckets: usize,
    pub fields: Vec<(Arc<str>, Accumulator)>,
    pub granularity: Option<Granularity>,
}

/// Series of numbers at which buckets may end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Granularity {
    /// Numbers of one decade, from 1 up to 10.
    Series(&'static [f64]),
    /// A series of this many numbers a decade, with three digits each.
    Geometric(u32),
    PowersOf2,
}

/// What a sub-pipeline reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// States of an aggregate type.
    Type(Arc<str>),
    Events,
    /// The `$documents` that the sub-pipeline begins with.
    Documents,
}

#[derive(Debug)]
pub struct Lookup {
    pub from: From,
    /// Local and foreign path that must be equal.
    pub join: Option<(Path, Path)>,
    /// Variables of the sub-pipeline, computed from the local row.
    pub variables: Vec<(Arc<str>, Expr)>,
    /// All variables that the sub-pipeline's expressions see, in the order of their slots.
    pub names: Vec<Arc<str>>,
    pub pipeline: Pipeline,
    pub target: FieldPath,
}

/// `$lookup` with `edge`, `direction` or `depth`.
#[derive(Debug)]
pub struct Follow {
    pub edges: EdgeScan,
    /// Where a row names the node to begin at.
    pub local: FieldPath,
    /// What is done to the states reached.
    pub pipeline: Pipeline,
    pub target: FieldPath,
}
