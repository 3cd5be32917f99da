//! The logical plan: the source of rows, and the steps in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::{Expr, ParseScope};
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::expression::projection::Projection;
use crate::pipeline::language::ast;
use crate::pipeline::language::ast::{Documents, FoldOptions, IndexedStage, SortKey, Stage, SubpipelineSource};
use crate::pipeline::source::scan;
use crate::pipeline::source::scan::EdgeScan;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::query_path::QueryPath;

/// A logical plan: a source, and the steps that its rows pass through.
#[derive(Debug)]
pub struct LogicalPlan {
    pub source: PlanSource,
    pub nodes: Vec<PlanNode>,
}

/// A source of rows, with the operations that the source does, such as filters. A `$limit` stays among the later steps
/// as well, and so does a condition that the source evaluates only inexactly.
#[derive(Debug, Clone)]
pub enum PlanSource {
    Documents(Documents),
    Events(Events),
    States(States),
}

/// A source of events.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// The filters over events. A row must match all of these filters.
    pub filters: Vec<Filter>,
    pub limit: Option<u64>,
    pub fields: Option<BTreeSet<Arc<str>>>,
}

/// A source of states.
#[derive(Debug, Clone)]
pub struct States {
    /// The filters over the events that are folded. An event must match all of these filters.
    pub event_filters: Vec<Filter>,
    pub fold: FoldOptions,
    pub choice: scan::StateSource,
    /// The filters over states. A row must match all of these filters.
    pub filters: Vec<Filter>,
    pub limit: Option<u64>,
    pub fields: Option<BTreeSet<Arc<str>>>,
}

/// A step of a plan, with the index of the top-level stage that the step comes from.
#[derive(Debug)]
pub struct PlanNode {
    pub index: usize,
    /// The specification of the stage, for `explain`.
    pub text: Value,
    pub step: PlanStep,
}

impl PlanNode {
    /// Creates a `$match` step.
    pub fn of_match(index: usize, filter: Filter) -> PlanNode {
        let text = Object::from_iter([("$match", filter.spec().clone())]).into();
        PlanNode { index, text, step: PlanStep::Match(filter) }
    }
}

/// The operation of a step.
#[derive(Debug)]
pub enum PlanStep {
    Match(Filter),
    Project(Arc<Projection>),
    Group(ast::Group),
    /// A sort by the keys, then by `_id`, then by input order. With a limit, the sort keeps no more rows than the
    /// limit.
    Sort {
        keys: Vec<SortKey>,
        limit: Option<u64>,
    },
    Limit(u64),
    Skip(u64),
    Count(Arc<str>),
    Unwind(ast::Unwind),
    ReplaceRoot(Expr),
    Facet(Vec<(Arc<str>, Vec<PlanNode>)>),
    Bucket(ast::Bucket),
    BucketAuto(ast::BucketAuto),
    Lookup(Box<LookupStep>),
    Follow(Box<FollowStep>),
    Union(LogicalPlan),
    Sample(u64),
    Redact(Expr),
    Windows(Arc<ast::Windows>),
    Densify(Box<ast::Densify>),
    GraphLookup(Box<GraphLookupStep>),
}

/// A `$graphLookup`, with the plan that produces the searched rows.
#[derive(Debug)]
pub struct GraphLookupStep {
    pub search: ast::GraphSearch,
    pub plan: LogicalPlan,
}

/// A `$lookup` with the plan of its sub-pipeline.
#[derive(Debug)]
pub struct LookupStep {
    pub join: Option<(QueryPath, QueryPath)>,
    /// A foreign path and an expression over the variables. The value at the path must equal the value of the
    /// expression. An index over the path finds candidate rows, and the `$match` that contains the condition checks the
    /// candidates again.
    pub probe: Option<(FieldPath, Expr)>,
    pub variables: Vec<(Arc<str>, Expr)>,
    /// All variables that are visible to the plan's expressions, the outermost first.
    pub names: Vec<Arc<str>>,
    pub plan: LogicalPlan,
    pub target: FieldPath,
}

