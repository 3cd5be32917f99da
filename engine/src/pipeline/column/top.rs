//! `$sort` over columns, with the limit that it was told: rows are made of what is kept.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::mask::Mask;
use super::segment::{Cells, Kind, Segment};
use super::select::Selection;
use super::{Column, Columns, SEGMENT, can_keep, numbers};
use crate::model::value::Value;
use crate::pipeline::ast::SortKey;
use crate::pipeline::context::Context;
use crate::pipeline::error::Result;
use crate::pipeline::filter::Comparison;
use crate::pipeline::memory;
use crate::pipeline::operator::Key;

/// A sort by paths that columns can be kept of.
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
        // `_id` is read of the few rows that are equal in everything else.
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        keys.iter().all(|(path, _)| can_keep(path)).then_some(Top { keys, limit })
    }

    /// The paths that columns are wanted of.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.keys.iter().map(|(path, _)| path).filter(|path| &***path != "_id")
    }

    /// The places of the rows in their order, and how many were selected; `None` where a column is not kept, or cannot
    /// tell.
    pub fn run(&self, selection: &Selection, query: &Context, index: usize) -> Result<Option<(Vec<usize>, u64)>> {
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
        let sorting = Sorting { columns, source: selection.columns };
        let limit = self.limit.unwrap_or(usize::MAX);
        sorting.run(selection, limit, query, index).map(Some)
    }
}

struct Sorting<'a> {
    /// `None` is the id.
    columns: Vec<(Option<&'a Column>, bool)>,
    source: &'a dyn Columns,
}

/// A row and what it is sorted by.
struct Entry {
    keys: Box<[Key]>,
    place: usize,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        let by_keys = self.keys.iter().zip(&other.keys).map(|(a, b)| a.compare(b));
        by_keys.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| self.place.cmp(&other.place))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl Sorting<'_> {
    fn run(&self, selection: &Selection, limit: usize, query: &Context, index: usize) -> Result<(Vec<usize>, u64)> {
        let mut heap: BinaryHeap<Entry> = BinaryHeap::new();
        let mut selected = 0;
        let mut rows = Vec::new();
        for segment in self.best_first(selection, limit) {
            let mut mask = selection.mask(segment)?;
            selected += mask.count() as u64;
            if heap.len() >= limit {
                self.narrow(segment, &mut mask, &heap);
            }
            mask.write_rows(&mut rows);
            for row in &rows {
                query.tick()?;
                let row = *row as usize;
                if heap.len() < limit {
                    let held = query.charge(self.columns.len() * size_of::<Key>());
                    held.and_then(|()| memory::hold_shared(query)).map_err(|error| error.at_stage(index))?;
                    heap.push(self.entry(segment, row));
                    continue;
                }
                // The highest row that was kept gives way to a lower one.
                if let Some(mut highest) = heap.peek_mut()
                    && !self.comes_after(segment, row, &highest)
                {
                    let entry = self.entry(segment, row);
                    if entry < *highest {
                        *highest = entry;
                    }
                }
            }
        }
        Ok((heap.into_sorted_vec().into_iter().map(|entry| entry.place).collect(), selected))
    }

    /// The segments, those first whose integers or dates come first: the others are then passed over quickly.
    fn best_first(&self, selection: &Selection, limit: usize) -> Vec<usize> {
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

    /// Takes out the rows whose first key alone says that they come after all that are kept.
    fn narrow(&self, segment: usize, mask: &mut Mask, heap: &BinaryHeap<Entry>) {
        let Some(&(Some(column), descending)) = self.columns.first() else { return };
        let (Some(segment), Some(key)) =
            (column.segments().get(segment), heap.peek().and_then(|highest| highest.keys.first()))
        else {
            return;
        };
        let comparison = if descending { Comparison::Gte } else { Comparison::Lte };
        let kinds = segment.kinds();
        let in_range = |cells: &[i64], worst: &Value| {
            let range = numbers::ints(comparison, worst)?;
            let (least, most) = (*range.start(), *range.end());
            Some(Mask::of(cells, |cell| (*cell >= least) & (*cell <= most)))
        };
        let fitting = match (segment.cells(), &key.value) {
            (Cells::Ints(cells), Some(worst @ Value::Int(_))) => in_range(cells, worst),
            (Cells::Dates(cells), Some(Value::Date(worst))) => in_range(cells, &Value::Int(*worst)),
            (Cells::Numbers(cells), Some(worst)) => {
                let order = |number: f64| Value::Double(number).compare(worst);
                match descending {
                    true => Some(Mask::of(cells, |cell| order(*cell).is_ge())),
                    false => Some(Mask::of(cells, |cell| order(*cell).is_le())),
                }
            }
            (Cells::Texts(cells), Some(Value::String(worst))) => {
                let texts = column.texts();
                let order = |code: &u32| texts.text(*code).map_or(Ordering::Equal, |text| (**text).cmp(worst));
                match descending {
                    true => Some(Mask::of(cells, |code| order(code).is_ge())),
                    false => Some(Mask::of(cells, |code| order(code).is_le())),
                }
            }
            _ => None,
        };
        let Some(mut fitting) = fitting else { return };
        if !segment.is_plain() {
            fitting.or(&Mask::of(kinds, |kind| !matches!(kind, Kind::Value | Kind::Int)));
        }
        mask.and(&fitting);
    }

    /// Whether the first key alone says that a row comes after another.
    fn comes_after(&self, segment: usize, row: usize, other: &Entry) -> bool {
        match (self.columns.first(), other.keys.first()) {
            (Some(first), Some(key)) => self.key(first, segment, row).compare(key).is_gt(),
            _ => false,
        }
    }

    fn entry(&self, segment: usize, row: usize) -> Entry {
        let keys = self.columns.iter().map(|column| self.key(column, segment, row));
        Entry { keys: keys.collect(), place: segment * SEGMENT + row }
    }

    fn key(&self, (column, descending): &(Option<&Column>, bool), segment: usize, row: usize) -> Key {
        let value = match column {
            Some(column) => match column.segments().get(segment) {
                Some(segment) => key(segment, row, column, *descending),
                None => Some(Value::Null),
            },
            None => self.source.id(segment * SEGMENT + row).map(Value::String),
        };
        Key { value, descending: *descending }
    }
}

/// What a cell is sorted by: the lowest of its values, the highest when descending; `None` for an empty array.
fn key(segment: &Segment, row: usize, column: &Column, descending: bool) -> Option<Value> {
    match segment.value(row, column.texts()) {
        None => Some(Value::Null),
        Some(Value::Array(items)) => match descending {
            true => items.iter().max().cloned(),
            false => items.iter().min().cloned(),
        },
        value => value,
    }
}
