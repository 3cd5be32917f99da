//! `$sort` over columns, with an optional limit. Rows are built only for the result.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::filter::in_range;
use super::numbers;
use super::select::RowSelection;
use crate::model::value::Value;
use crate::pipeline::column::{CellKind, Cells, Column, Mask, SEGMENT, TextCode, can_keep};
use crate::pipeline::expression::filter::Comparison;
use crate::pipeline::language::ast::SortKey;
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::sort_key::{SortValue, direct};

/// A sort whose keys are paths that can have columns.
#[derive(Debug)]
pub struct Top {
    keys: Vec<(Arc<str>, bool)>,
    limit: Option<usize>,
}

impl Top {
    pub fn new(keys: &[SortKey], limit: Option<u64>) -> Option<Top> {
        let mut keys: Vec<_> = keys.iter().map(|key| (key.path.text().clone(), key.descending)).collect();
        if !keys.iter().any(|(path, _)| &**path == "_id") {
            keys.push(("_id".into(), false));
        }
        // No column of `_id` is needed, because the table provides the ids. Unless `_id` is the first key, ids are read
        // only for the few rows whose preceding keys are equal.
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        keys.iter().all(|(path, _)| can_keep(path)).then_some(Top { keys, limit })
    }

    /// Returns the paths for which columns are needed.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.keys.iter().map(|(path, _)| path).filter(|path| &***path != "_id")
    }

    /// Returns the indexes of the rows in sorted order, and the number of selected rows. Returns `None` if a column is
    /// missing or cannot provide the keys.
    pub fn run(&self, selection: &RowSelection, query: &Context, index: usize) -> Result<Option<(Vec<usize>, u64)>> {
        let mut columns = Vec::with_capacity(self.keys.len());
        for (path, descending) in &self.keys {
            let column = match &**path {
                "_id" => None,
                path => match selection.columns.column(path).filter(|column| column.is_clear()) {
                    Some(column) => Some(column),
                    None => return Ok(None),
                },
            };
            columns.push((column, *descending));
        }
        // If several keys are arrays, columns do not show which items belong together.
        if columns.iter().filter(|(column, _)| column.is_some_and(Column::may_hold_arrays)).count() > 1 {
            return Ok(None);
        }
        let sorting = ColumnOrder { columns, source: selection.columns };
        let limit = self.limit.unwrap_or(usize::MAX);
        sorting.run(selection, limit, query, index).map(Some)
    }
}

struct ColumnOrder<'a> {
    /// The column of each key (`None` for the id), and whether the order is descending.
    columns: Vec<(Option<&'a Column>, bool)>,
    source: &'a dyn Columns,
}

/// A row that is among the first rows in sorted order so far. Rows compare by the sort keys.
struct TopRow<'s> {
    sorting: &'s ColumnOrder<'s>,
    row_index: usize,
}

impl Ord for TopRow<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sorting.compare(self.row_index, other.row_index)
    }
}

impl PartialOrd for TopRow<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TopRow<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.row_index == other.row_index
    }
}

impl Eq for TopRow<'_> {}

