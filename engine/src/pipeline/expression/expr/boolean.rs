//! Boolean operators.

use super::operator::ArgumentForm::{AnyNumber, Exactly};
use super::operator::{ExprOperator, OperatorCall, name_table};
use super::{Env, Expr, some};
use crate::pipeline::expression::quantifier::{all, any};
use crate::pipeline::value::error::Result;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns whether all expressions are true; stops at the first expression that is not true.
    "$and"("expression...: any") [r#"{"$and":["$a",{"$gt":["$b",1]}]}"#, r#"{"a":true,"b":2}"#, "true"]:
        AnyNumber, |call, env| some(all(0..call.len(), |index| is_true(call, index, env))?);
    /// Returns whether the value is not true.
    "$not"("expression: any") [r#"{"$not":["$a"]}"#, r#"{"a":0}"#, "true"]:
        Exactly(1), |call, env| some(!is_true(call, 0, env)?);
    /// Returns whether any expression is true; stops at the first true expression.
    "$or"("expression...: any") [r#"{"$or":["$a","$b"]}"#, r#"{"a":null,"b":"x"}"#, "true"]:
        AnyNumber, |call, env| some(any(0..call.len(), |index| is_true(call, index, env))?);
};

/// Returns whether an argument counts as true.
fn is_true(call: &OperatorCall, index: usize, env: &Env) -> Result<bool> {
    Ok(Expr::truthy(call.field(index, env)?.as_ref()))
}
