//! The parsed pipeline: stages that are checked and compiled, independent of the source of rows.

use std::sync::Arc;

use crate::model::value::Value;
use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::expression::projection::Projection;
use crate::pipeline::source::scan::{AsOf, EdgeScan};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::Path;

/// The parsed stages of a pipeline or sub-pipeline.
#[derive(Debug, Default)]
pub struct Pipeline {
    pub stages: Vec<Staged>,
}

/// A parsed stage, with its position in the request.
#[derive(Debug)]
pub struct Staged {
    /// The index of the top-level stage that contains this stage.
    pub index: usize,
    /// The stage as the client wrote it, under its canonical name: `$set`, never `$addFields`.
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
    /// A lookup in another aggregate type, in events, or in literal rows.
    Lookup(Box<Lookup>),
    /// A lookup along the edges of the knowledge graph.
    Follow(Box<Follow>),
    UnionWith(From, Pipeline),
    Sample(u64),
    Redact(Expr),
}

/// Rows that the pipeline itself contains.
#[derive(Debug, Clone)]
pub enum Documents {
    Literal(Arc<Vec<Value>>),
    /// An expression that computes the rows. The expression has no input row.
    Computed(Arc<Expr>),
}

/// The options of `$fold`, which turns streams into states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    pub as_of: AsOf,
    /// Whether the result includes deleted aggregates.
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
    /// Visits the paths that the group reads from a row.
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
    /// Whether rows without items stay in the result.
    pub preserve: bool,
}

#[derive(Debug)]
pub struct Bucket {
    pub by: Expr,
    /// The boundaries between the buckets: at least two values of one type, in ascending order.
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

/// A series of numbers at which buckets may end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Granularity {
    /// A series that repeats in every decade, given by its numbers from 1 up to 10.
    Series(&'static [f64]),
    /// A geometric series with this many numbers per decade, rounded to three digits.
    Geometric(u32),
    PowersOf2,
}

/// The source of a sub-pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// The states of an aggregate type.
    Type(Arc<str>),
    Events,
    /// The `$documents` stage that the sub-pipeline begins with.
    Documents,
}

#[derive(Debug)]
pub struct Lookup {
    pub from: From,
    /// The local and the foreign path whose values must be equal.
    pub join: Option<(Path, Path)>,
    /// The variables of the sub-pipeline, each with the expression that computes its value from the local row.
    pub variables: Vec<(Arc<str>, Expr)>,
    /// All variables that are visible to the sub-pipeline's expressions, in the order of their slots.
    pub names: Vec<Arc<str>>,
    pub pipeline: Pipeline,
    pub target: FieldPath,
}

/// A `$lookup` that follows edges: its specification contains `edge`, `direction` or `depth`.
#[derive(Debug)]
pub struct Follow {
    pub edges: EdgeScan,
    /// The path that holds the id of the start node in a row, or an array of such ids.
    pub local: FieldPath,
    /// The stages that run over the reached states.
    pub pipeline: Pipeline,
    pub target: FieldPath,
}
