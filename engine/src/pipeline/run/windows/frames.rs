//! The frames of a window: for each row, the range of rows that the window contains. Both ends only move forward.

use std::ops::Range;

use super::partition::WindowPartition;
use crate::model::decimal::{self, Decimal};
use crate::model::number;
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Unit, add_units};
use crate::pipeline::expression::window::{Bounds, WindowBound};
use crate::pipeline::value::error::{Error, Result, err};

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

    /// Returns the rows in the window of the current row.
    pub fn current(&self) -> Range<usize> {
        self.last.clone()
    }

    /// Moves the window to `row`. Callers pass the rows in ascending order.
    pub fn move_to(&mut self, row: usize) -> Result<()> {
        let last = &self.last;
        self.last = match &self.kind {
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
        Ok(())
    }
}

fn distance(bound: &WindowBound<i64>) -> Option<i64> {
    match bound {
        WindowBound::Unbounded => None,
        WindowBound::Current => Some(0),
        WindowBound::Offset(rows) => Some(*rows),
    }
}

/// Returns the rows in the window of `row`. `at` adds the distance of a bound to the sort value of `row`.
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

/// Returns the sum of a sort value and a distance. If the distance is 0, returns the value without rounding. With
/// rounding, the window could exclude rows with the same sort value.
fn shifted(value: &Value, by: &Value) -> Value {
    if *by == Value::Int(0) {
        return value.clone();
    }
    if matches!(value, Value::Decimal(_)) || matches!(by, Value::Decimal(_)) {
        return number::add(value, by);
    }
    if let (Value::Int(value), Value::Int(by)) = (value, by)
        && let Some(sum) = value.checked_add(*by)
    {
        return Value::Int(sum);
    }
    match exact(value).zip(exact(by)).and_then(|(value, by)| value.checked_add(by)) {
        Some(sum) => exact_sum(sum.normalize()),
        None => match number::add(value, by) {
            Value::Double(sum) => Value::Double(rounded(sum)),
            sum => sum,
        },
    }
}

/// The least integer with more than 15 digits.
const SIXTEEN_DIGITS: u64 = 10_u64.pow(15);

/// Returns the decimal that represents a number in a sum. As in MongoDB, a double that has a fraction and is nearer to
/// zero than 10^15 is rounded to 15 digits. Integers and larger doubles are not rounded. Returns `None` if no decimal
/// can represent the number.
fn exact(number: &Value) -> Option<Decimal> {
    let Value::Double(double) = *number else { return number::to_decimal(number) };
    match double {
        _ if double.fract() == 0.0 => Decimal::try_from_i128_with_scale(double as i128, 0).ok(),
        // From 10^15 on, the fraction of a double is a multiple of 1/8.
        _ if double.abs() >= SIXTEEN_DIGITS as f64 => decimal::of_number(&format!("{double:.3}")),
        _ => decimal::of_double(rounded(double)),
    }
}

/// Converts a sum to the number that is compared with the sort values of rows. A sum of up to 15 digits becomes the
/// nearest double, because rows contain numbers such as 1.1 as the nearest double as well. A longer sum stays a
/// decimal.
fn exact_sum(sum: Decimal) -> Value {
    match sum.mantissa().unsigned_abs() < u128::from(SIXTEEN_DIGITS) {
        true => Value::Double(decimal::to_double(sum)),
        false => Value::Decimal(sum),
    }
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
    match partition.rows().sort_value(row)? {
        Some(value) if value.is_number() => Ok(value),
        Some(Value::Date(_)) => {
            let text = "Invalid range: For windows that involve date or time ranges, a unit must be provided.";
            Err(Error::new(5_429_413, text))
        }
        other => {
            let found = found(other.as_ref());
            err!(5_429_414, "Invalid range: Expected the sortBy field to be a number, but it was {found}")
        }
    }
}

fn date(partition: &WindowPartition, row: usize) -> Result<i64> {
    partition.run.query.tick()?;
    match partition.rows().sort_value(row)? {
        Some(Value::Date(ms)) => Ok(ms),
        other => {
            let found = found(other.as_ref());
            err!(5_429_513, "Invalid range: Expected the sortBy field to be a Date, but it was {found}")
        }
    }
}
