//! Plans a pipeline that shows the rows after every stage.
//!
//! The stages keep their order, because a filter that moved before another stage would change the number of rows after
//! that stage. Only the filters at the start of the pipeline are pushed to the source. Each filter is pushed
//! separately, so that the source can show the rows after the filter.

use super::logical::{Events, LogicalPlan, PlanNode, PlanSource, PlanStep};
use super::lower::{PlanLowering, lower};
use super::optimize::{optimize_inside, order_conjuncts, prune_fields};
use super::options::Options;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::run::preview::{Preview, RowCountBound};
use crate::pipeline::source::scan;
use crate::pipeline::source::streams::{StreamFilter, is_of_stream};

/// The maximum number of levels of a preview. A level is a leading `$fold` or `$match` that the source evaluates. A
/// preview reads the source separately for each level.
const MAX_LEVELS: usize = 8;

/// The previews of a pipeline. `before` shows the events before `$fold`, if there is a filter before `$fold`. `rows`
/// shows the rows after `$fold`, or all rows if there is no `$fold`.
pub struct Previews {
    pub before: Option<Preview>,
    pub rows: Preview,
}

/// Returns the programs that show at most `shown` rows after every stage.
pub fn preview(mut plan: LogicalPlan, options: &Options, shown: usize, lowering: &mut PlanLowering) -> Previews {
    optimize_inside(&mut plan, options);
    bound_sorts(&mut plan.nodes, shown);
    let before = match &plan.source {
        PlanSource::States(states) if !states.event_filters.is_empty() => {
            let filters = states.event_filters.iter().cloned().enumerate();
            let nodes = filters.map(|(index, filter)| PlanNode::of_match(index, filter));
            let mut plan = LogicalPlan { source: PlanSource::Events(Events::default()), nodes: nodes.collect() };
            order_conjuncts::apply(&mut plan.nodes);
            Some(part(plan, lowering))
        }
        PlanSource::States(_) | PlanSource::Events(_) | PlanSource::Documents(_) => None,
    };
    Previews { before, rows: part(plan, lowering) }
}

fn part(mut plan: LogicalPlan, lowering: &mut PlanLowering) -> Preview {
    let stage = match &plan.source {
        PlanSource::States(states) => Some(states.event_filters.len()),
        PlanSource::Documents(_) => Some(0),
        PlanSource::Events(_) => None,
    };
    let mut levels = Vec::new();
    if let (PlanSource::States(states), Some(stage)) = (&plan.source, stage)
        && states.choice == scan::StateSource::Resident
    {
        levels.push((stage, lower(LogicalPlan { source: plan.source.clone(), nodes: Vec::new() }, lowering)));
    }
    while levels.len() < MAX_LEVELS
        && let Some(index) = push(&mut plan)
    {
        levels.push((index, lower(LogicalPlan { source: plan.source.clone(), nodes: Vec::new() }, lowering)));
    }
    // The levels show the rows of the source. If the first remaining step builds new rows, the steps need only the
    // fields that this step reads.
    if !levels.is_empty() {
        prune_fields::before_first(&mut plan);
    }
    let counts = plan.nodes.iter().map(|node| counted(&node.step)).collect();
    let source = stage.filter(|_| levels.is_empty());
    Preview { levels, source, main: lower(plan, lowering), counts }
}

/// Moves the first `$match` into the source, if the source can evaluate all conjuncts and count the matching rows.
/// Returns the index of the stage, or `None` if no stage moves.
fn push(plan: &mut LogicalPlan) -> Option<usize> {
    let PlanStep::Match(filter) = &plan.nodes.first()?.step else { return None };
    let (filters, is_exact): (&mut Vec<Filter>, fn(&Filter) -> bool) = match &mut plan.source {
        PlanSource::States(states) if states.choice == scan::StateSource::Resident => {
            (&mut states.filters, Filter::is_plain)
        }
        PlanSource::Events(events) => (&mut events.filters, selects_streams),
        PlanSource::States(_) | PlanSource::Documents(_) => return None,
    };
    let conjuncts = filter.conjuncts();
    if !conjuncts.iter().all(|conjunct| !conjunct.may_fail() && is_exact(conjunct)) {
        return None;
    }
    filters.extend(conjuncts);
    Some(plan.nodes.remove(0).index)
}

fn selects_streams(conjunct: &Filter) -> bool {
    is_of_stream(conjunct) || StreamFilter::default().take_set(conjunct, "aggregate_id")
}

/// Limits each sort that is directly before a `$limit`. The sort keeps as many rows as the `$limit`, but at least
/// `shown` rows.
fn bound_sorts(nodes: &mut [PlanNode], shown: usize) {
    for at in 1..nodes.len() {
        let [sort, next] = &mut nodes[at - 1..=at] else { continue };
        if let (PlanStep::Sort { limit: limit @ None, .. }, PlanStep::Limit(rows)) = (&mut sort.step, &next.step) {
            *limit = Some((*rows).max(shown as u64));
        }
    }
}

fn counted(step: &PlanStep) -> RowCountBound {
    match step {
        PlanStep::Project(_)
        | PlanStep::ReplaceRoot(_)
        | PlanStep::Sort { .. }
        | PlanStep::Lookup(_)
        | PlanStep::Follow(_)
        | PlanStep::Windows(_)
        | PlanStep::GraphLookup(_) => RowCountBound::Same,
        PlanStep::Limit(rows) | PlanStep::Sample(rows) => RowCountBound::AtMost(*rows),
        PlanStep::Skip(rows) => RowCountBound::Without(*rows),
        PlanStep::Match(_)
        | PlanStep::Group(_)
        | PlanStep::Count(_)
        | PlanStep::Unwind(_)
        | PlanStep::Facet(_)
        | PlanStep::Bucket(_)
        | PlanStep::BucketAuto(_)
        | PlanStep::Union(_)
        | PlanStep::Redact(_)
        | PlanStep::Densify(_) => RowCountBound::Own,
    }
}
