//! The parsed pipeline: stages that are checked and compiled, independent of the source of rows.

use std::sync::Arc;

use super::rows::RowFields;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::accumulator::Accumulator;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::expr::Unit;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::expression::projection::{ProjectedField, Projection};
use crate::pipeline::expression::window::WindowOutput;
use crate::pipeline::source::scan::{AsOf, EdgeScan};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::QueryPath;

/// The parsed stages of a pipeline or sub-pipeline, with the known fields of its rows.
#[derive(Debug)]
pub struct Pipeline {
    pub stages: Vec<IndexedStage>,
    /// The known fields of the rows before the first stage.
    pub first: RowFields,
    /// The known fields of the rows after the last stage.
    pub last: RowFields,
}

impl Pipeline {
    /// Returns a pipeline without stages. The pipeline returns its input rows unchanged.
    pub fn empty(rows: RowFields) -> Pipeline {
        Pipeline { stages: Vec::new(), first: rows.clone(), last: rows }
    }
}

/// A parsed stage, with its position in the request.
#[derive(Debug)]
pub struct IndexedStage {
    /// The index of the top-level stage that contains this stage.
    pub index: usize,
    /// The specification of the stage under its canonical name: `$set`, never `$addFields`. Constants are already
    /// converted to the types of the compared fields, except in sub-pipelines and in `restrictSearchWithMatch`.
    pub text: Value,
    pub stage: Stage,
}

/// A stage of a pipeline with its parsed specification.
#[derive(Debug)]
pub enum Stage {
    Documents(Documents),
    Match(Filter),
    Fold(FoldOptions),
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
    /// A `$lookup` in the states of an aggregate type, in events, or in the rows of a `$documents` stage.
    Lookup(Box<Lookup>),
    /// A `$lookup` along the edges of the knowledge graph.
    Follow(Box<Follow>),
    UnionWith(SubpipelineSource, Pipeline),
    Sample(u64),
    Redact(Expr),
    /// `$setWindowFields`.
    Windows(Arc<Windows>),
    Fill(Box<Fill>),
    Densify(Box<Densify>),
    GraphLookup(Box<GraphLookup>),
}

/// The rows of a `$documents` stage. The pipeline itself contains or computes these rows.
#[derive(Debug, Clone)]
pub enum Documents {
    Literal(Arc<Vec<Value>>),
    /// An expression that computes the rows. The expression has no input row.
    Computed(Arc<Expr>),
}

/// The options of `$fold`, which folds streams into states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldOptions {
    pub as_of: AsOf,
    /// Whether the result includes deleted aggregates.
    pub deleted: bool,
    /// Whether each state contains its events in the field `_events`.
    pub events: bool,
}

impl Default for FoldOptions {
    fn default() -> FoldOptions {
        FoldOptions { as_of: AsOf::Now, deleted: false, events: false }
    }
}

/// A `$group`: the expression of the key, and the computed fields.
#[derive(Debug)]
pub struct Group {
    pub id: Expr,
    pub fields: Vec<(Arc<str>, Accumulator)>,
}

impl Group {
    /// Returns the key of a group for a value of the `_id` expression. A missing value counts as null. If the
    /// expression is an object with a single field, a missing value of the field counts as null as well. In an object
    /// with several fields, a missing field stays missing.
    pub fn key(&self, id: Option<Value>) -> Value {
        match (self.id.fields(), id) {
            (Some([(name, _)]), Some(Value::Object(object))) if object.is_empty() => {
                Object::from_iter([(name.clone(), Value::Null)]).into()
            }
            (_, id) => id.unwrap_or_default(),
        }
    }

    /// Visits the paths that the group reads from a row.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&FieldPath)) {
        self.id.visit_paths(visit);
        self.fields.iter().for_each(|(_, accumulator)| accumulator.visit_paths(visit));
    }
}

/// A key of a `$sort`.
#[derive(Debug, Clone)]
pub struct SortKey {
    pub path: QueryPath,
    pub descending: bool,
}

/// An `$unwind`: the path of the array, the path that receives the index of the item, and the treatment of rows without
/// items.
#[derive(Debug, Clone)]
pub struct Unwind {
    pub path: FieldPath,
    pub index: Option<FieldPath>,
    /// Whether rows without items stay in the result.
    pub preserve: bool,
}

/// A `$bucket`: the grouping expression, the boundaries, the key of the bucket for values outside the boundaries, and
/// the computed fields.
#[derive(Debug)]
pub struct Bucket {
    pub by: Expr,
    /// The boundaries of the buckets: at least two values of one type, in ascending order.
    pub boundaries: Vec<Value>,
    pub default: Option<Value>,
    pub fields: Vec<(Arc<str>, Accumulator)>,
}