/// A `$lookup` that follows edges. `nodes` are the steps of the lookup's pipeline, whose rows are the states that the
/// edges reach.
#[derive(Debug)]
pub struct FollowStep {
    pub edges: EdgeScan,
    pub local: FieldPath,
    pub nodes: Vec<PlanNode>,
    pub target: FieldPath,
}

/// Returns the plan of a top-level pipeline. If the pipeline begins with `$documents`, the rows are the documents of
/// this stage. Otherwise, the rows are events, or states after `$fold`.
pub fn plan(pipeline: ast::Pipeline, query: &Context) -> Result<LogicalPlan> {
    over(pipeline, SubpipelineSource::Events, &ParseScope::root(query))
}

/// Returns the plan of a pipeline whose rows come from `from`.
fn over(pipeline: ast::Pipeline, from: SubpipelineSource, root: &ParseScope) -> Result<LogicalPlan> {
    let folds = pipeline.stages.iter().any(|staged| matches!(staged.stage, Stage::Fold(_)));
    let mut stages = pipeline.stages.into_iter().peekable();
    let source = match stages.next_if(|staged| matches!(staged.stage, Stage::Documents(_))).map(|staged| staged.stage) {
        Some(Stage::Documents(documents)) => PlanSource::Documents(documents),
        _ => streams(&mut stages, folds, from, root)?,
    };
    Ok(LogicalPlan { source, nodes: nodes(stages, root)? })
}

/// Returns a source of events or states. Consumes `$fold`, and the `$match` stages before the `$fold`.
fn streams(
    stages: &mut std::iter::Peekable<impl Iterator<Item = IndexedStage>>,
    folds: bool,
    from: SubpipelineSource,
    root: &ParseScope,
) -> Result<PlanSource> {
    let of_type = match &from {
        SubpipelineSource::Type(name) => Some(type_filter(name, root)?),
        SubpipelineSource::Events | SubpipelineSource::Documents => None,
    };
    if !folds && of_type.is_none() {
        return Ok(PlanSource::Events(Events::default()));
    }
    let mut event_filters: Vec<Filter> = of_type.into_iter().collect();
    let mut fold = FoldOptions::default();
    if folds {
        let index = stages.peek().map_or(0, |staged| staged.index);
        loop {
            match stages.next().map(|staged| (staged.index, staged.stage)) {
                // Events are read before any row of an outer pipeline exists, so the outer pipeline's variables are
                // not visible.
                Some((index, Stage::Match(filter))) => event_filters.push(
                    Filter::parse(filter.spec(), root)
                        .map_err(|error| error.within("$match").within(index.to_string()).at_stage(index))?,
                ),
                Some((_, Stage::Fold(written))) => {
                    fold = written;
                    break;
                }
                other => return Err(misplaced_fold().at_stage(other.map_or(index, |(index, _)| index))),
            }
        }
    }
    let choice = scan::StateSource::Log;
    Ok(PlanSource::States(States { event_filters, fold, choice, filters: Vec::new(), limit: None, fields: None }))
}

fn misplaced_fold() -> Error {
    Error::new(40602, "$fold is allowed only once, and only $match stages may precede $fold")
}

fn type_filter(name: &Arc<str>, root: &ParseScope) -> Result<Filter> {
    let equal: Value = Object::from_iter([("$eq", name.clone())]).into();
    let spec: Value = Object::from_iter([("aggregate_type", equal)]).into();
    Filter::parse(&spec, root)
}

