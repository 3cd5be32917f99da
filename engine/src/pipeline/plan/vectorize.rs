//! Selects the parts of a plan that can run over columns: the filter of the scan, and the steps directly after the
//! scan.

use super::logical::{PlanNode, PlanStep};
use super::optimize::prune_fields;
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::run::vectorized::{
    ColumnGroup, ColumnProgram, ColumnWindows, PrecedingStep, ProgramTail, Selects, Top,
};

/// Returns the part of a plan that can run over columns: the filter and the limit of the scan, and the first steps in
/// `nodes`. With `shows_rows`, the steps return whole rows.
pub fn vectorize(filter: Option<&Filter>, limit: Option<u64>, nodes: &[PlanNode], shows_rows: bool) -> ColumnProgram {
    let (tail, covers) = if limit.is_none() { tail(nodes, shows_rows) } else { (ProgramTail::Rows, 0) };
    ColumnProgram { selects: Selects::new(filter, limit), tail, covers }
}

fn tail(nodes: &[PlanNode], shows_rows: bool) -> (ProgramTail, usize) {
    let mut steps = nodes.iter().map(|node| &node.step);
    let (first, second) = (steps.next(), steps.next());
    let written = |nodes: &[PlanNode]| prune_fields::of_steps(nodes).filter(|_| !shows_rows);
    let (tail, covers) = match (first, second) {
        (Some(PlanStep::Count(name)), _) => (Some(ProgramTail::Count(name.clone())), 1),
        (Some(PlanStep::Sort { keys, limit }), _) => (Top::new(keys, *limit).map(ProgramTail::Top), 1),
        (Some(PlanStep::Group(group)), _) => {
            (ColumnGroup::new(PrecedingStep::Nothing, group).map(ProgramTail::Group), 1)
        }
        (Some(PlanStep::Unwind(unwind)), Some(PlanStep::Group(group))) => {
            (ColumnGroup::new(PrecedingStep::Unwind(unwind), group).map(ProgramTail::Group), 2)
        }
        (Some(PlanStep::Project(projection)), Some(PlanStep::Group(group))) => {
            (ColumnGroup::new(PrecedingStep::Project(projection), group).map(ProgramTail::Group), 2)
        }
        (Some(PlanStep::Windows(windows)), _) => {
            (ColumnWindows::new(None, windows, written(&nodes[1..])).map(ProgramTail::Windows), 1)
        }
        (Some(PlanStep::Project(projection)), Some(PlanStep::Windows(windows))) => {
            (ColumnWindows::new(Some(projection), windows, written(&nodes[2..])).map(ProgramTail::Windows), 2)
        }
        _ => (None, 0),
    };
    tail.map_or((ProgramTail::Rows, 0), |tail| (tail, covers))
}
