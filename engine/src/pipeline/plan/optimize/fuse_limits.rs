//! Limits a sort to the rows that the following `$limit` needs, and merges adjacent limits and adjacent skips.

use crate::model::value::{Object, Value};
use crate::pipeline::plan::logical::{PlanNode, PlanStep};

pub fn apply(nodes: &mut Vec<PlanNode>) -> bool {
    let before = nodes.len();
    nodes.dedup_by(|next, first| match (&mut first.step, &next.step) {
        (PlanStep::Limit(limit), PlanStep::Limit(other)) => {
            *limit = (*limit).min(*other);
            first.text = text("$limit", *limit);
            true
        }
        (PlanStep::Skip(skip), PlanStep::Skip(other)) => {
            *skip = skip.saturating_add(*other);
            first.text = text("$skip", *skip);
            true
        }
        (PlanStep::Sort { limit, .. }, PlanStep::Limit(rows)) => {
            *limit = Some(limit.map_or(*rows, |limit| limit.min(*rows)));
            true
        }
        _ => false,
    });
    let mut changed = nodes.len() != before;
    for at in 2..nodes.len() {
        let [sort, skip, rows] = &mut nodes[at - 2..=at] else { continue };
        if let (PlanStep::Sort { limit: limit @ None, .. }, PlanStep::Skip(skip), PlanStep::Limit(rows)) =
            (&mut sort.step, &skip.step, &rows.step)
        {
            *limit = Some(skip.saturating_add(*rows));
            changed = true;
        }
    }
    changed
}

fn text(stage: &str, number: u64) -> Value {
    Object::from_iter([(stage, i64::try_from(number).unwrap_or(i64::MAX))]).into()
}
