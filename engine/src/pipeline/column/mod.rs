//! The values that rows have at one path, side by side and typed, and sets of rows: data, and nothing of what is asked
//! of it.
//!
//! A segment is shared with whoever reads it, and copied when it is written. Texts stand in a dictionary per column, so
//! that rows are told apart by numbers.

mod dictionary;
mod index;
mod lists;
mod mask;
mod segment;

use std::sync::Arc;

pub use dictionary::Dictionary;
pub use index::Index;
pub use lists::Lists;
pub use mask::Mask;
pub use segment::{Cell, Cells, Kind, SEGMENT, Segment};

use crate::model::value::Value;

/// Paths that one pipeline may want columns of.
pub const MOST_PATHS: usize = 16;

/// The values that rows have at one path, in the order of the rows.
#[derive(Clone, Default)]
pub struct Column {
    segments: Vec<Arc<Segment>>,
    texts: Dictionary,
}

impl Column {
    /// Bytes that the column takes, roughly. Texts are the states' own where these hold them.
    pub fn size_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.size_bytes()).sum::<usize>() + self.texts.size_bytes()
    }

    /// Writes a row's cell. Rows come in order; one that is there already is replaced.
    pub fn set(&mut self, row_index: usize, cell: Cell) {
        let (segment, row) = (row_index / SEGMENT, row_index % SEGMENT);
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
    pub fn value(&self, row_index: usize) -> Option<Value> {
        self.segments.get(row_index / SEGMENT)?.value(row_index % SEGMENT, &self.texts)
    }
}

/// Whether a column can be kept of a path: it names a field of the state, or what describes the aggregate.
pub fn can_keep(path: &str) -> bool {
    const NONE_OF: [&str; 4] = ["", "_traits", "_facts", "_events"];
    path.len() <= 256 && !NONE_OF.contains(&path.split('.').next().unwrap_or_default())
}
