//! Bitwise operators.

use super::operator::ArgumentForm::{AnyNumber, Exactly};
use super::operator::{ExprOperator, OperatorCall};
use super::{Answer, Env, NULL, some};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result};

pub(super) static OPERATORS: &[ExprOperator] = &[
    ExprOperator::new(
        "$bitAnd",
        "integer...",
        "Returns the bits that are 1 in all numbers.",
        AnyNumber,
        |call, env| all(call, env, -1, |a, b| a & b),
        [r#"{"$bitAnd":[6,3]}"#, "{}", "2"],
    ),
    ExprOperator::new("$bitNot", "integer", "Inverts the bits.", Exactly(1), not, [r#"{"$bitNot":5}"#, "{}", "-6"]),
    ExprOperator::new(
        "$bitOr",
        "integer...",
        "Returns the bits that are 1 in any number.",
        AnyNumber,
        |call, env| all(call, env, 0, |a, b| a | b),
        [r#"{"$bitOr":[6,3]}"#, "{}", "7"],
    ),
    ExprOperator::new(
        "$bitXor",
        "integer...",
        "Returns the bits that are 1 in an odd number of the arguments.",
        AnyNumber,
        |call, env| all(call, env, 0, |a, b| a ^ b),
        [r#"{"$bitXor":[6,3]}"#, "{}", "5"],
    ),
];

fn integer(call: &OperatorCall, value: &Value) -> Result<i64> {
    value.as_int().ok_or_else(|| {
        let (name, found) = (call.name(), value.type_name());
        Error::new(14, format!("{name} only supports int and long, found: {found}"))
    })
}

fn all(call: &OperatorCall, env: &Env, start: i64, combine: fn(i64, i64) -> i64) -> Answer {
    let mut bits = start;
    for index in 0..call.len() {
        match call.value(index, env)? {
            Value::Null => return NULL,
            value => bits = combine(bits, integer(call, &value)?),
        }
    }
    some(bits)
}

fn not(call: &OperatorCall, env: &Env) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        value => some(!integer(call, &value)?),
    }
}
