//! Parses the operands of query operators that take more than one value or a special format.

use std::sync::Arc;

use super::bits::BitTest;
use super::bits::Bits;
use super::comparison::MemberSet;
use super::node::Test;
use super::pattern::FilterPattern;
use crate::model::decimal;
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::{whole, whole_double};

/// Returns whether an object begins with an operator. Any other object is a value to compare with.
pub fn is_operators(object: &Object) -> bool {
    object.keys().next().is_some_and(|name| name.starts_with('$') && !matches!(&**name, "$ref" | "$id" | "$db"))
}

/// Parses the operand of `$in` and `$nin`: a set of values, and patterns for strings. Returns one test for the values
/// and one test for each pattern.
pub fn members(name: &str, value: &Value, query: &Context) -> Result<Vec<Test>> {
    let Value::Array(items) = value else { return err!(2, "{name} needs an array") };
    query.tick_many(items.len())?;
    let (patterns, values): (Vec<&Value>, Vec<&Value>) =
        items.iter().partition(|item| FilterPattern::of_value(item).is_some());
    if values.iter().filter_map(|item| item.as_object()).any(is_operators) {
        return err!(2, "cannot nest $ under {name}");
    }
    let values = Test::In(Arc::new(MemberSet::new(values.into_iter().cloned())));
    let patterns =
        patterns.into_iter().filter_map(FilterPattern::of_value).map(|pattern| pattern.compile(query).map(Test::Regex));
    std::iter::once(Ok(values)).chain(patterns).collect()
}

/// Parses the divisor and the remainder of `$mod`, both truncated.
pub fn modulo(value: &Value) -> Result<(i64, i64)> {
    let Value::Array(items) = value else { return Err(Error::new(2, "malformed mod, needs to be an array")) };
    let [divisor, remainder] = items.as_slice() else {
        let text = if items.len() < 2 { "not enough elements" } else { "too many elements" };
        return err!(2, "malformed mod, {text}");
    };
    let number = |name: &str, value: &Value| match value {
        Value::Int(number) => Ok(*number),
        Value::Double(number) => whole_double(number.trunc())
            .ok_or_else(|| Error::new(2, format!("malformed mod, {name} value is invalid: {number}"))),
        Value::Decimal(number) => decimal::whole(number.trunc())
            .ok_or_else(|| Error::new(2, format!("malformed mod, {name} value is invalid: {number}"))),
        _ => err!(2, "malformed mod, {name} not a number"),
    };
    let divisor = number("divisor", divisor)?;
    if divisor == 0 {
        return Err(Error::new(2, "divisor cannot be 0"));
    }
    Ok((divisor, number("remainder", remainder)?))
}

/// Parses the length that `$size` requires.
pub fn size(value: &Value) -> Result<i64> {
    let refuse = |reason: String| err!(2, "Failed to parse $size. {reason}");
    let size = match whole(value) {
        Some(size) => size,
        None if value.is_number() => return refuse(format!("Expected an integer: $size: {}", excerpt(value))),
        None => return refuse(format!("Expected a number in: $size: {}", excerpt(value))),
    };
    if size < 0 {
        return refuse(format!("Expected a non-negative number in: $size: {}", excerpt(value)));
    }
    if i32::try_from(size).is_err() {
        return refuse(format!("Cannot represent as a 32-bit integer: $size: {}", excerpt(value)));
    }
    Ok(size)
}

/// Parses the bits that a bit test reads: a mask, or an array of positions.
pub fn bits(test: BitTest, name: &str, value: &Value) -> Result<Bits> {
    let (mut mask, mut sign) = (0u64, false);
    match value {
        number if number.is_number() => mask = non_negative(name, number, whole(number))?,
        Value::Array(positions) => {
            for position in positions.iter() {
                let number = whole(position).filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| {
                    let reason = match whole(position) {
                        Some(_) => "Cannot represent as a 32-bit integer",
                        None if position.is_number() => "Expected an integer",
                        None => "Expected a number in",
                    };
                    Error::new(2, format!("Failed to parse bit position. {reason}: {}", excerpt(position)))
                })?;
                match u32::try_from(number) {
                    Ok(number @ 0..64) => mask |= 1 << number,
                    Ok(_) => sign = true,
                    Err(_) => {
                        return err!(
                            2,
                            "Failed to parse bit position. Expected a non-negative number in: {}",
                            excerpt(position)
                        );
                    }
                }
            }
        }
        _ => return err!(2, "{name} takes an Array, a number, or a BinData but received: {}", excerpt(value)),
    }
    Ok(Bits { test, mask, sign })
}

fn non_negative(name: &str, value: &Value, number: Option<i64>) -> Result<u64> {
    match number {
        None => err!(9, "Expected an integer: {name}: {}", excerpt(value)),
        Some(number) => u64::try_from(number)
            .map_err(|_| Error::new(9, format!("Expected a non-negative number in: {name}: {}", excerpt(value)))),
    }
}
