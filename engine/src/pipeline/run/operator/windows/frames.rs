//! The frames of a window: for each row, the range of rows that the window contains. Both ends only move forward.

use std::ops::Range;

use super::partition::WindowPartition;
use crate::model::decimal::{self, Decimal};
use crate::model::number;
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Unit, add_units};
use crate::pipeline::expression::window::{Bounds, WindowBound};
use crate::pipeline::value::error::{Error, Result};

/// The frames of one window over one partition.
pub struct Frames {
    rows: usize,
    kind: FrameKind,
    last: Range<usize>,
}

enum FrameKind {
    Documents(Option<i64>, Option<i64>),
    Numbers { values: Vec<Value>, lower: WindowBound<Value>, upper: WindowBound<Value> },
    Dates { values: Vec<i64>, lower: WindowBound<i64>, upper: WindowBound<i64>, unit: Unit },
}

impl Frames {
    /// Prepares the frames. Rejects sort values for which the bounds are not defined.
    pub fn new(bounds: &Bounds, partition: &WindowPartition) -> Result<Frames> {
        let rows = partition.len();
        let kind = match bounds {
            Bounds::Documents(lower, upper) => FrameKind::Documents(distance(lower), distance(upper)),
            Bounds::Numbers(lower, upper) => {
                partition.run.query.charge(rows * size_of::<Value>())?;
                let values = (0..rows).map(|row| number(partition, row)).collect::<Result<_>>()?;
                FrameKind::Numbers { values, lower: lower.clone(), upper: upper.clone() }
            }
            Bounds::Dates(lower, upper, unit) => {
                partition.run.query.charge(rows * size_of::<i64>())?;
                let values = (0..rows).map(|row| date(partition, row)).collect::<Result<_>>()?;
                FrameKind::Dates { values, lower: lower.clone(), upper: upper.clone(), unit: *unit }
            }
        };
        Ok(Frames { rows, kind, last: 0..0 })
    }

    /// Returns the rows in the window of `row`. Callers pass the rows in ascending order.
    pub fn of(&mut self, row: usize) -> Result<Range<usize>> {
        let last = &self.last;
        let next = match &self.kind {
            FrameKind::Documents(lower, upper) => {
                let end = |distance: i64| {
                    let place = i128::try_from(row).unwrap_or(i128::MAX).saturating_add(distance.into());
                    usize::try_from(place.max(0)).unwrap_or(usize::MAX).min(self.rows)
                };
                lower.map_or(0, end)..upper.map_or(self.rows, |upper| end(upper.saturating_add(1)))
            }
            FrameKind::Numbers { values, lower, upper } => {
                let at = |by: &Value| Ok(shifted(&values[row], by));
                range(row, values, last, lower, upper, at)?
            }
            FrameKind::Dates { values, lower, upper, unit } => {
                let at = |by: &i64| add_units(values[row], *unit, *by);
                range(row, values, last, lower, upper, at)?
            }
        };
        self.last = next.clone();
        Ok(next)
    }
}

fn distance(bound: &WindowBound<i64>) -> Option<i64> {
    match bound {
        WindowBound::Unbounded => None,
        WindowBound::Current => Some(0),
        WindowBound::Offset(rows) => Some(*rows),
    }
}

/// Returns the rows whose sort values lie between two distances from the sort value of a row.
fn range<T: Ord, B>(
    row: usize,
    values: &[T],
    last: &Range<usize>,
    lower: &WindowBound<B>,
    upper: &WindowBound<B>,
    at: impl Fn(&B) -> Result<T>,
) -> Result<Range<usize>> {
    let start = match lower {
        WindowBound::Unbounded => 0,
        WindowBound::Current => row,
        WindowBound::Offset(by) => {
            let least = at(by)?;
            last.start + values[last.start..].iter().take_while(|value| **value < least).count()
        }
    };
    let end = match upper {
        WindowBound::Unbounded => values.len(),
        WindowBound::Current => row + 1,
        WindowBound::Offset(by) => {
            let greatest = at(by)?;
            last.end + values[last.end..].iter().take_while(|value| **value <= greatest).count()
        }
    };
    Ok(start..end.max(start))
}

/// Returns the sum of a sort value and a distance. A sum with a double is rounded to 15 digits, because MongoDB adds
/// doubles as decimals of 15 digits. An integer keeps all its digits.
fn shifted(value: &Value, by: &Value) -> Value {
    if let (Value::Int(value), Value::Double(by)) = (value, by)
        && let Some(sum) = exact_sum(*value, *by)
    {
        return sum;
    }
    match (value, by) {
        (Value::Double(_), _) | (_, Value::Double(_)) if !matches!(value, Value::Decimal(_)) => {
            match number::add(value, by) {
                Value::Double(sum) => Value::Double(rounded(sum)),
                sum => sum,
            }
        }
        _ => number::add(value, by),
    }
}

/// Returns the sum of an integer and the first 15 digits of a double, or `None` if a decimal cannot hold the sum.
fn exact_sum(value: i64, by: f64) -> Option<Value> {
    const FIFTEEN_DIGITS: u128 = 10_u128.pow(15);
    let sum = Decimal::from(value).checked_add(decimal::of_double(rounded(by))?)?.normalize();
    // A row holds a sum such as 1.1 as the nearest double, and the window's end must equal this double.
    Some(match sum.mantissa().unsigned_abs() < FIFTEEN_DIGITS {
        true => Value::Double(decimal::to_double(sum)),
        false => Value::Decimal(sum),
    })
}

/// Rounds a double to 15 digits. Does not change integers below 2^53.
fn rounded(number: f64) -> f64 {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_finite() || (number.fract() == 0.0 && number.abs() < EXACT) {
        return number;
    }
    format!("{number:.14e}").parse().unwrap_or(number)
}

fn found(value: Option<&Value>) -> &'static str {
    value.map_or("missing", Value::type_name)
}

fn number(partition: &WindowPartition, row: usize) -> Result<Value> {
    partition.run.query.tick()?;
    match partition.sort_value(row) {
        Some(value) if value.is_number() => Ok(value),
        Some(Value::Date(_)) => {
            let text = "Invalid range: For windows that involve date or time ranges, a unit must be provided.";
            Err(Error::new(5_429_413, text))
        }
        other => {
            let found = found(other.as_ref());
            let text = format!("Invalid range: Expected the sortBy field to be a number, but it was {found}");
            Err(Error::new(5_429_414, text))
        }
    }
}

fn date(partition: &WindowPartition, row: usize) -> Result<i64> {
    partition.run.query.tick()?;
    match partition.sort_value(row) {
        Some(Value::Date(ms)) => Ok(ms),
        other => {
            let found = found(other.as_ref());
            let text = format!("Invalid range: Expected the sortBy field to be a Date, but it was {found}");
            Err(Error::new(5_429_513, text))
        }
    }
}
