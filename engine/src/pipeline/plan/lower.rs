//! Lowers a plan to scans and operators. Work that no scan does becomes an operator.

use std::sync::Arc;

use super::logical::{self, LogicalPlan, PlanNode, PlanStep};
use super::optimize::draws;
use super::vectorize::vectorize;
use crate::model::value::{Object, Value};
use crate::pipeline::column::can_keep;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::language::ast::Documents;
use crate::pipeline::run::operator;
use crate::pipeline::run::program::{Program, RowSource, StageOperator};
use crate::pipeline::run::rows::{Operator, RowOwner};
use crate::pipeline::run::vectorized::ColumnProgram;
use crate::pipeline::run::windows::WindowsOperator;
use crate::pipeline::source::scan::{EventScan, Read, Scan, StateScan, StateSource};
use crate::pipeline::source::streams::{StreamFilter, is_of_stream};

/// The settings for lowering a plan, and the scans that the lowering has produced.
pub struct PlanLowering {
    /// The scans of the sources and steps that are already lowered.
    pub scans: Vec<Scan>,
    /// Whether the program may use columns.
    pub columns: bool,
    /// Whether a preview shows the rows after each step. If so, every step returns whole rows.
    pub shows_rows: bool,
}

/// Lowers a plan and the plans inside it.
pub fn lower(plan: LogicalPlan, lowering: &mut PlanLowering) -> Program {
    let mut vectorized = None;
    let input = match plan.source {
        logical::PlanSource::Documents(Documents::Literal(rows)) => RowSource::Literal(rows),
        logical::PlanSource::Documents(Documents::Computed(expr)) => RowSource::Computed(expr),
        logical::PlanSource::Events(events) => {
            let (streams, filter) = streams(&events.filters);
            let read = Read::Events(EventScan { streams, filter, limit: events.limit });
            scan(Scan { read, fields: events.fields, columns: None }, lowering)
        }
        logical::PlanSource::States(states) => {
            let (mut streams, event_filter) = streams(&states.event_filters);
            let filter = rest(&states.filters, |conjunct| streams.take_set(conjunct, "_id"));
            // The source finds aggregates by id without columns.
            if lowering.columns && states.choice == StateSource::Resident && streams.aggregate_ids.is_none() {
                vectorized = Some(vectorize(filter.as_deref(), states.limit, &plan.nodes, lowering.shows_rows));
            }
            let columns = vectorized.as_ref().map(ColumnProgram::paths);
            let read = Read::States(StateScan {
                source: states.choice,
                streams,
                event_filter,
                as_of: states.fold.as_of,
                deleted: states.fold.deleted,
                events: states.fold.events,
                filter,
                limit: states.limit,
            });
            scan(Scan { read, fields: states.fields, columns }, lowering)
        }
    };
    let source = source_owner(&input, lowering);
    Program { input, source, steps: steps(plan.nodes, source, lowering), vectorized }
}

/// Returns the owner of the rows of a source. The pipeline owns the rows of events, because these rows are built for
/// the query.
fn source_owner(input: &RowSource, lowering: &PlanLowering) -> RowOwner {
    match input {
        RowSource::Scan(scan) => match lowering.scans.get(*scan).map(|scan| &scan.read) {
            Some(Read::Events(_)) => RowOwner::Pipeline,
            Some(Read::States(_) | Read::Edges(_)) | None => RowOwner::Source,
        },
        // Computed rows may share parts, so the expanded size of the rows may far exceed the memory that the rows
        // occupy.
        RowSource::Computed(_) => RowOwner::Pipeline,
        RowSource::Literal(_) | RowSource::Given => RowOwner::Source,
    }
}

fn scan(scan: Scan, lowering: &mut PlanLowering) -> RowSource {
    lowering.scans.push(scan);
    RowSource::Scan(lowering.scans.len() - 1)
}

