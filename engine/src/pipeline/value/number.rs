//! Arithmetic on the two kinds of number, and reading numbers from arguments.

use crate::model::value::Value;
use crate::pipeline::error::{Error, Result};

/// Sum of two numbers; integers that overflow become a double.
pub(in crate::pipeline) fn add(a: &Value, b: &Value) -> Value {
    combine(a, b, i64::checked_add, |a, b| a + b)
}

pub(super) fn subtract(a: &Value, b: &Value) -> Value {
    combine(a, b, i64::checked_sub, |a, b| a - b)
}

pub(super) fn multiply(a: &Value, b: &Value) -> Value {
    combine(a, b, i64::checked_mul, |a, b| a * b)
}

fn combine(a: &Value, b: &Value, ints: fn(i64, i64) -> Option<i64>, doubles: fn(f64, f64) -> f64) -> Value {
    if let (Value::Int(a), Value::Int(b)) = (a, b)
        && let Some(result) = ints(*a, *b)
    {
        return Value::Int(result);
    }
    Value::Double(doubles(a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN)))
}

/// The whole number that a value is, `1.0` included; `None` beyond 64 bits, too.
pub(in crate::pipeline) fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Double(number) => whole_double(*number),
        _ => None,
    }
}

/// As [`whole`], within 32 bits.
pub(super) fn whole_i32(value: &Value) -> Option<i32> {
    i32::try_from(whole(value)?).ok()
}

pub(super) fn whole_double(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number)).then_some(number as i64)
}

/// A number as a double, or the code's error.
pub(super) fn double(name: &str, code: i32, value: &Value) -> Result<f64> {
    value.as_f64().ok_or_else(|| {
        let found = value.type_name();
        Error::new(code, format!("{name} only supports numeric types, not {found}"))
    })
}
