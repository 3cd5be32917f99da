//! Trigonometric operators.

use super::arithmetic::of_double;
use super::operator::ArgumentForm::Exactly;
use super::operator::{ExprOperator, OperatorCall, name_table};
use super::{Answer, Env, NULL, some};
use crate::pipeline::value::error::err;

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the inverse cosine, in radians.
    "$acos"("number") [r#"{"$acos":1}"#, "{}", "0.0"]:
        Exactly(1), |call, env| within(call, env, -1.0, 1.0, f64::acos);
    /// Returns the inverse hyperbolic cosine.
    "$acosh"("number") [r#"{"$acosh":1}"#, "{}", "0.0"]:
        Exactly(1), |call, env| within(call, env, 1.0, f64::INFINITY, f64::acosh);
    /// Returns the inverse sine, in radians.
    "$asin"("number") [r#"{"$asin":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| within(call, env, -1.0, 1.0, f64::asin);
    /// Returns the inverse hyperbolic sine.
    "$asinh"("number") [r#"{"$asinh":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| of_any_number(call, env, f64::asinh);
    /// Returns the inverse tangent, in radians.
    "$atan"("number") [r#"{"$atan":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| of_any_number(call, env, f64::atan);
    /// Returns the angle of a point, in radians.
    "$atan2"("y: number, x: number") [r#"{"$atan2":[0,1]}"#, "{}", "0.0"]: Exactly(2), atan2;
    /// Returns the inverse hyperbolic tangent.
    "$atanh"("number") [r#"{"$atanh":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| within(call, env, -1.0, 1.0, f64::atanh);
    /// Returns the cosine.
    "$cos"("radians: number") [r#"{"$cos":0}"#, "{}", "1.0"]:
        Exactly(1), |call, env| finite(call, env, f64::cos);
    /// Returns the hyperbolic cosine.
    "$cosh"("number") [r#"{"$cosh":0}"#, "{}", "1.0"]:
        Exactly(1), |call, env| of_any_number(call, env, f64::cosh);
    /// Converts an angle from degrees to radians.
    "$degreesToRadians"("degrees: number") [r#"{"$degreesToRadians":180}"#, "{}", "3.141592653589793"]:
        Exactly(1), |call, env| of_any_number(call, env, f64::to_radians);
    /// Converts an angle from radians to degrees.
    "$radiansToDegrees"("radians: number") [r#"{"$radiansToDegrees":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| of_any_number(call, env, f64::to_degrees);
    /// Returns the sine.
    "$sin"("radians: number") [r#"{"$sin":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| finite(call, env, f64::sin);
    /// Returns the hyperbolic sine.
    "$sinh"("number") [r#"{"$sinh":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| of_any_number(call, env, f64::sinh);
    /// Returns the tangent.
    "$tan"("radians: number") [r#"{"$tan":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| finite(call, env, f64::tan);
    /// Returns the hyperbolic tangent.
    "$tanh"("number") [r#"{"$tanh":0}"#, "{}", "0.0"]:
        Exactly(1), |call, env| of_any_number(call, env, f64::tanh);
};

fn of_any_number(call: &OperatorCall, env: &Env, apply: fn(f64) -> f64) -> Answer {
    of_double(call, env, |number| Ok(apply(number)))
}

fn finite(call: &OperatorCall, env: &Env, apply: fn(f64) -> f64) -> Answer {
    of_double(call, env, |number| {
        if number.is_infinite() {
            return err!(50989, "cannot apply {} to {number}, value must be in (-inf,inf)", call.name());
        }
        Ok(apply(number))
    })
}

fn within(call: &OperatorCall, env: &Env, low: f64, high: f64, apply: fn(f64) -> f64) -> Answer {
    of_double(call, env, |number| {
        if number < low || number > high {
            return err!(50989, "cannot apply {} to {number}, value must be in [{low},{high}]", call.name());
        }
        Ok(apply(number))
    })
}

fn atan2(call: &OperatorCall, env: &Env) -> Answer {
    let (y, x) = (call.value(0, env)?, call.value(1, env)?);
    match (y.as_f64(), x.as_f64()) {
        (Some(y), Some(x)) => some(y.atan2(x)),
        _ if y.is_null() || x.is_null() => NULL,
        _ => err!(51044, "$atan2 only supports numeric types, not {} and {}", y.type_name(), x.type_name()),
    }
}
