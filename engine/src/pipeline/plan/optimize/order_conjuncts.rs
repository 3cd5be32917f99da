//! Sorts the conjuncts of a `$match`: cheap conjuncts first, and conjuncts that may fail last. The same rows then cause
//! errors, regardless of whether the source or the pipeline evaluates the conditions.

use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{PlanNode, PlanStep};

pub fn apply(nodes: &mut Vec<PlanNode>) -> bool {
    let mut changed = false;
    for node in nodes {
        let PlanStep::Match(filter) = &node.step else { continue };
        let mut conjuncts = filter.conjuncts();
        if conjuncts.is_sorted_by_key(Filter::rank) {
            continue;
        }
        conjuncts.sort_by_key(Filter::rank);
        *node = PlanNode::of_match(node.index, Filter::all(&conjuncts));
        changed = true;
    }
    changed
}
