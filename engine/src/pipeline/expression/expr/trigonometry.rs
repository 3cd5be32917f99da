//! Trigonometric operators.

use super::arithmetic::of_double;
use super::operator::ArgumentForm::Exactly;
use super::operator::{ExprOperator, OperatorCall};
use super::{Answer, Env, NULL, some};
use crate::pipeline::value::error::Error;

/// Returns the table entry of an operator with one argument.
const fn row(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    eval: fn(&OperatorCall, &Env) -> Answer,
    example: [&'static str; 3],
) -> ExprOperator {
    ExprOperator::new(name, arguments, summary, Exactly(1), eval, example)
}

pub(super) static OPERATORS: &[ExprOperator] = &[
    row(
        "$acos",
        "number",
        "Returns the inverse cosine, in radians.",
        |call, env| within(call, env, -1.0, 1.0, f64::acos),
        [r#"{"$acos":1}"#, "{}", "0.0"],
    ),
    row(
        "$acosh",
        "number",
        "Returns the inverse hyperbolic cosine.",
        |call, env| within(call, env, 1.0, f64::INFINITY, f64::acosh),
        [r#"{"$acosh":1}"#, "{}", "0.0"],
    ),
    row(
        "$asin",
        "number",
        "Returns the inverse sine, in radians.",
        |call, env| within(call, env, -1.0, 1.0, f64::asin),
        [r#"{"$asin":0}"#, "{}", "0.0"],
    ),
    row(
        "$asinh",
        "number",
        "Returns the inverse hyperbolic sine.",
        |call, env| anywhere(call, env, f64::asinh),
        [r#"{"$asinh":0}"#, "{}", "0.0"],
    ),
    row(
        "$atan",
        "number",
        "Returns the inverse tangent, in radians.",
        |call, env| anywhere(call, env, f64::atan),
        [r#"{"$atan":0}"#, "{}", "0.0"],
    ),
    ExprOperator::new(
        "$atan2",
        "y: number, x: number",
        "Returns the angle of a point, in radians.",
        Exactly(2),
        atan2,
        [r#"{"$atan2":[0,1]}"#, "{}", "0.0"],
    ),
    row(
        "$atanh",
        "number",
        "Returns the inverse hyperbolic tangent.",
        |call, env| within(call, env, -1.0, 1.0, f64::atanh),
        [r#"{"$atanh":0}"#, "{}", "0.0"],
    ),
    row(
        "$cos",
        "radians: number",
        "Returns the cosine.",
        |call, env| finite(call, env, f64::cos),
        [r#"{"$cos":0}"#, "{}", "1.0"],
    ),
    row(
        "$cosh",
        "number",
        "Returns the hyperbolic cosine.",
        |call, env| anywhere(call, env, f64::cosh),
        [r#"{"$cosh":0}"#, "{}", "1.0"],
    ),
    row(
        "$degreesToRadians",
        "degrees: number",
        "Converts an angle from degrees to radians.",
        |call, env| anywhere(call, env, f64::to_radians),
        [r#"{"$degreesToRadians":180}"#, "{}", "3.141592653589793"],
    ),
    row(
        "$radiansToDegrees",
        "radians: number",
        "Converts an angle from radians to degrees.",
        |call, env| anywhere(call, env, f64::to_degrees),
        [r#"{"$radiansToDegrees":0}"#, "{}", "0.0"],
    ),
    row(
        "$sin",
        "radians: number",
        "Returns the sine.",
        |call, env| finite(call, env, f64::sin),
        [r#"{"$sin":0}"#, "{}", "0.0"],
    ),
    row(
        "$sinh",
        "number",
        "Returns the hyperbolic sine.",
        |call, env| anywhere(call, env, f64::sinh),
        [r#"{"$sinh":0}"#, "{}", "0.0"],
    ),
    row(
        "$tan",
        "radians: number",
        "Returns the tangent.",
        |call, env| finite(call, env, f64::tan),
        [r#"{"$tan":0}"#, "{}", "0.0"],
    ),
    row(
        "$tanh",
        "number",
        "Returns the hyperbolic tangent.",
        |call, env| anywhere(call, env, f64::tanh),
        [r#"{"$tanh":0}"#, "{}", "0.0"],
    ),
];

fn anywhere(call: &OperatorCall, env: &Env, apply: fn(f64) -> f64) -> Answer {
    of_double(call, env, |number| Ok(apply(number)))
}

fn finite(call: &OperatorCall, env: &Env, apply: fn(f64) -> f64) -> Answer {
    of_double(call, env, |number| {
        if number.is_infinite() {
            let name = call.name();
            return Err(Error::new(50989, format!("cannot apply {name} to {number}, value must be in (-inf,inf)")));
        }
        Ok(apply(number))
    })
}

fn within(call: &OperatorCall, env: &Env, low: f64, high: f64, apply: fn(f64) -> f64) -> Answer {
    of_double(call, env, |number| {
        if number < low || number > high {
            let name = call.name();
            return Err(Error::new(50989, format!("cannot apply {name} to {number}, value must be in [{low},{high}]")));
        }
        Ok(apply(number))
    })
}

fn atan2(call: &OperatorCall, env: &Env) -> Answer {
    let (y, x) = (call.value(0, env)?, call.value(1, env)?);
    match (y.as_f64(), x.as_f64()) {
        (Some(y), Some(x)) => some(y.atan2(x)),
        _ if y.is_null() || x.is_null() => NULL,
        _ => {
            let (y, x) = (y.type_name(), x.type_name());
            Err(Error::new(51044, format!("$atan2 only supports numeric types, not {y} and {x}")))
        }
    }
}
