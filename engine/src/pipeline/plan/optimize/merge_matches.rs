//! Merges adjacent `$match` steps.

use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{PlanNode, PlanStep};

pub fn apply(nodes: &mut Vec<PlanNode>) -> bool {
    let before = nodes.len();
    nodes.dedup_by(|next, first| match (&first.step, &next.step) {
        (PlanStep::Match(filter), PlanStep::Match(more)) => {
            *first = PlanNode::of_match(first.index, Filter::all([filter, more]));
            true
        }
        _ => false,
    });
    nodes.len() != before
}