fn nodes(stages: impl Iterator<Item = IndexedStage>, root: &ParseScope) -> Result<Vec<PlanNode>> {
    let mut nodes = Vec::new();
    for IndexedStage { index, text, stage } in stages {
        root.query.tick()?;
        let step = match stage {
            Stage::Documents(_) => {
                let text = "$documents is only valid as the first stage in a pipeline";
                return Err(Error::new(40602, text).at_stage(index));
            }
            Stage::Fold(_) => return Err(misplaced_fold().at_stage(index)),
            Stage::Match(filter) => PlanStep::Match(filter),
            Stage::Project(projection) | Stage::Set(projection) | Stage::Unset(projection) => {
                PlanStep::Project(Arc::new(projection))
            }
            Stage::Group(group) => PlanStep::Group(group),
            Stage::Sort(keys) => PlanStep::Sort { keys, limit: None },
            Stage::Limit(limit) => PlanStep::Limit(limit),
            Stage::Skip(skip) => PlanStep::Skip(skip),
            Stage::Count(name) => PlanStep::Count(name),
            Stage::SortByCount(by) => {
                nodes.push(PlanNode { index, text: text.clone(), step: PlanStep::Group(counted(by, root)?) });
                let keys = vec![SortKey { path: QueryPath::new("count"), descending: true }];
                PlanStep::Sort { keys, limit: None }
            }
            Stage::Unwind(unwind) => PlanStep::Unwind(unwind),
            Stage::ReplaceRoot(expr) => PlanStep::ReplaceRoot(expr),
            Stage::Facet(facets) => PlanStep::Facet(
                facets
                    .into_iter()
                    .map(|(name, pipeline)| Ok((name, self::nodes(pipeline.stages.into_iter(), root)?)))
                    .collect::<Result<_>>()?,
            ),
            Stage::Bucket(bucket) => PlanStep::Bucket(bucket),
            Stage::BucketAuto(bucket) => PlanStep::BucketAuto(bucket),
            Stage::Lookup(lookup) => {
                let ast::Lookup { from, join, variables, names, pipeline, target } = *lookup;
                let plan = over(pipeline, from, root)?;
                PlanStep::Lookup(Box::new(LookupStep { join, probe: None, variables, names, plan, target }))
            }
            Stage::Follow(follow) => {
                let ast::Follow { edges, local, pipeline, target } = *follow;
                let nodes = self::nodes(pipeline.stages.into_iter(), root)?;
                PlanStep::Follow(Box::new(FollowStep { edges, local, nodes, target }))
            }
            Stage::UnionWith(from, pipeline) => PlanStep::Union(over(pipeline, from, root)?),
            Stage::Sample(size) => PlanStep::Sample(size),
            Stage::Redact(expr) => PlanStep::Redact(expr),
            Stage::Windows(windows) => PlanStep::Windows(windows),
            Stage::Fill(fill) => {
                let ast::Fill { windows, values } = *fill;
                let windows = windows.map(|windows| PlanStep::Windows(Arc::new(windows)));
                match (windows, values.map(|values| PlanStep::Project(Arc::new(values)))) {
                    (Some(windows), Some(values)) => {
                        nodes.push(PlanNode { index, text: text.clone(), step: windows });
                        values
                    }
                    (Some(step), None) | (None, Some(step)) => step,
                    // The stage fills no field. The step returns every row, so that a preview shows the rows after the
                    // stage.
                    (None, None) => PlanStep::Match(Filter::all([])),
                }
            }
            Stage::Densify(densify) => PlanStep::Densify(densify),
            Stage::GraphLookup(lookup) => PlanStep::GraphLookup(Box::new(graph_lookup(*lookup, index, root)?)),
        };
        nodes.push(PlanNode { index, text, step });
    }
    Ok(nodes)
}

/// Returns the step for a `$graphLookup`. The plan in the step produces the searched rows. The filter
/// `restrictSearchWithMatch` becomes the last node of this plan, so that rules can move the filter to the source.
fn graph_lookup(lookup: ast::GraphLookup, index: usize, root: &ParseScope) -> Result<GraphLookupStep> {
    let mut plan = over(lookup.pipeline, lookup.from, root)?;
    if let Some(filter) = lookup.restriction {
        plan.nodes.push(PlanNode::of_match(index, filter));
    }
    Ok(GraphLookupStep { search: lookup.search, plan })
}

/// Returns the `$group` that counts the rows of a `$sortByCount` for each value of `by`.
fn counted(by: Expr, root: &ParseScope) -> Result<ast::Group> {
    let one: Value = Object::from_iter([("$sum", 1i64)]).into();
    let count = crate::pipeline::expression::accumulator::parse("count", &one, root)?;
    Ok(ast::Group { id: by, fields: vec![("count".into(), count)] })
}