/// A `$bucketAuto`: the grouping expression, the number of buckets, the computed fields, and the rounding of the
/// boundaries.
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
pub enum SubpipelineSource {
    /// The states of an aggregate type.
    Type(Arc<str>),
    Events,
    /// The `$documents` stage that the sub-pipeline begins with.
    Documents,
}

/// A `$lookup` that joins rows by equal values, by a sub-pipeline, or by both.
#[derive(Debug)]
pub struct Lookup {
    pub from: SubpipelineSource,
    /// The local and the foreign path whose values must be equal.
    pub join: Option<(QueryPath, QueryPath)>,
    /// The variables of the sub-pipeline, each with the expression that computes its value from the local row.
    pub variables: Vec<(Arc<str>, Expr)>,
    /// All variables that are visible to the sub-pipeline's expressions, the outermost first.
    pub names: Vec<Arc<str>>,
    pub pipeline: Pipeline,
    pub target: FieldPath,
}

/// A `$lookup` that follows edges: its specification contains `edge`, `direction` or `depth`.
#[derive(Debug)]
pub struct Follow {
    pub edges: EdgeScan,
    /// The path of the start node's id in a row. The value at the path may also be an array of ids.
    pub local: FieldPath,
    /// The stages that run over the states to which the edges lead.
    pub pipeline: Pipeline,
    pub target: FieldPath,
}

/// A `$setWindowFields`, which sorts the rows of each partition and computes fields of a row from the rows around this
/// row.
#[derive(Debug)]
pub struct Windows {
    /// The key of a row's partition. Without an expression, all rows are one partition.
    pub partition: Option<Expr>,
    /// The keys of the `sortBy`, or `None` if the stage has no `sortBy`. Without keys, the rows keep their order.
    pub sort: Option<Vec<SortKey>>,
    /// The path of the sort values, if there is exactly one sort key.
    pub sort_path: Option<FieldPath>,
    pub outputs: Vec<WindowOutput>,
    /// The projection that writes the computed fields. The expression of each field reads a variable `output{i}`, which
    /// contains the value of `outputs[i]`.
    pub write: Projection,
}

impl Windows {
    /// Returns whether the stage replaces the top-level field `name` in every row.
    pub fn writes_whole(&self, name: &str) -> bool {
        matches!(self.write.root.fields.get(name), Some(ProjectedField::Computed(_)))
    }

    /// Visits the paths that the stage reads from a row.
    pub fn visit_paths(&self, visit: &mut dyn FnMut(&str)) {
        self.partition.iter().for_each(|expr| expr.visit_paths(&mut |path| visit(&path.segments().join("."))));
        for key in self.sort.iter().flatten() {
            visit(key.path.text());
        }
        for output in &self.outputs {
            output.function.visit_paths(&mut |path| visit(&path.segments().join(".")));
        }
    }
}

/// A `$fill`, which first fills fields from neighboring rows, and then fills fields with computed values.
#[derive(Debug)]
pub struct Fill {
    pub windows: Option<Windows>,
    pub values: Option<Projection>,
}

/// A `$densify`, which adds rows so that the values of a field have no gaps.
#[derive(Debug)]
pub struct Densify {
    pub field: FieldPath,
    pub partition: Vec<FieldPath>,
    pub step: DensifyStep,
    pub range: Range,
}

/// The distance between two successive values of a densified field.
#[derive(Debug, Clone)]
pub enum DensifyStep {
    Number(Value),
    Time(i64, Unit),
}

/// The values between which `$densify` adds rows.
#[derive(Debug, Clone)]
pub enum Range {
    /// From the least to the greatest value of all rows.
    Full,
    /// From the least to the greatest value of each partition.
    Partition,
    /// From the first value up to, but not including, the second.
    Between(Value, Value),
}

/// The search of a `$graphLookup`: the start, the connected fields, and the fields that the stage writes.
#[derive(Debug)]
pub struct GraphSearch {
    pub start: Expr,
    pub connect_from: FieldPath,
    pub connect_to: QueryPath,
    pub target: FieldPath,
    pub max_depth: Option<u64>,
    pub depth_field: Option<FieldPath>,
}

/// A `$graphLookup`. From each found row, the search continues to the rows whose `connectToField` equals the
/// `connectFromField` of the found row.
#[derive(Debug)]
pub struct GraphLookup {
    pub from: SubpipelineSource,
    pub search: GraphSearch,
    /// The filter that every found row satisfies.
    pub restriction: Option<Filter>,
    pub pipeline: Pipeline,
}
