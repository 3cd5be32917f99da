//! Comparisons over the total order of all values.

use std::cmp::Ordering;

use super::operator::ArgumentForm::Exactly;
use super::operator::{ExprOperator, OperatorCall, name_table};
use super::{Env, some};
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns -1, 0 or 1 if the left value is less than, equal to or greater than the right value.
    "$cmp"("left: any, right: any") [r#"{"$cmp":["$a",2]}"#, r#"{"a":1}"#, "-1"]:
        Exactly(2), |call, env| some(compare(call, env)? as i64);
    /// Returns whether the values are equal.
    "$eq"("left: any, right: any") [r#"{"$eq":["$a",1.0]}"#, r#"{"a":1}"#, "true"]:
        Exactly(2), |call, env| some(compare(call, env)?.is_eq());
    /// Returns whether the left value is greater than the right value.
    "$gt"("left: any, right: any") [r#"{"$gt":["$a",1]}"#, r#"{"a":2}"#, "true"]:
        Exactly(2), |call, env| some(compare(call, env)?.is_gt());
    /// Returns whether the left value is greater than or equal to the right value.
    "$gte"("left: any, right: any") [r#"{"$gte":["$a",2]}"#, r#"{"a":2}"#, "true"]:
        Exactly(2), |call, env| some(compare(call, env)?.is_ge());
    /// Returns whether the left value is less than the right value.
    "$lt"("left: any, right: any") [r#"{"$lt":["$a",1]}"#, r#"{"a":2}"#, "false"]:
        Exactly(2), |call, env| some(compare(call, env)?.is_lt());
    /// Returns whether the left value is less than or equal to the right value.
    "$lte"("left: any, right: any") [r#"{"$lte":["$a",2]}"#, r#"{"a":2}"#, "true"]:
        Exactly(2), |call, env| some(compare(call, env)?.is_le());
    /// Returns whether the values differ.
    "$ne"("left: any, right: any") [r#"{"$ne":["$a",null]}"#, r#"{"a":1}"#, "true"]:
        Exactly(2), |call, env| some(compare(call, env)?.is_ne());
};

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
