//! Work that is done over columns before there are rows.
//!
//! Whole segments at a time: a test of a filter makes a mask, grouping works on the numbers that stand for texts, and
//! rows are made only of what is left at the end. The rows are the same as without columns; where a column cannot tell
//! what a row can, the rows are asked.

mod accumulate;
mod filter;
mod group;
mod input;
mod keys;
mod numbers;
mod probe;
mod select;
mod source;
mod top;
mod unwind;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use group::{Group, Preceding};
pub use probe::Probe;
pub use select::{Selection, Selects};
pub use top::Top;

/// What is done over columns before there are rows.
#[derive(Debug)]
pub struct Vectorized {
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

impl Vectorized {
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
