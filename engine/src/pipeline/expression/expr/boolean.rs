//! Boolean operators.

use super::operator::ArgumentForm::{AnyNumber, Exactly};
use super::operator::{ExprOperator, OperatorCall};
use super::{Answer, Env, Expr, some};

pub(super) static OPERATORS: &[ExprOperator] = &[
    ExprOperator::new(
        "$and",
        "expression...: any",
        "Returns whether all expressions are true; stops at the first that is not.",
        AnyNumber,
        and,
        [r#"{"$and":["$a",{"$gt":["$b",1]}]}"#, r#"{"a":true,"b":2}"#, "true"],
    ),
    ExprOperator::new(
        "$not",
        "expression: any",
        "Returns whether the value is not true.",
        Exactly(1),
        not,
        [r#"{"$not":["$a"]}"#, r#"{"a":0}"#, "true"],
    ),
    ExprOperator::new(
        "$or",
        "expression...: any",
        "Returns whether any expression is true; stops at the first that is.",
        AnyNumber,
        or,
        [r#"{"$or":["$a","$b"]}"#, r#"{"a":null,"b":"x"}"#, "true"],
    ),
];

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
