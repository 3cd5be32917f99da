//! Merges adjacent `$match` steps.

use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{PlanNode, PlanStep};

pub fn apply(nodes: &mut Vec<PlanNode>) -> bool {
    let before = nodes.len();
    nodes.dedup_by(|next, first| match (&mut first.step, &next.step) {
        (PlanStep::Match(filter), PlanStep::Match(more)) => {
            *filter = Filter::all([&*filter, more]);
            first.text = crate::model::value::Object::from_iter([("$match", filter.spec().clone())]).into();
            true
        }
        _ => false,
    });
    nodes.len() != before
}
