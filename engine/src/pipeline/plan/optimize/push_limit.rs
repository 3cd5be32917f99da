//! Moves a `$limit` that directly follows the source into the source, so that the source stops early.

use super::surroundings::Surroundings;
use crate::pipeline::plan::logical::{Plan, Source, Step};

pub fn apply(plan: &mut Plan, around: &Surroundings) -> bool {
    let Some(Step::Limit(rows)) = plan.nodes.first().map(|node| &node.step) else { return false };
    // A join selects rows before the `$limit` counts them, so the limit cannot move.
    if around.join.is_some() {
        return false;
    }
    match &mut plan.source {
        Source::Documents(_) => return false,
        Source::Events(events) => events.limit = Some(*rows),
        Source::States(states) => states.limit = Some(*rows),
    }
    true
}
