//! The sorted rows of one partition, and the values of expressions over them.

use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::run::rows::RunContext;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure_all;
use crate::pipeline::value::path::FieldPath;
use crate::pipeline::value::sort_key::SortKey;

/// A row with its sort key.
pub type Keyed = (SortKey, Value);

/// The sorted rows of one partition.
pub struct WindowPartition<'a> {
    pub rows: Vec<Value>,
    keys: Vec<SortKey>,
    sort_path: Option<&'a FieldPath>,
    is_sorted: bool,
    pub run: RunContext<'a>,
}

impl<'a> WindowPartition<'a> {
    pub fn new(
        rows: Vec<Keyed>,
        sort_path: Option<&'a FieldPath>,
        is_sorted: bool,
        run: RunContext<'a>,
    ) -> WindowPartition<'a> {
        let (keys, rows) = rows.into_iter().unzip();
        WindowPartition { rows, keys, sort_path, is_sorted, run }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the value of the only sort key of a row, or `None` if the field is missing.
    pub fn sort_value(&self, row: usize) -> Option<Value> {
        self.sort_path.and_then(|path| path.eval(&self.rows[row]))
    }

    /// Returns whether a row and the next row have equal values of the only sort key. Without a sort, all rows are
    /// equal.
    pub fn equals_next(&self, row: usize) -> Result<bool> {
        let (Some(Some(a)), Some(Some(b))) =
            (self.keys.get(row).map(|key| key.first()), self.keys.get(row + 1).map(|key| key.first()))
        else {
            return Ok(!self.is_sorted);
        };
        measure_all([a, b].into_iter().flatten(), self.run.query)?;
        Ok(a == b)
    }

    /// Rejects an output value of this many bytes if the query's memory does not suffice. The operator that keeps the
    /// output row charges the query for the value.
    pub fn check_bytes(&self, bytes: usize) -> Result<()> {
        self.run.query.charge(bytes)?;
        self.run.query.give_back(bytes);
        Ok(())
    }
}

/// The values of an expression over the rows of a partition. A value is computed when it is first read.
pub struct ComputedColumn<'a> {
    expr: &'a Expr,
    cells: Vec<Option<Option<Value>>>,
}

impl<'a> ComputedColumn<'a> {
    pub fn new(expr: &'a Expr, partition: &WindowPartition) -> Result<ComputedColumn<'a>> {
        partition.run.query.charge(partition.len() * size_of::<Option<Option<Value>>>())?;
        Ok(ComputedColumn { expr, cells: vec![None; partition.len()] })
    }

    /// Returns the value for a row, or `None` if the value is missing.
    pub fn get(&mut self, row: usize, partition: &WindowPartition) -> Result<Option<&Value>> {
        let cell = &mut self.cells[row];
        if cell.is_none() {
            *cell = Some(self.expr.eval(&partition.run.env(&partition.rows[row]))?);
        }
        Ok(cell.as_ref().and_then(Option::as_ref))
    }
}
