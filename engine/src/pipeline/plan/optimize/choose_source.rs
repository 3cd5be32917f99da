//! Reads stored states instead of folding the log, if both give the same result.

use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{LogicalPlan, PlanSource, States};
use crate::pipeline::plan::options::{SourceChoice, Surroundings};
use crate::pipeline::source::scan;
use crate::pipeline::source::scan::AsOf;
use crate::pipeline::source::streams::is_of_stream;

pub fn apply(plan: &mut LogicalPlan, around: &Surroundings) -> bool {
    let PlanSource::States(states) = &mut plan.source else { return false };
    let chosen = match around.options.source {
        SourceChoice::Auto | SourceChoice::Resident => scan::StateSource::Resident,
        SourceChoice::Nodes => scan::StateSource::Nodes,
        SourceChoice::Log => scan::StateSource::Log,
    };
    if !is_kept(states) || states.choice == chosen {
        return false;
    }
    states.choice = chosen;
    true
}

/// Returns whether the requested states equal the stored states. Stored states are current, are folded from all events
/// of their streams, and do not contain the field `_events`.
fn is_kept(states: &States) -> bool {
    let mut event_filters = states.event_filters.iter().flat_map(Filter::conjuncts);
    states.fold.as_of == AsOf::Now && !states.fold.events && event_filters.all(|conjunct| is_of_stream(&conjunct))
}
