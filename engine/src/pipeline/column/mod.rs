//! Columns and masks. A column stores the values of all rows at one path, in vectors of one type where possible. A mask
//! is a set of rows.
//!
//! The module stores data and does not evaluate queries. Readers share a segment, and a writer copies a shared segment
//! before a change. Each column has a dictionary of its strings, so that strings are compared by their codes.
//! Segments without a specific type store all values, including strings, outside the dictionary.

mod cells;
mod dictionary;
mod index;
mod lists;
mod mask;
mod segment;

use std::sync::Arc;

pub use cells::{Cell, CellKind, Cells};
pub use dictionary::{Dictionary, TextCode};
pub use index::NumberIndex;
pub use lists::Lists;
pub use mask::Mask;
pub use segment::{SEGMENT, Segment};

use crate::model::value::Value;

/// The maximum number of paths for which one pipeline may request columns.
pub const MAX_PATHS: usize = 16;

/// The values of rows at one path, in the order of the rows.
#[derive(Clone, Default)]
pub struct Column {
    segments: Vec<Arc<Segment>>,
    texts: Dictionary,
}

impl Column {
    /// Returns the approximate size of the column in bytes. The size does not include the strings of the dictionary,
    /// because the column shares these strings with the states.
    pub fn size_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.size_bytes()).sum::<usize>() + self.texts.size_bytes()
    }

    /// Sets the cell of a row. Replaces the cell if the row exists. New rows must be added in order.
    pub fn set(&mut self, row_index: usize, cell: Cell) {
        let (segment, row) = (row_index / SEGMENT, row_index % SEGMENT);
        while self.segments.len() <= segment {
            // The first segment starts small, because the column may need no other segment and have few rows.
            let is_first = self.segments.is_empty();
            self.segments.push(Arc::new(if is_first { Segment::default() } else { Segment::preallocated() }));
        }
        let segment = &mut self.segments[segment];
        // `Arc::make_mut` copies a segment that a reader shares, so it is called only if the cell changes.
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

    /// Returns whether the column provides the values of all rows. A column with opaque cells does not provide the
    /// values of these cells.
    pub fn is_clear(&self) -> bool {
        self.segments.iter().all(|segment| segment.opaque() == 0)
    }

    /// Returns whether any cell may be an array.
    pub fn may_hold_arrays(&self) -> bool {
        self.segments.iter().any(|segment| matches!(segment.cells(), Cells::Lists(_) | Cells::Mixed(_)))
    }

    /// Returns the value of a cell. Returns `None` if the cell is missing or opaque, or does not exist.
    pub fn value(&self, row_index: usize) -> Option<Value> {
        self.segments.get(row_index / SEGMENT)?.value(row_index % SEGMENT, &self.texts)
    }
}

/// Returns whether a column can be kept for a path. The path must have 1 to 256 bytes, and must not lead into the
/// traits, the facts or the events of the aggregate.
pub fn can_keep(path: &str) -> bool {
    const NONE_OF: [&str; 4] = ["", "_traits", "_facts", "_events"];
    path.len() <= 256 && !NONE_OF.contains(&path.split('.').next().unwrap_or_default())
}
