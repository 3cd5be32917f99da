//! Moves conditions of a `$match` before sorts, projections, `$setWindowFields` and `$densify`, if the move does not
//! change the result.

use std::sync::Arc;

use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::filter::{Filter, FilterNode, Test};
use crate::pipeline::language::ast::Range;
use crate::pipeline::plan::logical::{PlanNode, PlanStep};
use crate::pipeline::value::path::FieldPath;

/// The number of moves after which no filter in a list of steps moves further. Each exchange of a filter with the step
/// before the filter counts as one move for each conjunct of the filter, even if only some conjuncts move. Moving a
/// huge filter across a thousand stages would cost more time than the moves save.
const MAX_MOVES: usize = 20_000;

pub fn apply(nodes: &mut Vec<PlanNode>) -> bool {
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
fn conjuncts(node: &PlanNode) -> usize {
    match &node.step {
        PlanStep::Match(filter) => filter.conjuncts().len().max(1),
        _ => 0,
    }
}

/// Moves the filter at index `at` one step towards the source. If only some conjuncts may move, moves only these
/// conjuncts. Returns whether a conjunct moved.
fn step_forward(nodes: &mut Vec<PlanNode>, at: usize) -> bool {
    let (before, from) = nodes.split_at_mut(at);
    let (Some(previous), Some(PlanNode { index, step: PlanStep::Match(filter), .. })) = (before.last(), from.first())
    else {
        return false;
    };
    let index = *index;
    let (moving, staying): (Vec<Filter>, Vec<Filter>) = match &previous.step {
        // A filter moves before a sort without a limit, because sorting fewer rows is faster. A filter stays after a
        // sort with a limit: before the sort, the filter would change which rows the limit keeps.
        PlanStep::Sort { limit: None, .. } => return swap(nodes, at),
        PlanStep::Project(projection) => filter.conjuncts().into_iter().partition(|conjunct| {
            let mut alone = true;
            let plain = conjunct.visit_paths(&mut |path| alone &= projection.preserves(path));
            plain && alone
        }),
        // Rows of other partitions do not influence the rows of a partition.
        PlanStep::Windows(windows) => {
            let key = windows.partition.as_ref().and_then(Expr::plain_path).map(|path| path.segments().join("."));
            let Some(key) = key else { return false };
            filter
                .conjuncts()
                .into_iter()
                .partition(|conjunct| windows.write.preserves(&key) && selects_partitions(conjunct, &key))
        }
        PlanStep::Densify(densify) => {
            // The ends of a full range depend on the rows of all partitions. For a range between two values, the stage
            // adds a whole series to an empty input, so a filter must not remove all input rows.
            if !matches!(densify.range, Range::Partition) {
                return false;
            }
            // A condition on a longer path looks into arrays. Rows of one partition may contain different arrays, so
            // the condition may hold for only some of the rows.
            let key = |path: &FieldPath| match path.segments() {
                [name] => Some(name.clone()),
                _ => None,
            };
            let keys: Vec<Arc<str>> = densify.partition.iter().filter_map(key).collect();
            filter
                .conjuncts()
                .into_iter()
                .partition(|conjunct| keys.iter().any(|key| selects_partitions(conjunct, key)))
        }
        PlanStep::Match(_)
        | PlanStep::Group(_)
        | PlanStep::Sort { .. }
        | PlanStep::Limit(_)
        | PlanStep::Skip(_)
        | PlanStep::Count(_)
        | PlanStep::Unwind(_)
        | PlanStep::ReplaceRoot(_)
        | PlanStep::Facet(_)
        | PlanStep::Bucket(_)
        | PlanStep::BucketAuto(_)
        | PlanStep::Lookup(_)
        | PlanStep::Follow(_)
        | PlanStep::Union(_)
        | PlanStep::Sample(_)
        | PlanStep::Redact(_)
        | PlanStep::GraphLookup(_) => return false,
    };
    if moving.is_empty() {
        return false;
    }
    if staying.is_empty() {
        return swap(nodes, at);
    }
    nodes[at] = PlanNode::of_match(index, Filter::all(&staying));
    nodes.insert(at - 1, PlanNode::of_match(index, Filter::all(&moving)));
    true
}

/// Returns whether a condition reads only the field at `key`, and holds either for all rows of a partition or for none.
/// Recognizes only comparisons, `$in`, and conjunctions of these tests, and returns `false` for all other conditions.
/// Returns `false` for a comparison with null, because null and a missing field belong to the same partition. Returns
/// `false` for a test of types, because equal numbers of different types belong to the same partition.
fn selects_partitions(conjunct: &Filter, key: &str) -> bool {
    let is_of_value = |test: &Test| match test {
        Test::Compare(_, value) => !value.is_null(),
        Test::In(members) => members.values().all(|value| !value.is_null()),
        _ => false,
    };
    match conjunct.node() {
        FilterNode::And(nodes) => match nodes.as_slice() {
            [FilterNode::Field(path, test)] => &**path.text() == key && is_of_value(test),
            [FilterNode::And(nodes)] => {
                let is_of_key = |node: &FilterNode| match node {
                    FilterNode::Field(path, test) => &**path.text() == key && is_of_value(test),
                    _ => false,
                };
                !nodes.is_empty() && nodes.iter().all(is_of_key)
            }
            _ => false,
        },
        _ => false,
    }
}

fn swap(nodes: &mut [PlanNode], at: usize) -> bool {
    nodes.swap(at - 1, at);
    true
}
