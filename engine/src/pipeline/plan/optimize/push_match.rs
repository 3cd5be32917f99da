//! Moves conjuncts of a `$match` into the source, if the `$match` directly follows the source and the source can
//! evaluate the conjuncts.

use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{LogicalPlan, PlanNode, PlanSource, PlanStep};
use crate::pipeline::plan::options::Surroundings;
use crate::pipeline::source::scan;
use crate::pipeline::source::streams::StreamFilter;
use crate::pipeline::source::surrealql;
use crate::pipeline::source::surrealql::Support;

pub fn apply(plan: &mut LogicalPlan, _around: &Surroundings) -> bool {
    let Some(PlanStep::Match(filter)) = plan.nodes.first().map(|node| &node.step) else { return false };
    let (filters, classify): (&mut Vec<Filter>, fn(&Filter) -> Support) = match &mut plan.source {
        PlanSource::Documents(_) => return false,
        PlanSource::Events(events) => (&mut events.filters, plain),
        PlanSource::States(states) => match states.choice {
            scan::StateSource::Resident => (&mut states.filters, plain),
            scan::StateSource::Nodes => (&mut states.filters, surrealql::support),
            scan::StateSource::Log => (&mut states.filters, of_stream),
        },
    };
    let mut residual = Vec::new();
    let filter_count = filters.len();
    for conjunct in filter.conjuncts() {
        // A conjunct that may fail stays in the pipeline. If the source evaluated a part of the conjunct, the rows that
        // this part excludes would no longer cause the errors of the other parts.
        let support = if conjunct.may_fail() { Support::None } else { classify(&conjunct) };
        match support {
            Support::Exact => filters.push(conjunct),
            Support::Inexact => {
                filters.push(conjunct.clone());
                residual.push(conjunct);
            }
            Support::None => residual.push(conjunct),
        }
    }
    let changed = filters.len() > filter_count;
    if residual.is_empty() {
        plan.nodes.remove(0);
    } else {
        plan.nodes[0] = PlanNode::of_match(plan.nodes[0].index, Filter::all(&residual));
    }
    changed
}

/// Returns `Support::Exact` if the conjunct reads only fields of the row, and `Support::None` otherwise. A source in
/// memory can evaluate only conjuncts that read nothing but fields of the row.
fn plain(conjunct: &Filter) -> Support {
    if conjunct.is_plain() { Support::Exact } else { Support::None }
}

/// Returns `Support::Exact` if the conjunct restricts ids, types or projects to a set, and `Support::None` otherwise.
/// Folding from the log can skip only whole streams, and such a conjunct selects whole streams.
fn of_stream(conjunct: &Filter) -> Support {
    if StreamFilter::default().take_set(conjunct, "_id") { Support::Exact } else { Support::None }
}
