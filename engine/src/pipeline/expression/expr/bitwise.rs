//! Bitwise operators.

use super::operator::ArgumentForm::{AnyNumber, Exactly};
use super::operator::{ExprOperator, OperatorCall, name_table};
use super::{Answer, Env, NULL, some};
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the bits that are 1 in all numbers.
    "$bitAnd"("integer...") [r#"{"$bitAnd":[6,3]}"#, "{}", "2"]:
        AnyNumber, |call, env| all(call, env, -1, |a, b| a & b);
    /// Inverts the bits.
    "$bitNot"("integer") [r#"{"$bitNot":5}"#, "{}", "-6"]: Exactly(1), not;
    /// Returns the bits that are 1 in any number.
    "$bitOr"("integer...") [r#"{"$bitOr":[6,3]}"#, "{}", "7"]:
        AnyNumber, |call, env| all(call, env, 0, |a, b| a | b);
    /// Returns the bits that are 1 in an odd number of the arguments.
    "$bitXor"("integer...") [r#"{"$bitXor":[6,3]}"#, "{}", "5"]:
        AnyNumber, |call, env| all(call, env, 0, |a, b| a ^ b);
};

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
