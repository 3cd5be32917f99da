//! The rows of one partition, and the values of expressions over these rows.

use std::borrow::Cow;

use super::values::TypedValues;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::expression::input_value::InputValue;
use crate::pipeline::run::rows::RunContext;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::sum::NumericValue;

/// The rows of one partition, in their order.
pub trait PartitionRows {
    fn len(&self) -> usize;

    /// Returns a row with at least the fields that the window functions read. Charges the query for the values that are
    /// built for this call.
    fn input(&self, row: usize) -> Result<Cow<'_, Value>>;

    /// Returns the row to which the computed fields are added.
    fn output(&self, row: usize) -> Result<Cow<'_, Value>>;

    /// Returns the value of the only sort key of a row, or `None` if the field is missing.
    fn sort_value(&self, row: usize) -> Result<Option<Value>>;

    /// Returns whether a row and the next row have equal values of the first sort key. Without a sort, all rows are
    /// equal.
    fn equals_next(&self, row: usize) -> Result<bool>;

    /// Returns the values of an expression for all rows, or `None` if the values must be computed from the rows.
    fn values(&self, _expr: &Expr) -> Option<TypedValues> {
        None
    }
}

/// One partition, with the context of the run.
pub struct WindowPartition<'a> {
    rows: Box<dyn PartitionRows + 'a>,
    pub run: RunContext<'a>,
}

impl<'a> WindowPartition<'a> {
    pub fn new(rows: Box<dyn PartitionRows + 'a>, run: RunContext<'a>) -> WindowPartition<'a> {
        WindowPartition { rows, run }
    }

    pub fn rows(&self) -> &dyn PartitionRows {
        &*self.rows
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Evaluates an expression over a row.
    pub fn eval(&self, expr: &Expr, row: usize) -> Result<InputValue> {
        self.read(row, |row| expr.eval(&self.run.env(row))).map(|(value, built)| InputValue { value, built })
    }

    /// Calls `read` with a row, and cancels the memory charges of the call. Returns the result and the cancelled number
    /// of bytes. This number is an upper limit for the newly built bytes of the result.
    pub fn read<T>(&self, row: usize, read: impl FnOnce(&Value) -> Result<T>) -> Result<(T, usize)> {
        let (found, built) = self.run.query.charged(|| read(&*self.rows.input(row)?))?;
        self.run.query.give_back(built);
        Ok((found, built))
    }

    /// Returns an error if the remaining memory of the query does not suffice for an output value of `bytes` bytes. The
    /// operator that keeps the output row charges the query for the value.
    pub fn check_bytes(&self, bytes: usize) -> Result<()> {
        self.run.query.charge(bytes)?;
        self.run.query.give_back(bytes);
        Ok(())
    }
}

/// The values of an expression over the rows of a partition.
pub struct InputColumn<'a> {
    expr: &'a Expr,
    values: InputColumnValues,
    /// The constant, or the last value that was read. Unused if the column stores the values as [`Value`]s.
    last: InputValue,
    /// The number of bytes that the query is charged for `last`.
    last_bytes: usize,
}

enum InputColumnValues {
    /// The value that an expression has for every row.
    Constant,
    Known(TypedValues),
    /// Values that are computed at the first read, and then stored.
    Computed(Vec<Option<Option<Value>>>),
    /// Values that are computed at each read.
    Passing,
}

impl<'a> InputColumn<'a> {
    /// Creates a column whose values may be read several times.
    pub fn new(expr: &'a Expr, partition: &WindowPartition) -> Result<InputColumn<'a>> {
        let mut column = InputColumn::read_once(expr, partition)?;
        if let InputColumnValues::Passing = column.values {
            partition.run.query.charge(partition.len() * size_of::<Option<Option<Value>>>())?;
            column.values = InputColumnValues::Computed(vec![None; partition.len()]);
        }
        Ok(column)
    }

    /// Creates a column from which each value is read at most once.
    pub fn read_once(expr: &'a Expr, partition: &WindowPartition) -> Result<InputColumn<'a>> {
        let constant = expr.constant();
        let values = match (constant, partition.rows.values(expr)) {
            (Some(_), _) => InputColumnValues::Constant,
            (None, Some(values)) => {
                partition.run.query.charge(partition.len() * values.value_bytes())?;
                InputColumnValues::Known(values)
            }
            (None, None) => InputColumnValues::Passing,
        };
        Ok(InputColumn { expr, values, last: InputValue { value: constant.cloned(), built: 0 }, last_bytes: 0 })
    }

    /// Returns the value for a row, or `None` if the value is missing.
    pub fn get(&mut self, row: usize, partition: &WindowPartition) -> Result<Option<&Value>> {
        match &mut self.values {
            InputColumnValues::Constant => {}
            InputColumnValues::Known(TypedValues::Any(values)) => return Ok(values[row].as_ref()),
            InputColumnValues::Known(values) => self.last.value = values.value(row),
            InputColumnValues::Computed(cells) => {
                let cell = &mut cells[row];
                if cell.is_none() {
                    let input = partition.eval(self.expr, row)?;
                    let query = partition.run.query;
                    query.charge(input.built_bytes(query)?)?;
                    *cell = Some(input.value);
                }
                return Ok(cell.as_ref().and_then(Option::as_ref));
            }
            InputColumnValues::Passing => {
                let (input, query) = (partition.eval(self.expr, row)?, partition.run.query);
                let bytes = input.built_bytes(query)?;
                query.charge(bytes)?;
                query.give_back(std::mem::replace(&mut self.last_bytes, bytes));
                self.last = input;
            }
        }
        Ok(self.last.value.as_ref())
    }

    /// Returns the value for a row as [`get`](InputColumn::get) does. Also returns a number of bytes. A function that
    /// keeps the value must charge the query for this number of bytes.
    pub fn get_kept(&mut self, row: usize, partition: &WindowPartition) -> Result<(Option<Value>, usize)> {
        let value = self.get(row, partition)?.cloned();
        Ok((value, self.last_bytes))
    }

    /// Returns the integers of all rows, if all values are known and are integers.
    pub fn ints(&self) -> Option<&[i64]> {
        match &self.values {
            InputColumnValues::Known(TypedValues::Ints(values)) => Some(values),
            _ => None,
        }
    }

    /// Returns the value for a row as a number, or `None` if the value is not a number.
    pub fn number(&mut self, row: usize, partition: &WindowPartition) -> Result<Option<NumericValue>> {
        match &self.values {
            InputColumnValues::Known(TypedValues::Ints(values)) => Ok(Some(NumericValue::Int(values[row]))),
            InputColumnValues::Known(TypedValues::Doubles(values)) => Ok(Some(NumericValue::Double(values[row]))),
            _ => Ok(self.get(row, partition)?.and_then(NumericValue::of)),
        }
    }
}
