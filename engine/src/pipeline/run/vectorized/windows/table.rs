//! The selected rows, their values in the columns that windows read, and the partitions of the rows.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::LazyLock;

use super::ColumnWindows;
use super::order;
use crate::model::value::{Object, Value};
use crate::pipeline::column::{Cells, SEGMENT};
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::run::rows::RunContext;
use crate::pipeline::run::vectorized::keys::InputValues;
use crate::pipeline::run::vectorized::source::{Chunk, ChunkValues, ColumnSource};
use crate::pipeline::run::windows::{PartitionRows, TypedValues};
use crate::pipeline::source::table::Columns;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure;

/// A row without fields, to which the computed fields are added if no other field is needed.
static NO_FIELDS: LazyLock<Value> = LazyLock::new(|| Object::new().into());

/// The selected rows, and their values at the paths that windows read.
pub struct WindowTable<'a> {
    windows: &'a ColumnWindows,
    columns: &'a dyn Columns,
    run: RunContext<'a>,
    /// For each selected row, the index of the row in `columns`. `values` and the partitions refer to a row by its
    /// position in this list.
    row_indexes: Vec<u32>,
    /// The values of the rows, for each path of the windows.
    values: Vec<TypedValues>,
}

impl<'a> WindowTable<'a> {
    pub fn new(windows: &'a ColumnWindows, columns: &'a dyn Columns, run: RunContext<'a>) -> WindowTable<'a> {
        let values = windows.paths.iter().map(|_| TypedValues::default()).collect();
        WindowTable { windows, columns, run, row_indexes: Vec::new(), values }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.row_indexes.len()
    }

    /// Adds the rows of a chunk. `sources` contains one entry for each path of the windows: the source of the values,
    /// or `None` if the values are the ids of the rows.
    pub fn extend(&mut self, chunk: Chunk, sources: &[Option<ColumnSource<'a>>]) -> Result<()> {
        let query = chunk.run.query;
        query.charge(size_of_val(chunk.rows))?;
        let index = |row: &u32| (chunk.segment * SEGMENT) as u32 + *row;
        self.row_indexes.extend(chunk.rows.iter().map(index));
        for (values, source) in self.values.iter_mut().zip(sources) {
            let mut buffer = Vec::new();
            match source {
                Some(source) => {
                    let added = source.values(chunk, &mut buffer)?;
                    let bytes = values.len() * values.value_bytes();
                    extend(values, &added, chunk.rows);
                    query.charge((values.len() * values.value_bytes()).saturating_sub(bytes))?;
                    // Computed numbers and dates are copied, and other values are moved out of the chunk's list.
                    query.give_back(match values {
                        TypedValues::Any(_) => added.list_bytes,
                        _ => added.list_bytes + added.built_bytes,
                    });
                }
                None => {
                    query.charge(chunk.rows.len() * size_of::<Option<Value>>())?;
                    let ids = chunk.rows.iter().map(|row| self.columns.id(index(row) as usize).map(Value::String));
                    ids.for_each(|id| values.push(id));
                }
            }
        }
        Ok(())
    }

    /// Returns whether the columns determine the order of the rows. Returns `false` if a sort value is an array,
    /// because columns do not show which items of several arrays belong together.
    pub fn can_sort(&self) -> bool {
        self.windows.order.iter().all(|(path, _)| !self.values[*path].has_arrays())
    }

    /// Sorts the rows at `positions` and returns them as a partition.
    pub fn partition(table: &Rc<WindowTable<'a>>, mut positions: Vec<u32>) -> Result<Box<dyn PartitionRows + 'a>> {
        let keys: Vec<(&TypedValues, bool)> =
            table.windows.order.iter().map(|(path, descending)| (&table.values[*path], *descending)).collect();
        if !keys.is_empty() {
            let id = |position: u32| table.columns.id(table.row_indexes[position as usize] as usize);
            order::sort(&mut positions, &keys, id, table.run.query)?;
        }
        Ok(Box::new(ColumnPartition { table: table.clone(), positions }))
    }
}

/// Appends the values of `rows` to `values`. `added` contains the values of the chunk.
fn extend(values: &mut TypedValues, added: &ChunkValues, rows: &[u32]) {
    if let InputValues::Segment(segment) = added.input
        && segment.is_plain()
        && let Cells::Ints(cells) = segment.cells()
    {
        values.extend_ints(rows.iter().map(|row| cells[*row as usize]));
        return;
    }
    rows.iter().enumerate().for_each(|(nth, row)| values.push(added.value(nth, *row)));
}

/// A partition whose rows are read from columns.
struct ColumnPartition<'a> {
    table: Rc<WindowTable<'a>>,
    /// The positions of the rows in the table, in the order of the partition.
    positions: Vec<u32>,
}

impl ColumnPartition<'_> {
    fn row_index(&self, row: usize) -> usize {
        self.table.row_indexes[self.positions[row] as usize] as usize
    }

    /// Returns the values of the first sort key.
    fn first_key(&self) -> Option<&TypedValues> {
        self.table.windows.order.first().map(|(path, _)| &self.table.values[*path])
    }
}

impl PartitionRows for ColumnPartition<'_> {
    fn len(&self) -> usize {
        self.positions.len()
    }

    fn input(&self, row: usize) -> Result<Cow<'_, Value>> {
        let (ColumnWindows { read, before, .. }, run) = (self.table.windows, self.table.run);
        let row = self.table.columns.part(self.row_index(row), read.as_ref()).unwrap_or_default();
        Ok(Cow::Owned(match before {
            Some(before) => before.apply(&run.env(&row))?,
            None => row,
        }))
    }

    fn output(&self, row: usize) -> Result<Cow<'_, Value>> {
        let ColumnWindows { written, before, projects_output, .. } = self.table.windows;
        let row = match written {
            Some(fields) if fields.is_empty() => return Ok(Cow::Borrowed(&NO_FIELDS)),
            Some(fields) => self.table.columns.part(self.row_index(row), Some(fields)),
            None => self.table.columns.row(self.row_index(row)),
        };
        let row = row.unwrap_or_default();
        Ok(Cow::Owned(match before.as_ref().filter(|_| *projects_output) {
            Some(before) => before.apply(&self.table.run.env(&row))?,
            None => row,
        }))
    }

    fn sort_value(&self, row: usize) -> Result<Option<Value>> {
        Ok(self.first_key().and_then(|key| key.value(self.positions[row] as usize)))
    }

    fn equals_next(&self, row: usize) -> Result<bool> {
        let (Some(values), Some(next)) = (self.first_key(), self.positions.get(row + 1)) else {
            return Ok(self.first_key().is_none());
        };
        let (row, next) = (self.positions[row] as usize, *next as usize);
        if let TypedValues::Any(values) = values {
            for value in [&values[row], &values[next]].into_iter().flatten() {
                measure(value, self.table.run.query)?;
            }
        }
        Ok(values.compare(row, next).is_eq())
    }

    fn values(&self, expr: &Expr) -> Option<TypedValues> {
        let path = expr.plain_path()?.segments().join(".");
        let index = self.table.windows.paths.iter().position(|(known, _)| **known == *path)?;
        Some(self.table.values[index].at(&self.positions))
    }
}
