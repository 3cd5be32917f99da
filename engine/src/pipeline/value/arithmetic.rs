//! Sums, differences and ratios of values, some of which may be dates.

use super::error::{Error, Result, err};
use super::number::whole_double;
use crate::model::number::{divide, subtract};
use crate::model::value::Value;

/// Adds `by` milliseconds to a date. Rounds `by` to an integer. Returns an error if `by` or the sum does not fit in 64
/// bits.
pub fn moved(ms: i64, by: &Value) -> Result<i64> {
    let by = match by {
        Value::Int(by) => Some(*by),
        other => other.as_f64().and_then(|by| whole_double(by.round())),
    };
    by.and_then(|by| ms.checked_add(by)).ok_or_else(|| Error::new(15, "date overflow"))
}

/// Returns the result of `$divide` for two values.
pub fn ratio(dividend: &Value, divisor: &Value) -> Result<Value> {
    if dividend.is_number()
        && let Some(by) = divisor.as_f64()
    {
        if by == 0.0 {
            return Err(Error::new(2, "can't $divide by zero"));
        }
        return Ok(divide(dividend, divisor));
    }
    if dividend.is_null() || divisor.is_null() {
        return Ok(Value::Null);
    }
    err!(14, "$divide only supports numeric types, not {} and {}", dividend.type_name(), divisor.type_name())
}

/// Returns the result of `$subtract` for two values.
pub fn difference(minuend: &Value, subtrahend: &Value) -> Result<Value> {
    match (minuend, subtrahend) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Date(a), Value::Date(b)) => match a.checked_sub(*b) {
            Some(ms) => Ok(Value::Int(ms)),
            None => Err(Error::new(15, "date overflow")),
        },
        (Value::Date(ms), number) if number.is_number() => {
            moved(*ms, &subtract(&Value::Int(0), number)).map(Value::Date)
        }
        (a, b) if a.is_number() && b.is_number() => Ok(subtract(a, b)),
        (a, b) => err!(14, "can't $subtract {} from {}", b.type_name(), a.type_name()),
    }
}