/// Splits filters over events. Returns the streams that the filters select, and the conditions that must be evaluated
/// for each event.
fn streams(filters: &[Filter]) -> (StreamFilter, Option<Arc<Filter>>) {
    let mut streams = StreamFilter::default();
    let (mut of_stream, mut reads_events) = (Vec::new(), false);
    let filter = rest(filters, |conjunct| {
        if streams.take_set(conjunct, "aggregate_id") {
            return true;
        }
        // A condition that may fail is not evaluated for events that an earlier condition excludes.
        let taken = is_of_stream(conjunct) && !(reads_events && conjunct.may_fail());
        if taken {
            of_stream.push(conjunct.clone());
        }
        reads_events |= !taken;
        taken
    });
    streams.filter = all(&of_stream);
    (streams, filter)
}

/// Passes the conjuncts to `take` in the order in which the conjuncts are evaluated. Returns the conjunction of the
/// remaining conjuncts in the same order, or `None` if `take` accepts all conjuncts.
///
/// The first conjunct that uses random numbers and all later conjuncts are not passed to `take` and remain. The random
/// number of a row depends on the rows that earlier conditions accept, so no condition may move before a conjunct that
/// uses random numbers.
fn rest(filters: &[Filter], mut take: impl FnMut(&Filter) -> bool) -> Option<Arc<Filter>> {
    let mut conjuncts: Vec<Filter> = Vec::new();
    for filter in filters {
        let mut next = filter.conjuncts();
        next.sort_by_key(Filter::rank);
        conjuncts.extend(next);
    }
    if !conjuncts.iter().any(|conjunct| draws(conjunct.spec())) {
        conjuncts.sort_by_key(Filter::rank);
    }
    let mut has_drawn = false;
    conjuncts.retain(|conjunct| {
        has_drawn |= draws(conjunct.spec());
        has_drawn || !take(conjunct)
    });
    all(&conjuncts)
}

fn all(conjuncts: &[Filter]) -> Option<Arc<Filter>> {
    (!conjuncts.is_empty()).then(|| Arc::new(Filter::all(conjuncts)))
}

