//! Plans a pipeline that shows the rows after every stage.
//!
//! The stages keep their order, because a filter that moved before another stage would change the number of rows after
//! that stage. Only the filters at the start of the pipeline are pushed to the source, and each of them is pushed
//! separately. The source therefore shows the rows after each of these filters.

use super::logical::{Events, Node, Plan, Source, States, Step};
use super::lower::{Lowering, lower};
use super::optimize::{optimize_inside, prune_fields};
use super::options::Options;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::run::preview::{Counted, Preview};
use crate::pipeline::source::scan;
use crate::pipeline::source::streams::{StreamFilter, is_of_stream};

/// The maximum number of `$match` stages that select rows in the source one after the other. Each of these stages reads
/// the columns again.
const MAX_LEVELS: usize = 8;

/// The preview of the events before `$fold`, and the preview of the rows after it. There is no preview of events if no
/// filter selects events.
pub struct Previews {
    pub before: Option<Preview>,
    pub rows: Preview,
}

/// Returns the program that shows `shown` rows after every stage.
pub fn preview(mut plan: Plan, options: &Options, shown: usize, lowering: &mut Lowering) -> Previews {
    optimize_inside(&mut plan, options);
    bound_sorts(&mut plan.nodes, shown);
    let before = match &plan.source {
        Source::States(states) if !states.event_filters.is_empty() => {
            let filters = states.event_filters.iter().cloned().enumerate();
            let nodes =
                filters.map(|(index, filter)| Node { index, text: filter.spec().clone(), step: Step::Match(filter) });
            let plan = Plan { source: Source::Events(Events::default()), nodes: nodes.collect() };
            Some(part(plan, lowering))
        }
        Source::States(_) | Source::Events(_) | Source::Documents(_) => None,
    };
    Previews { before, rows: part(plan, lowering) }
}

fn part(mut plan: Plan, lowering: &mut Lowering) -> Preview {
    let stage = match &plan.source {
        Source::States(states) => Some(states.event_filters.len()),
        Source::Documents(_) => Some(0),
        Source::Events(_) => None,
    };
    let mut levels = Vec::new();
    if let (Source::States(states), Some(stage)) = (&plan.source, stage)
        && states.choice == scan::Source::Resident
    {
        levels.push((stage, lower(Plan { source: copy(&plan.source), nodes: Vec::new() }, lowering)));
    }
    while levels.len() < MAX_LEVELS
        && let Some(index) = push(&mut plan)
    {
        levels.push((index, lower(Plan { source: copy(&plan.source), nodes: Vec::new() }, lowering)));
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
/// Returns the index of the stage.
fn push(plan: &mut Plan) -> Option<usize> {
    let Step::Match(filter) = &plan.nodes.first()?.step else { return None };
    let (filters, is_exact): (&mut Vec<Filter>, fn(&Filter) -> bool) = match &mut plan.source {
        Source::States(states) if states.choice == scan::Source::Resident => (&mut states.filters, Filter::is_plain),
        Source::Events(events) => (&mut events.filters, selects_streams),
        Source::States(_) | Source::Documents(_) => return None,
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

/// Limits each sort directly before a `$limit` to the rows that the `$limit` keeps, or to the rows to show if these are
/// more.
fn bound_sorts(nodes: &mut [Node], shown: usize) {
    for at in 1..nodes.len() {
        let [sort, next] = &mut nodes[at - 1..=at] else { continue };
        if let (Step::Sort { limit: limit @ None, .. }, Step::Limit(rows)) = (&mut sort.step, &next.step) {
            *limit = Some((*rows).max(shown as u64));
        }
    }
}

fn copy(source: &Source) -> Source {
    match source {
        Source::Documents(documents) => Source::Documents(documents.clone()),
        Source::Events(events) => Source::Events(Events { filters: events.filters.clone(), limit: None, fields: None }),
        Source::States(states) => Source::States(States {
            event_filters: states.event_filters.clone(),
            fold: states.fold,
            choice: states.choice,
            filters: states.filters.clone(),
            limit: None,
            fields: None,
        }),
    }
}

fn counted(step: &Step) -> Counted {
    match step {
        Step::Project(_)
        | Step::ReplaceRoot(_)
        | Step::Sort { .. }
        | Step::Lookup(_)
        | Step::Follow(_)
        | Step::Windows(_)
        | Step::GraphLookup(_) => Counted::Same,
        Step::Limit(rows) | Step::Sample(rows) => Counted::AtMost(*rows),
        Step::Skip(rows) => Counted::Without(*rows),
        Step::Match(_)
        | Step::Group(_)
        | Step::Count(_)
        | Step::Unwind(_)
        | Step::Facet(_)
        | Step::Bucket(_)
        | Step::BucketAuto(_)
        | Step::Union(_)
        | Step::Redact(_)
        | Step::Densify(_) => Counted::Own,
    }
}
