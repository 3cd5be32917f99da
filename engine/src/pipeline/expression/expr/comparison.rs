//! Comparisons over the total order of all values.

use std::cmp::Ordering;

use super::operator::ArgumentForm::Exactly;
use super::operator::{ExprOperator, OperatorCall};
use super::{Env, some};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure;

pub(super) static OPERATORS: &[ExprOperator] = &[
    ExprOperator::new(
        "$cmp",
        "left: any, right: any",
        "Returns -1, 0 or 1 if the left value is less than, equal to or greater than the right value.",
        Exactly(2),
        |call, env| some(compare(call, env)? as i64),
        [r#"{"$cmp":["$a",2]}"#, r#"{"a":1}"#, "-1"],
    ),
    ExprOperator::new(
        "$eq",
        "left: any, right: any",
        "Returns whether the values are equal.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_eq()),
        [r#"{"$eq":["$a",1.0]}"#, r#"{"a":1}"#, "true"],
    ),
    ExprOperator::new(
        "$gt",
        "left: any, right: any",
        "Returns whether the left value is greater than the right.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_gt()),
        [r#"{"$gt":["$a",1]}"#, r#"{"a":2}"#, "true"],
    ),
    ExprOperator::new(
        "$gte",
        "left: any, right: any",
        "Returns whether the left value is greater than or equal to the right.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_ge()),
        [r#"{"$gte":["$a",2]}"#, r#"{"a":2}"#, "true"],
    ),
    ExprOperator::new(
        "$lt",
        "left: any, right: any",
        "Returns whether the left value is less than the right.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_lt()),
        [r#"{"$lt":["$a",1]}"#, r#"{"a":2}"#, "false"],
    ),
    ExprOperator::new(
        "$lte",
        "left: any, right: any",
        "Returns whether the left value is less than or equal to the right.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_le()),
        [r#"{"$lte":["$a",2]}"#, r#"{"a":2}"#, "true"],
    ),
    ExprOperator::new(
        "$ne",
        "left: any, right: any",
        "Returns whether the values differ.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_ne()),
        [r#"{"$ne":["$a",null]}"#, r#"{"a":1}"#, "true"],
    ),
];

/// Compares the arguments. A missing value is less than null.
fn compare(call: &OperatorCall, env: &Env) -> Result<Ordering> {
    let (left, right) = (call.field(0, env)?, call.field(1, env)?);
    if let (Some(left), Some(right)) = (&left, &right)
        && left.type_rank() == right.type_rank()
    {
        // The work of a comparison is bounded by the size of either value.
        measure(left, env.query)?;
        measure(right, env.query)?;
    }
    Ok(left.cmp(&right))
}