impl ColumnOrder<'_> {
    /// Returns the indexes of the first `limit` rows in sorted order, and the number of selected rows.
    fn run(&self, selection: &RowSelection, limit: usize, query: &Context, index: usize) -> Result<(Vec<usize>, u64)> {
        let row_bytes = self.columns.len() * size_of::<SortValue>() + size_of::<TopRow>();
        let hold = || query.charge(row_bytes).map_err(|error| error.at_stage(index));
        let mut heap: BinaryHeap<TopRow> = BinaryHeap::new();
        let mut all = Vec::new();
        let mut selected = 0;
        let mut rows = Vec::new();
        for segment in self.best_first(selection, limit) {
            let mut mask = selection.mask(segment)?;
            selected += mask.count() as u64;
            if let Some(highest) = heap.peek().filter(|_| heap.len() >= limit) {
                self.narrow(segment, &mut mask, highest.row_index);
            }
            mask.write_rows(&mut rows);
            query.tick_many(rows.len())?;
            for row in &rows {
                let row_index = segment * SEGMENT + *row as usize;
                if limit == usize::MAX {
                    hold()?;
                    all.push(row_index);
                } else if heap.len() < limit {
                    hold()?;
                    heap.push(TopRow { sorting: self, row_index });
                } else if let Some(mut highest) = heap.peek_mut()
                    && self.compare(row_index, highest.row_index).is_lt()
                {
                    // A row that sorts earlier replaces the last of the kept rows.
                    highest.row_index = row_index;
                }
            }
        }
        if limit != usize::MAX {
            all = heap.into_iter().map(|entry| entry.row_index).collect();
        }
        all.sort_unstable_by(|a, b| self.compare(*a, *b));
        Ok((all, selected))
    }

    /// Compares two rows by the keys, and rows with equal keys by their indexes.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        for (column, descending) in &self.columns {
            let order = match column {
                Some(column) => compare_cells(column, a, b, *descending),
                None => self.source.id(a).cmp(&self.source.id(b)),
            };
            if order.is_ne() {
                return direct(order, *descending);
            }
        }
        a.cmp(&b)
    }

    /// Returns the segments in the order in which the sort reads them. If the sort has a limit and the first key has a
    /// column, segments of integers or dates are ordered by the cell that sorts first in each segment. With this order,
    /// most rows of later segments are excluded quickly.
    fn best_first(&self, selection: &RowSelection, limit: usize) -> Vec<usize> {
        let mut segments: Vec<usize> = (0..selection.segments()).collect();
        let Some(&(Some(column), descending)) = self.columns.first() else { return segments };
        if limit == usize::MAX {
            return segments;
        }
        let best = |segment: &usize| match column.segments().get(*segment).map(|segment| segment.cells()) {
            Some(Cells::Ints(cells) | Cells::Dates(cells)) if descending => cells.iter().max().map(|best| !*best),
            Some(Cells::Ints(cells) | Cells::Dates(cells)) => cells.iter().min().copied(),
            _ => None,
        };
        segments.sort_by_cached_key(best);
        segments
    }

    /// Removes from `mask` rows that sort after the row `highest`. Compares only the first sort key, so some of these
    /// rows may remain in `mask`.
    fn narrow(&self, segment: usize, mask: &mut Mask, highest: usize) {
        let Some(&(Some(column), descending)) = self.columns.first() else { return };
        let Some(segment) = column.segments().get(segment) else { return };
        let comparison = if descending { Comparison::Gte } else { Comparison::Lte };
        let fits = |order: Ordering| if descending { order.is_ge() } else { order.is_le() };
        let fitting = match (segment.cells(), key(column, highest, descending)) {
            (Cells::Ints(cells), Some(Value::Int(worst))) | (Cells::Dates(cells), Some(Value::Date(worst))) => {
                numbers::ints(comparison, &Value::Int(worst)).map(|range| in_range(cells, range, segment.span()))
            }
            (Cells::Numbers(cells), Some(worst)) => {
                Some(Mask::of(cells, |cell| fits(Value::Double(*cell).compare(&worst))))
            }
            (Cells::Texts(cells), Some(Value::String(worst))) => {
                let order =
                    |code: &TextCode| column.texts().text(*code).map_or(Ordering::Equal, |text| text.cmp(&worst));
                Some(Mask::of(cells, |code| fits(order(code))))
            }
            _ => None,
        };
        let Some(mut fitting) = fitting else { return };
        if !segment.is_plain() {
            fitting.or(&Mask::of(segment.kinds(), |kind| *kind != CellKind::Value));
        }
        mask.and(&fitting);
    }
}

/// Compares the sort keys of two cells in ascending order. `descending` only determines the sort key of an array, as in
/// [`key`].
fn compare_cells(column: &Column, a: usize, b: usize, descending: bool) -> Ordering {
    let segment = |row_index: usize| column.segments().get(row_index / SEGMENT).filter(|segment| segment.is_plain());
    if let (Some(first), Some(second)) = (segment(a), segment(b)) {
        let (a, b) = (a % SEGMENT, b % SEGMENT);
        match (first.cells(), second.cells()) {
            (Cells::Ints(first), Cells::Ints(second)) | (Cells::Dates(first), Cells::Dates(second)) => {
                return first[a].cmp(&second[b]);
            }
            (Cells::Texts(first), Cells::Texts(second)) => {
                return match (first[a], second[b]) {
                    (a, b) if a == b => Ordering::Equal,
                    (a, b) => column.texts().text(a).cmp(&column.texts().text(b)),
                };
            }
            _ => {}
        }
    }
    key(column, a, descending).cmp(&key(column, b, descending))
}

/// Returns the sort key of a cell. The sort key of an array is its least item, or its greatest item if `descending` is
/// `true`. Returns `None` for an empty array.
fn key(column: &Column, row_index: usize, descending: bool) -> Option<Value> {
    match column.value(row_index) {
        None => Some(Value::Null),
        Some(Value::Array(items)) => match descending {
            true => items.iter().max().cloned(),
            false => items.iter().min().cloned(),
        },
        value => value,
    }
}
