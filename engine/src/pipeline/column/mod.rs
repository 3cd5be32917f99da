//! Columns of values, and pipelines run over them instead of over rows.
//!
//! A source that keeps columns offers them through [`Columns`]; who has none is read row by row. What is done over
//! columns are whole segments at a time: a test of a filter makes a [`Mask`], grouping works on the numbers that stand
//! for texts, and rows are made only of what is left at the end. The rows are the same either way; where a column
//! cannot tell what a row can, the rows are asked.

mod accumulate;
mod dictionary;
mod filter;
mod group;
mod index;
mod input;
mod keys;
mod lists;
mod mask;
mod numbers;
mod plan;
mod probe;
mod segment;
mod select;
mod source;
mod top;
mod unwind;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use dictionary::Dictionary;
pub use index::Index;
pub use mask::Mask;
pub use plan::{Tail, Vectored};
pub use probe::Probe;
pub use segment::{Cell, Cells, Segment};
pub use select::Selection;

use super::error::Result;
use crate::model::value::Value;

/// Rows in a segment: few enough to copy in microseconds, enough to make loops worth their beginning.
pub const SEGMENT: usize = 4_096;
/// Paths that one pipeline may want columns of.
pub const MOST_PATHS: usize = 16;

/// The values that rows have at one path, in the order of the rows.
#[derive(Clone, Default)]
pub struct Column {
    segments: Vec<Arc<Segment>>,
    texts: Dictionary,
}

/// Rows of a table, by columns.
pub trait Columns {
    /// How many rows there are, those left out by [`restrict`](Columns::restrict) included.
    fn count(&self) -> usize;

    /// The column of a path, if it is kept.
    fn column(&self, path: &str) -> Option<&Column>;

    /// Takes those rows of a segment out of a mask that the scan does not ask for.
    fn restrict(&self, segment: usize, mask: &mut Mask) -> Result<()>;

    /// A row's `_id`.
    fn id(&self, place: usize) -> Option<Arc<str>>;

    /// A row with the fields that the scan asks for.
    fn row(&self, place: usize) -> Option<Value>;

    /// A row with these fields, or all of its fields.
    fn part(&self, place: usize, fields: Option<&BTreeSet<Arc<str>>>) -> Option<Value>;
}

impl Column {
    /// Writes a row's cell. Rows come in order; one that is there already is replaced.
    pub fn set(&mut self, place: usize, cell: Cell) {
        let (segment, row) = (place / SEGMENT, place % SEGMENT);
        while self.segments.len() <= segment {
            // The first may be the only one, of a few rows.
            let is_first = self.segments.is_empty();
            self.segments.push(Arc::new(if is_first { Segment::default() } else { Segment::with_room() }));
        }
        let segment = &mut self.segments[segment];
        // A segment that a reader holds is copied only where something changes.
        if !segment.holds(row, cell, &self.texts) {
            Arc::make_mut(segment).set(row, cell, &mut self.texts);
        }
    }

    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    pub fn texts(&self) -> &Dictionary {
        &self.texts
    }

    /// Whether every cell says all that its row would.
    pub fn is_clear(&self) -> bool {
        self.segments.iter().all(|segment| segment.opaque() == 0)
    }

    /// Whether some cell may be an array.
    pub fn may_hold_arrays(&self) -> bool {
        self.segments.iter().any(|segment| matches!(segment.cells(), Cells::Lists(_) | Cells::Mixed(_)))
    }

    /// The value in a cell.
    pub fn value(&self, place: usize) -> Option<Value> {
        self.segments.get(place / SEGMENT)?.value(place % SEGMENT, &self.texts)
    }
}

/// Whether a column can be kept of a path: it names a field of the state, or what describes the aggregate.
pub fn can_keep(path: &str) -> bool {
    const NONE_OF: [&str; 4] = ["", "_traits", "_facts", "_events"];
    path.len() <= 256 && !NONE_OF.contains(&path.split('.').next().unwrap_or_default())
}
