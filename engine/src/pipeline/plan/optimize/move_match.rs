//! Moves a `$match` before sorts, and before projections that do not change the fields that the `$match` reads.

use crate::model::value::Object;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::plan::logical::{Node, Step};

/// The maximum number of moves in a plan, where a move takes one conjunct across one step. Moving a huge filter across
/// a thousand stages would cost more than the moves save.
const MAX_MOVES: usize = 20_000;

pub fn apply(nodes: &mut Vec<Node>) -> bool {
    let mut moves = 0;
    let mut at = 1;
    while at < nodes.len() {
        let mut here = at;
        while here > 0 && moves < MAX_MOVES {
            let looked_at = conjuncts(&nodes[here]);
            if !step_forward(nodes, here) {
                break;
            }
            moves += looked_at;
            here -= 1;
        }
        at += 1;
    }
    moves > 0
}

/// Returns the number of conjuncts of a `$match` step, at least 1. Returns 0 for other steps.
fn conjuncts(node: &Node) -> usize {
    match &node.step {
        Step::Match(filter) => filter.conjuncts().len().max(1),
        _ => 0,
    }
}

/// Moves the filter at index `at` one step towards the source. If only some conjuncts may move, moves only those.
fn step_forward(nodes: &mut Vec<Node>, at: usize) -> bool {
    let (before, from) = nodes.split_at_mut(at);
    let (Some(previous), Some(Node { index, step: Step::Match(filter), .. })) = (before.last(), from.first()) else {
        return false;
    };
    let index = *index;
    let (moving, staying): (Vec<Filter>, Vec<Filter>) = match &previous.step {
        // A filter moves before a sort without a limit, because sorting fewer rows is faster. A filter stays after a
        // sort with a limit: before the sort, the filter would change which rows the limit keeps.
        Step::Sort { limit: None, .. } => return swap(nodes, at),
        Step::Project(projection) => filter.conjuncts().into_iter().partition(|conjunct| {
            let mut alone = true;
            let plain = conjunct.visit_paths(&mut |path| alone &= projection.leaves_alone(path));
            plain && alone
        }),
        Step::Match(_)
        | Step::Group(_)
        | Step::Sort { .. }
        | Step::Limit(_)
        | Step::Skip(_)
        | Step::Count(_)
        | Step::Unwind(_)
        | Step::ReplaceRoot(_)
        | Step::Facet(_)
        | Step::Bucket(_)
        | Step::BucketAuto(_)
        | Step::Lookup(_)
        | Step::Follow(_)
        | Step::Union(_)
        | Step::Sample(_)
        | Step::Redact(_) => return false,
    };
    if moving.is_empty() {
        return false;
    }
    if staying.is_empty() {
        return swap(nodes, at);
    }
    nodes[at] = node(index, &staying);
    nodes.insert(at - 1, node(index, &moving));
    true
}

fn swap(nodes: &mut [Node], at: usize) -> bool {
    nodes.swap(at - 1, at);
    true
}

fn node(index: usize, conjuncts: &[Filter]) -> Node {
    let filter = Filter::all(conjuncts);
    let text = Object::from_iter([("$match", filter.spec().clone())]).into();
    Node { index, text, step: Step::Match(filter) }
}
