//! The execution of a pipeline's first steps over columns, before rows are built.
//!
//! Each step processes whole segments: a test of a filter returns a mask, and grouping uses the codes of strings. Rows
//! are built only for the result, and for conditions and expressions that cannot be evaluated on cells. The result is
//! the same as without columns: if a column cannot provide a value, the row is read instead.

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
mod windows;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use group::{ColumnGroup, PrecedingStep};
pub use probe::RowProbe;
pub use select::{RowSelection, Selects};
pub use top::Top;
pub use windows::ColumnWindows;

/// The part of a program that runs over columns.
#[derive(Debug)]
pub struct ColumnProgram {
    pub selects: Selects,
    pub tail: ProgramTail,
    /// The number of steps that the tail replaces.
    pub covers: usize,
}

/// The last operation over columns.
#[derive(Debug)]
pub enum ProgramTail {
    /// Builds rows from the selection.
    Rows,
    Count(Arc<str>),
    Top(Top),
    Group(ColumnGroup),
    Windows(ColumnWindows),
}

impl ColumnProgram {
    /// Returns the paths for which columns are needed.
    pub fn paths(&self) -> BTreeSet<Arc<str>> {
        let mut paths = self.selects.paths();
        match &self.tail {
            ProgramTail::Rows | ProgramTail::Count(_) => {}
            ProgramTail::Top(top) => paths.extend(top.paths().cloned()),
            ProgramTail::Group(group) => group.visit_paths(&mut |path| {
                paths.insert(path.clone());
            }),
            ProgramTail::Windows(windows) => windows.visit_paths(&mut |path| {
                paths.insert(path.clone());
            }),
        }
        paths
    }
}
