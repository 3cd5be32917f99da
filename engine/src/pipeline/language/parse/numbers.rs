//! Parses the stages that take one number: `$limit`, `$skip` and `$sample`.

use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number;

pub fn limit(value: &Value) -> Result<u64> {
    match whole("$limit", 5107201, value)? {
        0 => Err(Error::new(15958, "the limit must be positive")),
        limit => Ok(limit),
    }
}

pub fn skip(value: &Value) -> Result<u64> {
    whole("$skip", 5107200, value)
}

/// Parses the number of rows that `$sample` returns. A fractional part is cut off.
pub fn sample(value: &Value) -> Result<u64> {
    let Value::Object(object) = value else {
        return Err(Error::new(28745, "the $sample stage specification must be an object"));
    };
    if let Some(unknown) = object.keys().find(|name| &***name != "size") {
        return err!(28748, "unrecognized option to $sample: {unknown}");
    }
    let size = object.get("size").ok_or_else(|| Error::new(28749, "$sample stage must specify a size"))?;
    let number = size.as_f64().ok_or_else(|| Error::new(28746, "size argument to $sample must be a number"))?;
    if number.trunc() < 1.0 || number.is_nan() {
        return Err(Error::new(28747, "size argument to $sample must be a positive integer"));
    }
    // The cast saturates at the highest integer. Such a size has the same effect as no limit.
    Ok(size.as_int().and_then(|int| u64::try_from(int).ok()).unwrap_or(number as u64))
}

fn whole(stage: &str, code: i32, value: &Value) -> Result<u64> {
    let reason = match value {
        Value::Double(number) if !number.is_finite() => "Expected an integer, but found NaN or infinity in",
        Value::Double(number) if number.fract() != 0.0 => "Expected an integer",
        Value::Decimal(number) if !number.fract().is_zero() => "Expected an integer",
        _ if !value.is_number() => "Expected a number in",
        _ => match number::whole(value).map(u64::try_from) {
            Some(Ok(number)) => return Ok(number),
            Some(Err(_)) => "Expected a non-negative number in",
            None => "Cannot represent as a 64-bit integer",
        },
    };
    err!(code, "invalid argument to {stage} stage: {reason}: {stage}: {}", excerpt(value))
}
