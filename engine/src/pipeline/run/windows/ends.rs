//! Window functions that need no data structure: they count rows, or read the values of single rows or of a slice of
//! the window.

use std::ops::Range;

use super::computation::Computation;
use super::partition::{InputColumn, WindowPartition};
use super::slide::Slide;
use crate::model::excerpt::excerpt;
use crate::model::number;
use crate::model::value::Value;
use crate::pipeline::expression::accumulator::OrderEnd;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::arithmetic::{difference, ratio};
use crate::pipeline::value::error::{Error, Result};

/// The window function `$count`.
pub struct CountWindow;

impl Computation<'_> for CountWindow {
    fn value(&mut self, _row: usize, frame: Range<usize>, _partition: &WindowPartition) -> Result<Option<Value>> {
        Ok(Some(Value::Int(i64::try_from(frame.len()).unwrap_or(i64::MAX))))
    }
}

/// The window functions `$first` and `$last`.
pub struct EdgeWindow<'a> {
    pub column: InputColumn<'a>,
    pub end: OrderEnd,
}

impl<'a> Computation<'a> for EdgeWindow<'a> {
    fn value(&mut self, _row: usize, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        if frame.is_empty() {
            return Ok(Some(Value::Null));
        }
        let row = match self.end {
            OrderEnd::Front => frame.start,
            OrderEnd::Back => frame.end - 1,
        };
        Ok(self.column.get(row, partition)?.cloned())
    }
}

/// The window functions `$firstN` and `$lastN`.
pub struct EdgeN<'a> {
    pub column: InputColumn<'a>,
    pub end: OrderEnd,
    pub count: usize,
}

impl Slide for EdgeN<'_> {
    fn value(&mut self, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let count = self.count.min(frame.len());
        let rows = match self.end {
            OrderEnd::Front => frame.start..frame.start + count,
            OrderEnd::Back => frame.end - count..frame.end,
        };
        partition.check_bytes(count * size_of::<Value>())?;
        let mut values = Vec::with_capacity(count);
        for row in rows {
            partition.run.query.tick()?;
            values.push(self.column.get(row, partition)?.cloned().unwrap_or_default());
        }
        Ok(Some(values.into()))
    }
}

/// The window functions `$push` and `$concatArrays`.
pub struct ListWindow<'a> {
    pub column: InputColumn<'a>,
    pub concatenates: bool,
}

impl Slide for ListWindow<'_> {
    fn add(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        if let (true, Some(value)) = (self.concatenates, self.column.get(row, partition)?) {
            array_of("$concatArrays", value)?;
        }
        Ok(())
    }

    fn value(&mut self, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let (mut values, query) = (Vec::new(), partition.run.query);
        for row in frame {
            query.tick()?;
            let items = match self.column.get(row, partition)? {
                Some(Value::Array(items)) if self.concatenates => items.as_slice(),
                Some(value) => std::slice::from_ref(value),
                None => continue,
            };
            query.tick_many(items.len())?;
            query.charge(size_of_val(items))?;
            values.extend_from_slice(items);
        }
        query.give_back(size_of_val(values.as_slice()));
        Ok(Some(values.into()))
    }
}

/// Returns the items of an array. Returns an error for any other value.
pub fn array_of<'v>(name: &str, value: &'v Value) -> Result<&'v [Value]> {
    value.as_array().ok_or_else(|| {
        let (shown, found) = (excerpt(value), value.type_name());
        Error::new(14, format!("{name} requires array inputs, but input {shown} is of type {found}"))
    })
}

/// The window function `$shift`.
pub struct Shift<'a> {
    column: InputColumn<'a>,
    by: i64,
    default: &'a Value,
}

impl<'a> Shift<'a> {
    pub fn new(output: &'a Expr, by: i64, default: &'a Value, partition: &WindowPartition) -> Result<Shift<'a>> {
        Ok(Shift { column: InputColumn::new(output, partition)?, by, default })
    }
}

impl<'a> Computation<'a> for Shift<'a> {
    fn value(&mut self, row: usize, _frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        let place = i64::try_from(row).ok().and_then(|row| row.checked_add(self.by));
        match place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < partition.len()) {
            Some(place) => Ok(self.column.get(place, partition)?.cloned()),
            None => Ok(Some(self.default.clone())),
        }
    }
}

/// The window function `$derivative`.
pub struct Derivative<'a> {
    column: InputColumn<'a>,
    unit: Option<i64>,
}

impl<'a> Derivative<'a> {
    pub fn new(input: &'a Expr, unit: Option<i64>, partition: &WindowPartition) -> Result<Derivative<'a>> {
        Ok(Derivative { column: InputColumn::new(input, partition)?, unit })
    }

    /// Returns the sort value of a row as a number. A date becomes its milliseconds since the epoch.
    fn place(&self, row: usize, partition: &WindowPartition) -> Result<Value> {
        match (partition.rows().sort_value(row)?, self.unit) {
            (Some(Value::Date(ms)), Some(_)) => Ok(Value::Int(ms)),
            (_, Some(_)) => Err(Error::new(5_624_900, "$derivative with 'unit' expects the sortBy field to be a Date")),
            (Some(Value::Date(_)), None) => {
                Err(Error::new(5_624_901, "$derivative where the sortBy is a Date requires a 'unit'"))
            }
            (Some(value), None) if value.is_number() => Ok(value),
            (_, None) => Err(Error::new(5_624_902, "$derivative expects the sortBy field to be numeric")),
        }
    }

    fn input(&mut self, row: usize, partition: &WindowPartition) -> Result<Value> {
        Ok(self.column.get(row, partition)?.cloned().unwrap_or_default())
    }
}

impl<'a> Computation<'a> for Derivative<'a> {
    fn value(&mut self, _row: usize, frame: Range<usize>, partition: &WindowPartition) -> Result<Option<Value>> {
        if frame.is_empty() {
            return Ok(Some(Value::Null));
        }
        let (first, last) = (frame.start, frame.end - 1);
        let run = number::subtract(&self.place(last, partition)?, &self.place(first, partition)?);
        let rise = difference(&self.input(last, partition)?, &self.input(first, partition)?)?;
        if rise.is_null() {
            let text = "$derivative requires an input at both ends of the window, but one input is null or missing";
            return Err(Error::new(5_624_903, text));
        }
        // The rise from a number to a date is a date, which the division rejects even if the run is 0.
        if rise.is_number() && run.as_f64() == Some(0.0) {
            return Ok(Some(Value::Null));
        }
        let rate = ratio(&rise, &run)?;
        Ok(Some(match self.unit {
            Some(unit) => number::multiply(&rate, &Value::Int(unit)),
            None => rate,
        }))
    }
}
