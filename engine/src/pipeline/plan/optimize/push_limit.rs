//! Copies a `$limit` that directly follows the source into the source, so that the source stops early. The `$limit`
//! also stays in the plan.

use crate::pipeline::plan::logical::{LogicalPlan, PlanSource, PlanStep};
use crate::pipeline::plan::options::Surroundings;

pub fn apply(plan: &mut LogicalPlan, around: &Surroundings) -> bool {
    let Some(PlanStep::Limit(rows)) = plan.nodes.first().map(|node| &node.step) else { return false };
    // A join selects rows before the `$limit` counts them, so the source must not apply the limit.
    if around.join.is_some() {
        return false;
    }
    match &mut plan.source {
        PlanSource::Documents(_) => return false,
        PlanSource::Events(events) => events.limit = Some(*rows),
        PlanSource::States(states) => states.limit = Some(*rows),
    }
    true
}
