//! Selects the parts of a plan that can run over columns: the filter of the scan, and the steps directly after the
//! scan.

use super::logical::{Node, Step};
use crate::pipeline::expression::filter::Filter;
use crate::pipeline::run::vectorized::{Group, Preceding, Selects, Tail, Top, Vectorized};

/// Returns the part of a plan that can run over columns: the filter and the limit of the scan, and the first steps in
/// `nodes`.
pub fn vectorize(filter: Option<&Filter>, limit: Option<u64>, nodes: &[Node]) -> Vectorized {
    let (tail, covers) = if limit.is_none() { tail(nodes) } else { (Tail::Rows, 0) };
    Vectorized { selects: Selects::new(filter, limit), tail, covers }
}

fn tail(nodes: &[Node]) -> (Tail, usize) {
    let mut steps = nodes.iter().map(|node| &node.step);
    let (first, second) = (steps.next(), steps.next());
    let (tail, covers) = match (first, second) {
        (Some(Step::Count(name)), _) => (Some(Tail::Count(name.clone())), 1),
        (Some(Step::Sort { keys, limit }), _) => (Top::new(keys, *limit).map(Tail::Top), 1),
        (Some(Step::Group(group)), _) => (Group::new(Preceding::Nothing, group).map(Tail::Group), 1),
        (Some(Step::Unwind(unwind)), Some(Step::Group(group))) => {
            (Group::new(Preceding::Unwind(unwind), group).map(Tail::Group), 2)
        }
        (Some(Step::Project(projection)), Some(Step::Group(group))) => {
            (Group::new(Preceding::Project(projection), group).map(Tail::Group), 2)
        }
        _ => (None, 0),
    };
    tail.map_or((Tail::Rows, 0), |tail| (tail, covers))
}
