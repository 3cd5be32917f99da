//! Snapshots of the resident states: all aggregates at one position, and the columns that were requested with them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::columns::BaseColumns;
use super::rows::{CHUNK_SIZE, Chunk};
use crate::model::aggregate::Aggregate;
use crate::pipeline::column::Column;

/// All aggregates as they were at one position.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) chunks: Vec<Arc<Chunk>>,
    pub(super) position: u64,
    pub(super) columns: Option<Arc<RequestedColumns>>,
}

/// The columns that were requested together with a snapshot.
pub struct RequestedColumns {
    pub base: BaseColumns,
    pub by_path: FxHashMap<Arc<str>, Column>,
}

impl Snapshot {
    /// Iterates over all aggregates, including deleted aggregates, in the order of their first events.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Aggregate>> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Returns the row of the first aggregate whose first event is at a position or later. If there is no such
    /// aggregate, returns the number of aggregates.
    pub fn first_row_at(&self, position: u64) -> usize {
        let is_before = |aggregate: &Arc<Aggregate>| aggregate.first_position < position;
        let chunks = self.chunks.partition_point(|chunk| chunk.first().is_some_and(is_before));
        let Some(last) = chunks.checked_sub(1) else { return 0 };
        last * CHUNK_SIZE + self.chunks.get(last).map_or(0, |chunk| chunk.partition_point(is_before))
    }

    /// Returns the position of the last folded event.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of aggregates.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK_SIZE + last.len())
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the aggregate at a row. The rows have the order of [`iter`](Snapshot::iter).
    pub fn at(&self, row: usize) -> Option<&Arc<Aggregate>> {
        self.chunks.get(row / CHUNK_SIZE)?.get(row % CHUNK_SIZE)
    }

    /// Returns the columns that every scan reads, if the snapshot has columns.
    pub fn base(&self) -> Option<&BaseColumns> {
        self.columns.as_ref().map(|columns| &columns.base)
    }

    /// Returns the column of a path, or `None` if the snapshot has no such column.
    pub fn column(&self, path: &str) -> Option<&Column> {
        let columns = self.columns.as_ref()?;
        columns.by_path.get(path).or_else(|| columns.base.column(path))
    }
}
