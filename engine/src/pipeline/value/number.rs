//! Reads numeric arguments.

use super::error::{Error, Result, err};
use crate::model::decimal;
use crate::model::excerpt::excerpt;
use crate::model::value::Value;

/// Returns the value as an integer. Accepts integral doubles such as `1.0`, and integral decimals. Returns `None` for
/// all other values, and for numbers that do not fit in 64 bits.
pub fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Double(number) => whole_double(*number),
        Value::Decimal(number) => decimal::whole(*number),
        _ => None,
    }
}

/// Returns the value as a 32-bit integer. Accepts the same values as [`whole`], except numbers that do not fit in 32
/// bits.
pub fn whole_i32(value: &Value) -> Option<i32> {
    i32::try_from(whole(value)?).ok()
}

pub fn whole_double(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number)).then_some(number as i64)
}

/// Returns a number as a double. For a value that is not a number, returns an error with the given code.
pub fn double(name: &str, code: i32, value: &Value) -> Result<f64> {
    value.as_f64().ok_or_else(|| {
        let found = value.type_name();
        Error::new(code, format!("{name} only supports numeric types, not {found}"))
    })
}

/// Parses the argument `n` of operators such as `$firstN`: the number of values to return.
pub fn parse_count(value: &Value) -> Result<usize> {
    if !value.is_number() {
        return err!(5_787_902, "Value for 'n' must be of integral type, but found {}", excerpt(value));
    }
    let Some(count) = whole(value) else {
        return err!(5_787_903, "Value for 'n' must be of integral type, but found {}", excerpt(value));
    };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => err!(5_787_908, "'n' must be greater than 0, found {count}"),
    }
}
