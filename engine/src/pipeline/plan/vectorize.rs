//! What of a plan columns can do: the scan's filter, and the steps right above it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::group::Group;
use super::select::Selects;
use super::top::Top;
use crate::pipeline::filter::Filter;
use crate::pipeline::plan::{Node, Step};

/// What is done over columns before there are rows.
#[derive(Debug)]
pub struct Vectored {
    pub selects: Selects,
    pub tail: Tail,
    /// Steps that the tail stands for.
    pub covers: usize,
}

/// The last thing that is done over columns.
#[derive(Debug)]
pub enum Tail {
    /// Rows are made of what is selected.
    Rows,
    Count(Arc<str>),
    Top(Top),
    Group(Group),
}

impl Vectored {
    /// What columns do for a scan with this filter and limit, under these steps.
    pub fn new(filter: Option<&Filter>, limit: Option<u64>, nodes: &[Node]) -> Vectored {
        let (tail, covers) = if limit.is_none() { tail(nodes) } else { (Tail::Rows, 0) };
        Vectored { selects: Selects::new(filter, limit), tail, covers }
    }

    /// The paths that columns are wanted of.
    pub fn paths(&self) -> BTreeSet<Arc<str>> {
        let mut paths = self.selects.paths();
        match &self.tail {
            Tail::Rows | Tail::Count(_) => {}
            Tail::Top(top) => paths.extend(top.paths().cloned()),
            Tail::Group(group) => group.visit_paths(&mut |path| {
                paths.insert(path.clone());
            }),
        }
        paths
    }
}

fn tail(nodes: &[Node]) -> (Tail, usize) {
    let mut steps = nodes.iter().map(|node| &node.step);
    let (first, second) = (steps.next(), steps.next());
    let (tail, covers) = match (first, second) {
        (Some(Step::Count(name)), _) => (Some(Tail::Count(name.clone())), 1),
        (Some(Step::Sort { keys, limit }), _) => (Top::new(keys, *limit).map(Tail::Top), 1),
        (Some(Step::Group(group)), _) => (Group::new(None, group).map(Tail::Group), 1),
        (before, Some(Step::Group(group))) => (Group::new(before, group).map(Tail::Group), 2),
        _ => (None, 0),
    };
    tail.map_or((Tail::Rows, 0), |tail| (tail, covers))
}
