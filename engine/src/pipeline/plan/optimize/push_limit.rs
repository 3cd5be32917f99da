//! Pushes a `$limit` directly after the source into the source, which then stops early.

use super::surroundings::Surroundings;
use crate::pipeline::plan::logical::{Plan, Source, Step};

pub fn apply(plan: &mut Plan, around: &Surroundings) -> bool {
    let Some(Step::Limit(rows)) = plan.nodes.first().map(|node| &node.step) else { return false };
    // A join selects rows before the limit counts them.
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
