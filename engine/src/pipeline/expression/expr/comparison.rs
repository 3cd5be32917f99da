//! Comparisons over the total order of all values.

use std::cmp::Ordering;

use super::operator::Form::Exactly;
use super::operator::{Call, Operator};
use super::{Env, some};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::look;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new(
        "$cmp",
        "left: any, right: any",
        "-1, 0 or 1, as the left value is less, equal or greater.",
        Exactly(2),
        |call, env| some(compare(call, env)? as i64),
        [r#"{"$cmp":["$a",2]}"#, r#"{"a":1}"#, "-1"],
    ),
    Operator::new(
        "$eq",
        "left: any, right: any",
        "Whether the values are equal.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_eq()),
        [r#"{"$eq":["$a",1.0]}"#, r#"{"a":1}"#, "true"],
    ),
    Operator::new(
        "$gt",
        "left: any, right: any",
        "Whether the left value is greater.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_gt()),
        [r#"{"$gt":["$a",1]}"#, r#"{"a":2}"#, "true"],
    ),
    Operator::new(
        "$gte",
        "left: any, right: any",
        "Whether the left value is greater or equal.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_ge()),
        [r#"{"$gte":["$a",2]}"#, r#"{"a":2}"#, "true"],
    ),
    Operator::new(
        "$lt",
        "left: any, right: any",
        "Whether the left value is less.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_lt()),
        [r#"{"$lt":["$a",1]}"#, r#"{"a":2}"#, "false"],
    ),
    Operator::new(
        "$lte",
        "left: any, right: any",
        "Whether the left value is less or equal.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_le()),
        [r#"{"$lte":["$a",2]}"#, r#"{"a":2}"#, "true"],
    ),
    Operator::new(
        "$ne",
        "left: any, right: any",
        "Whether the values differ.",
        Exactly(2),
        |call, env| some(compare(call, env)?.is_ne()),
        [r#"{"$ne":["$a",null]}"#, r#"{"a":1}"#, "true"],
    ),
];

/// A missing value is less than null.
fn compare(call: &Call, env: &Env) -> Result<Ordering> {
    let (left, right) = (call.field(0, env)?, call.field(1, env)?);
    if let (Some(left), Some(right)) = (&left, &right)
        && left.type_rank() == right.type_rank()
    {
        // Comparing takes no longer than looking at either.
        look(left, env.query)?;
        look(right, env.query)?;
    }
    Ok(left.cmp(&right))
}
