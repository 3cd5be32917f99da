//! Merges adjacent `$match` steps.

use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{Node, Step};

pub fn apply(nodes: &mut Vec<Node>) -> bool {
    let before = nodes.len();
    nodes.dedup_by(|next, first| match (&mut first.step, &next.step) {
        (Step::Match(filter), Step::Match(more)) => {
            *filter = Filter::all([&*filter, more]);
            first.text = crate::model::value::Object::from_iter([("$match", filter.spec().clone())]).into();
            true
        }
        _ => false,
    });
    nodes.len() != before
}
