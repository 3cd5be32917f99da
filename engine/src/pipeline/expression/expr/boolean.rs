//! Boolean operators.

use super::operator::ArgumentForm::{AnyNumber, Exactly};
use super::operator::{ExprOperator, OperatorCall, name_table};
use super::{Answer, Env, Expr, some};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns whether all expressions are true; stops at the first expression that is not true.
    "$and"("expression...: any") [r#"{"$and":["$a",{"$gt":["$b",1]}]}"#, r#"{"a":true,"b":2}"#, "true"]:
        AnyNumber, and;
    /// Returns whether the value is not true.
    "$not"("expression: any") [r#"{"$not":["$a"]}"#, r#"{"a":0}"#, "true"]: Exactly(1), not;
    /// Returns whether any expression is true; stops at the first true expression.
    "$or"("expression...: any") [r#"{"$or":["$a","$b"]}"#, r#"{"a":null,"b":"x"}"#, "true"]:
        AnyNumber, or;
};

fn and(call: &OperatorCall, env: &Env) -> Answer {
    for index in 0..call.len() {
        if !Expr::truthy(call.field(index, env)?.as_ref()) {
            return some(false);
        }
    }
    some(true)
}

fn or(call: &OperatorCall, env: &Env) -> Answer {
    for index in 0..call.len() {
        if Expr::truthy(call.field(index, env)?.as_ref()) {
            return some(true);
        }
    }
    some(false)
}

fn not(call: &OperatorCall, env: &Env) -> Answer {
    some(!Expr::truthy(call.field(0, env)?.as_ref()))
}
