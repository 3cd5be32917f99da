//! The execution of a pipeline's first steps over columns, before rows are built.
//!
//! Each step processes whole segments: a test of a filter returns a mask, and grouping uses the codes of strings. Rows
//! are built only for the result. The result is the same as without columns: if a column cannot provide a value, the
//! row is read instead.

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

/// The part of a program that runs over columns.
#[derive(Debug)]
pub struct Vectorized {
    pub selects: Selects,
    pub tail: Tail,
    /// The number of steps that the tail replaces.
    pub covers: usize,
}

/// The last operation over columns.
#[derive(Debug)]
pub enum Tail {
    /// Builds rows from the selection.
    Rows,
    Count(Arc<str>),
    Top(Top),
    Group(Group),
}

impl Vectorized {
    /// Returns the paths for which columns are needed.
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
