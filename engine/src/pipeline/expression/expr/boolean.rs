//! Boolean operators.

use super::operator::Form::{AnyNumber, Exactly};
use super::operator::{Call, Operator};
use super::{Answer, Env, Expr, some};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new(
        "$and",
        "expression...: any",
        "Returns whether all expressions are true; stops at the first that is not.",
        AnyNumber,
        and,
        [r#"{"$and":["$a",{"$gt":["$b",1]}]}"#, r#"{"a":true,"b":2}"#, "true"],
    ),
    Operator::new(
        "$not",
        "expression: any",
        "Returns whether the value is not true.",
        Exactly(1),
        not,
        [r#"{"$not":["$a"]}"#, r#"{"a":0}"#, "true"],
    ),
    Operator::new(
        "$or",
        "expression...: any",
        "Returns whether any expression is true; stops at the first that is.",
        AnyNumber,
        or,
        [r#"{"$or":["$a","$b"]}"#, r#"{"a":null,"b":"x"}"#, "true"],
    ),
];

fn and(call: &Call, env: &Env) -> Answer {
    for index in 0..call.len() {
        if !Expr::truthy(call.field(index, env)?.as_ref()) {
            return some(false);
        }
    }
    some(true)
}

fn or(call: &Call, env: &Env) -> Answer {
    for index in 0..call.len() {
        if Expr::truthy(call.field(index, env)?.as_ref()) {
            return some(true);
        }
    }
    some(false)
}

fn not(call: &Call, env: &Env) -> Answer {
    some(!Expr::truthy(call.field(0, env)?.as_ref()))
}