fn steps(nodes: Vec<PlanNode>, above: RowOwner, lowering: &mut PlanLowering) -> Vec<StageOperator> {
    let mut steps: Vec<StageOperator> = Vec::with_capacity(nodes.len());
    for PlanNode { index, text, step } in nodes {
        let owner = steps.last().map_or(above, |step| step.owner);
        let mut about = Object::new();
        // These steps return only unchanged rows of their input. Other steps may return new rows.
        let keeps_rows = matches!(
            step,
            PlanStep::Match(_) | PlanStep::Sort { .. } | PlanStep::Limit(_) | PlanStep::Skip(_) | PlanStep::Sample(_)
        );
        let (name, operator): (&str, Box<dyn Operator>) = match step {
            PlanStep::Match(filter) => ("match", Box::new(operator::MatchOperator { filter })),
            PlanStep::Project(projection) => ("project", Box::new(operator::ProjectOperator { projection })),
            PlanStep::Group(group) => ("group", Box::new(operator::GroupOperator { group, owner })),
            PlanStep::Sort { keys, limit } => {
                if let Some(limit) = limit {
                    about.push("keeps", i64::try_from(limit).unwrap_or(i64::MAX));
                }
                let name = if limit.is_some() { "top" } else { "sort" };
                (name, Box::new(operator::SortOperator::new(keys, limit, owner)))
            }
            PlanStep::Limit(rows) => ("limit", Box::new(operator::LimitOperator { rows })),
            PlanStep::Skip(rows) => ("skip", Box::new(operator::SkipOperator { rows })),
            PlanStep::Count(name) => ("count", Box::new(operator::CountOperator { name })),
            PlanStep::Unwind(unwind) => ("unwind", Box::new(operator::UnwindOperator { unwind })),
            PlanStep::ReplaceRoot(new_root) => ("replace_root", Box::new(operator::ReplaceRootOperator { new_root })),
            PlanStep::Facet(facets) => {
                let facets: Vec<(Arc<str>, Program)> =
                    facets.into_iter().map(|(name, nodes)| (name, over_input(nodes, owner, lowering))).collect();
                let plans: Object =
                    facets.iter().map(|(name, program)| (name.clone(), program.describe(&lowering.scans))).collect();
                about.push("plans", plans);
                ("facet", Box::new(operator::FacetOperator { facets, owner }))
            }
            PlanStep::Bucket(bucket) => ("bucket", Box::new(operator::BucketOperator { bucket, owner })),
            PlanStep::BucketAuto(bucket) => ("bucket_auto", Box::new(operator::BucketAutoOperator { bucket, owner })),
            PlanStep::Lookup(lookup) => {
                let logical::LookupStep { join, probe, variables, names, plan, target } = *lookup;
                let program = lower(plan, lowering);
                if let Some((_, foreign)) = &join {
                    request_column(&program, foreign.text(), lowering);
                }
                let kind = match (&join, &probe) {
                    (Some(_), _) => "hash",
                    (None, Some(_)) => "index",
                    (None, None) => "none",
                };
                let is_computed_by_row = program.is_computed_from(&(names.len() - variables.len()..names.len()));
                about.push("join", kind);
                about.push("plan", program.describe(&lowering.scans));
                (
                    "lookup",
                    Box::new(operator::LookupOperator { join, probe, variables, program, is_computed_by_row, target }),
                )
            }
            PlanStep::Follow(follow) => {
                let logical::FollowStep { edges, local, nodes, target } = *follow;
                about.push("edges", edges.describe());
                lowering.scans.push(Scan { read: Read::Edges(edges), fields: None, columns: None });
                let scan = lowering.scans.len() - 1;
                let program = over_input(nodes, RowOwner::Source, lowering);
                about.push("plan", program.describe(&lowering.scans));
                ("follow", Box::new(operator::FollowOperator { scan, local, program, target }))
            }
            PlanStep::Union(plan) => {
                let program = lower(plan, lowering);
                about.push("plan", program.describe(&lowering.scans));
                ("union", Box::new(operator::UnionOperator { program }))
            }
            PlanStep::Windows(windows) => {
                let structures = windows.outputs.iter().map(|output| {
                    let structure = Value::from(output.function.structure());
                    Value::from(Object::from_iter([("function", Value::from(output.name)), ("structure", structure)]))
                });
                about.push("structures", structures.collect::<Vec<_>>());
                ("windows", Box::new(WindowsOperator::new(windows, owner)))
            }
            PlanStep::Densify(densify) => ("densify", Box::new(operator::DensifyOperator { densify: *densify, owner })),
            PlanStep::GraphLookup(lookup) => {
                let logical::GraphLookupStep { search, plan } = *lookup;
                let program = lower(plan, lowering);
                about.push("plan", program.describe(&lowering.scans));
                ("graph_lookup", Box::new(operator::GraphLookupOperator { search, program }))
            }
            PlanStep::Sample(size) => ("sample", Box::new(operator::SampleOperator { size, owner })),
            PlanStep::Redact(expr) => ("redact", Box::new(operator::RedactOperator { expr })),
        };
        let mut description = Object::from_iter([("operator", Value::from(name))]);
        description.push("stage", i64::try_from(index).unwrap_or(i64::MAX));
        description.push("from", text);
        about.into_iter().for_each(|(name, value)| description.push(name, value));
        let owner = if keeps_rows { owner } else { RowOwner::Pipeline };
        steps.push(StageOperator { index, description, operator, owner });
    }
    steps
}

/// Lowers steps over rows that the program receives when it runs.
fn over_input(nodes: Vec<PlanNode>, owner: RowOwner, lowering: &mut PlanLowering) -> Program {
    Program { input: RowSource::Given, source: owner, steps: steps(nodes, owner, lowering), vectorized: None }
}

/// Requests the column of a path from the scan of a program, if the scan uses columns and the path can have a column.
fn request_column(program: &Program, path: &Arc<str>, lowering: &mut PlanLowering) {
    let scan = program.scan().and_then(|scan| lowering.scans.get_mut(scan));
    if let Some(columns) = scan.and_then(|scan| scan.columns.as_mut())
        && can_keep(path)
    {
        columns.insert(path.clone());
    }
}
