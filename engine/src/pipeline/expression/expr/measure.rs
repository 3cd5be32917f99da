//! Sizes of values, and random numbers.

use super::operator::ArgumentForm::{Exactly, Own};
use super::operator::{ExprOperator, OperatorArguments, OperatorCall, name_table};
use super::{Answer, Env, NULL, ParseScope, some};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the length of a string in bytes.
    "$binarySize"("string") [r#"{"$binarySize":"é"}"#, "{}", "2"]: Exactly(1), binary_size;
    /// Returns the size of the object as BSON, in bytes.
    "$bsonSize"("object") [r#"{"$bsonSize":"$$ROOT"}"#, r#"{"a":1}"#, "12"]: Exactly(1), bson_size;
    /// Returns a random number of at least 0 and less than 1.
    "$rand"("") [r#"{"$lt":[{"$rand":{}},1]}"#, "{}", "true"].volatile()
        .remark("All pages of one result use the same random numbers."): Own(parse_rand), rand;
};

fn binary_size(call: &OperatorCall, env: &Env) -> Answer {
    let text = call.text(0, 51276, "$binarySize requires a string or BinData argument, found:", env)?;
    text.map_or(NULL, |text| some(text.len() as i64))
}

fn bson_size(call: &OperatorCall, env: &Env) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        value @ Value::Object(_) => some(size(&value) as i64),
        other => err!(31393, "$bsonSize requires a document input, found: {}", other.type_name()),
    }
}

/// Returns the BSON size of a value in bytes, without the type and the name of its field.
fn size(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(number) if i32::try_from(*number).is_ok() => 4,
        Value::Int(_) | Value::Double(_) | Value::Date(_) => 8,
        Value::Decimal(_) => 16,
        Value::String(text) => text.len() + 5,
        Value::Object(object) => 5 + object.iter().map(|(name, value)| name.len() + 2 + size(value)).sum::<usize>(),
        Value::Array(items) => {
            let name = |index: usize| index.checked_ilog10().unwrap_or(0) as usize + 1;
            5 + items.iter().enumerate().map(|(index, item)| name(index) + 2 + size(item)).sum::<usize>()
        }
    }
}

fn parse_rand(spec: &Value, _: &ParseScope) -> Result<OperatorArguments> {
    match spec {
        Value::Object(object) if object.is_empty() => Ok(Vec::new().into()),
        Value::Array(items) if items.is_empty() => Ok(Vec::new().into()),
        Value::Object(_) | Value::Array(_) => Err(Error::new(3_040_501, "$rand does not currently accept arguments")),
        other => err!(10065, "invalid parameter: expected an object ($rand), found {}", other.type_name()),
    }
}

fn rand(_: &OperatorCall, env: &Env) -> Answer {
    some(env.query.draw())
}
