//! `$integral`: the area under the values of a moving window. Prefix sums of the trapezoids between successive rows
//! give the area of any window by one subtraction.

use std::ops::Range;

use super::partition::{InputColumn, WindowPartition};
use super::slide::Slide;
use crate::model::value::Value;
use crate::pipeline::expression::expr::Expr;
use crate::pipeline::value::error::{Error, Result};

/// The window function `$integral` over one partition.
pub struct Integral<'a> {
    column: InputColumn<'a>,
    unit: Option<i64>,
    /// For each row from `first` on, the sum of the areas before the row.
    before: Vec<Areas>,
    first: usize,
    /// The sort value and the input value of the last row.
    last: (f64, f64),
}

/// A sum of areas, as two doubles. Areas that are not finite are counted instead of added, because no subtraction can
/// remove an infinity or NaN from a sum.
#[derive(Clone, Copy, Default)]
struct Areas {
    high: f64,
    low: f64,
    positive: u64,
    negative: u64,
    nan: u64,
    /// The number of rows whose sort value or input value is NaN. Counts the rows of `Integral::before` up to the row
    /// of this entry, which is included.
    nan_points: u64,
}

impl Areas {
    fn add(&mut self, area: f64) {
        if area.is_nan() {
            self.nan += 1;
        } else if area == f64::INFINITY {
            self.positive += 1;
        } else if area == f64::NEG_INFINITY {
            self.negative += 1;
        } else {
            let sum = self.high + area;
            let part = sum - self.high;
            self.low += (self.high - (sum - part)) + (area - part);
            self.high = sum;
        }
    }

    /// Returns the sum of the areas that were added after `start`. `start` is an earlier value of this sum.
    fn since(&self, start: &Areas) -> f64 {
        let (positive, negative) = (self.positive > start.positive, self.negative > start.negative);
        match (positive, negative) {
            _ if self.nan > start.nan => f64::NAN,
            (true, true) => f64::NAN,
            (true, false) => f64::INFINITY,
            (false, true) => f64::NEG_INFINITY,
            (false, false) => (self.high - start.high) + (self.low - start.low),
        }
    }
}

impl<'a> Integral<'a> {
    pub fn new(input: &'a Expr, unit: Option<i64>, partition: &WindowPartition) -> Result<Integral<'a>> {
        partition.run.query.charge(partition.len() * size_of::<Areas>())?;
        let column = InputColumn::new(input, partition)?;
        Ok(Integral { column, unit, before: Vec::new(), first: 0, last: (0.0, 0.0) })
    }

    fn point(&mut self, row: usize, partition: &WindowPartition) -> Result<(f64, f64)> {
        let x = partition.rows().sort_value(row)?.filter(|value| value.is_number() || matches!(value, Value::Date(_)));
        let y = self.column.get(row, partition)?.and_then(Value::as_f64);
        let (Some(x), Some(y)) = (x, y) else {
            let text = "$integral expects a numeric input, and a number or a Date in the sortBy field";
            return Err(Error::new(5_423_900, text));
        };
        match (x, self.unit) {
            (Value::Date(ms), Some(_)) => Ok((ms as f64, y)),
            (_, Some(_)) => Err(Error::new(5_423_901, "$integral with 'unit' expects the sortBy field to be a Date")),
            (Value::Date(_), None) => {
                let text = "$integral (with no 'unit') expects the sortBy field to be numeric";
                Err(Error::new(5_423_902, text))
            }
            (x, None) => Ok((x.as_f64().unwrap_or_default(), y)),
        }
    }
}

impl Slide for Integral<'_> {
    fn add(&mut self, row: usize, partition: &WindowPartition) -> Result<()> {
        let (x, y) = self.point(row, partition)?;
        let mut areas = self.before.last().copied().unwrap_or_default();
        if row == self.first + self.before.len() && !self.before.is_empty() {
            areas.add((self.last.1 + y) * (x - self.last.0) / 2.0);
        } else {
            // The row is the first row, or the window has skipped rows. In both cases, the window has no earlier row.
            (self.before, self.first, areas) = (Vec::new(), row, Areas::default());
        }
        areas.nan_points += u64::from(x.is_nan() || y.is_nan());
        self.before.push(areas);
        self.last = (x, y);
        Ok(())
    }

    fn value(&mut self, frame: Range<usize>, _partition: &WindowPartition) -> Result<Option<Value>> {
        if frame.is_empty() {
            return Ok(Some(Value::Null));
        }
        let (start, end) = (&self.before[frame.start - self.first], &self.before[frame.end - 1 - self.first]);
        let nan_before = match frame.start.checked_sub(self.first + 1) {
            Some(before) => self.before[before].nan_points,
            None => 0,
        };
        if end.nan_points > nan_before {
            return Ok(Some(Value::Double(f64::NAN)));
        }
        if frame.len() == 1 {
            return Ok(Some(Value::Int(0)));
        }
        let area = end.since(start);
        Ok(Some(Value::Double(self.unit.map_or(area, |unit| area / unit as f64))))
    }
}
