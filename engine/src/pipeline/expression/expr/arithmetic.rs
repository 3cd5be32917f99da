//! Arithmetic operators.

use super::operator::ArgumentForm::{AnyNumber, Exactly, Own};
use super::operator::{ExprOperator, OperatorArguments, OperatorCall, name_table};
use super::{Answer, Env, NULL, ParseScope, parse, some};
use crate::model::decimal::Decimal;
use crate::model::number::{add, multiply, remainder};
use crate::model::value::Value;
use crate::pipeline::value::arithmetic::{difference, moved, ratio};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::double;

/// The remark on operands of different types in the documentation of arithmetic operators.
const WITH_DECIMALS: &str = "If an operand is a decimal, the result is a decimal of up to 28 digits, and doubles are \
                             converted by their shortest text. A result outside the range of decimals is a double.";

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the absolute value.
    "$abs"("number") [r#"{"$abs":-1}"#, "{}", "1"]: Exactly(1), abs;
    /// Returns the sum; if one argument is a date, the numbers are added to the date as milliseconds.
    "$add"("number...: number") [r#"{"$add":["$a",2]}"#, r#"{"a":3}"#, "5"].remark(WITH_DECIMALS):
        AnyNumber, eval_add;
    /// Returns the smallest integer that is greater than or equal to the number.
    "$ceil"("number") [r#"{"$ceil":1.2}"#, "{}", "2.0"]:
        Exactly(1), |call, env| whole_part(call, env, f64::ceil, |number| number.ceil());
    /// Returns the quotient as a double, or as a decimal if one of the numbers is a decimal.
    "$divide"("dividend: number, divisor: number") [r#"{"$divide":["$a",2]}"#, r#"{"a":5}"#, "2.5"]
        .remark("A quotient of decimals has up to 28 digits, the last one rounded, and no trailing zeros."):
        Exactly(2), |call, env| ratio(&call.value(0, env)?, &call.value(1, env)?).map(Some);
    /// Returns Euler's number raised to a power.
    "$exp"("exponent: number") [r#"{"$exp":0}"#, "{}", "1.0"]:
        Exactly(1), |call, env| of_double(call, env, |number| Ok(number.exp()));
    /// Returns the largest integer that is less than or equal to the number.
    "$floor"("number") [r#"{"$floor":-1.2}"#, "{}", "-2.0"]:
        Exactly(1), |call, env| whole_part(call, env, f64::floor, |number| number.floor());
    /// Returns the natural logarithm.
    "$ln"("number") [r#"{"$ln":1}"#, "{}", "0.0"]:
        Exactly(1), |call, env| of_double(call, env, |number| positive("$ln's argument", 28766, number).map(f64::ln));
    /// Returns the logarithm to a base.
    "$log"("number, base: number") [r#"{"$log":[8,2]}"#, "{}", "3.0"]: Exactly(2), log;
    /// Returns the logarithm to base 10.
    "$log10"("number") [r#"{"$log10":100}"#, "{}", "2.0"]:
        Exactly(1),
        |call, env| of_double(call, env, |number| positive("$log10's argument", 28761, number).map(f64::log10));
    /// Returns the remainder with the sign of the dividend.
    "$mod"("dividend: number, divisor: number") [r#"{"$mod":[-7,3]}"#, "{}", "-1"]:
        Exactly(2), modulo;
    /// Returns the product.
    "$multiply"("number...: number") [r#"{"$multiply":["$price","$count"]}"#, r#"{"price":2.5,"count":2}"#, "5.0"]
        .remark(WITH_DECIMALS): AnyNumber, eval_multiply;
    /// Returns a number raised to a power.
    "$pow"("number, exponent: number") [r#"{"$pow":[2,10]}"#, "{}", "1024"]: Exactly(2), pow;
    /// Returns the value of the logistic function.
    "$sigmoid"("number") [r#"{"$sigmoid":0}"#, "{}", "0.5"]:
        Own(|spec, scope: &ParseScope| Ok(OperatorArguments::from(vec![Some(parse(spec, scope)?)]))), sigmoid;
    /// Returns the square root.
    "$sqrt"("number") [r#"{"$sqrt":9}"#, "{}", "3.0"]: Exactly(1), sqrt;
    /// Returns the difference; for two dates, in milliseconds; for a date and a number, the date minus milliseconds.
    "$subtract"("minuend: number | date, subtrahend: number | date") [r#"{"$subtract":["$a",1]}"#, r#"{"a":3}"#, "2"]
        .remark(WITH_DECIMALS):
        Exactly(2), |call, env| difference(&call.value(0, env)?, &call.value(1, env)?).map(Some);
};

fn abs(call: &OperatorCall, env: &Env) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        Value::Int(number) => match number.checked_abs() {
            Some(result) => some(result),
            None => Err(Error::new(28680, "can't take $abs of long long min")),
        },
        Value::Decimal(number) => some(number.abs()),
        value => some(double(call.name(), 28765, &value)?.abs()),
    }
}

fn eval_add(call: &OperatorCall, env: &Env) -> Answer {
    let mut sum = Value::Int(0);
    // Each number after a date is rounded to milliseconds and added to the date separately.
    let mut date: Option<i64> = None;
    for index in 0..call.len() {
        match call.value(index, env)? {
            Value::Null => return NULL,
            Value::Date(_) if date.is_some() => {
                return Err(Error::new(16612, "only one date allowed in an $add expression"));
            }
            Value::Date(ms) => date = Some(moved(ms, &sum)?),
            value if value.is_number() => match date {
                Some(ms) => date = Some(moved(ms, &value)?),
                None => sum = add(&sum, &value),
            },
            value => return err!(14, "$add only supports numeric or date types, not {}", value.type_name()),
        }
    }
    some(date.map_or(sum, Value::Date))
}

fn whole_part(call: &OperatorCall, env: &Env, apply: fn(f64) -> f64, of_decimal: fn(Decimal) -> Decimal) -> Answer {
    match call.value(0, env)? {
        value @ (Value::Null | Value::Int(_)) => some(value),
        Value::Decimal(number) => some(of_decimal(number)),
        value => some(apply(double(call.name(), 28765, &value)?)),
    }
}

/// Evaluates a function of one number that returns a double.
pub(super) fn of_double(call: &OperatorCall, env: &Env, apply: impl Fn(f64) -> Result<f64>) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        value => some(apply(double(call.name(), 28765, &value)?)?),
    }
}

fn log(call: &OperatorCall, env: &Env) -> Answer {
    call.of_pair(env, |number, base| {
        let number = double("$log's argument", 28756, number)?;
        let base = double("$log's base", 28757, base)?;
        let number = positive("$log's argument", 28758, number)?;
        if base <= 0.0 || base == 1.0 {
            return err!(28759, "$log's base must be a positive number not equal to 1, but is {base}");
        }
        // `log2` and `log10` return exact results for powers of their bases.
        some(match base {
            2.0 => number.log2(),
            10.0 => number.log10(),
            _ => number.ln() / base.ln(),
        })
    })
}

fn positive(what: &str, code: i32, number: f64) -> Result<f64> {
    if number <= 0.0 {
        return err!(code, "{what} must be a positive number, but is {number}");
    }
    Ok(number)
}

fn modulo(call: &OperatorCall, env: &Env) -> Answer {
    call.of_pair(env, |dividend, divisor| {
        let (true, Some(by)) = (dividend.is_number(), divisor.as_f64()) else {
            let (a, b) = (dividend.type_name(), divisor.type_name());
            return err!(16611, "$mod only supports numeric types, not {a} and {b}");
        };
        if by == 0.0 {
            return Err(Error::new(16610, "can't $mod by zero"));
        }
        some(remainder(dividend, divisor))
    })
}

fn eval_multiply(call: &OperatorCall, env: &Env) -> Answer {
    let mut product = Value::Int(1);
    for index in 0..call.len() {
        match call.value(index, env)? {
            Value::Null => return NULL,
            value if value.is_number() => product = multiply(&product, &value),
            value => return err!(14, "$multiply only supports numeric types, not {}", value.type_name()),
        }
    }
    some(product)
}

fn pow(call: &OperatorCall, env: &Env) -> Answer {
    call.of_pair(env, |base, exponent| {
        let base_double = double("$pow's base", 28762, base)?;
        let exponent_double = double("$pow's exponent", 28763, exponent)?;
        if base_double == 0.0 && exponent_double < 0.0 {
            return Err(Error::new(28764, "$pow cannot take a base of 0 and a negative exponent"));
        }
        if let (Value::Int(base), Value::Int(exponent)) = (base, exponent) {
            let exact = match (base, u32::try_from(*exponent)) {
                (1, _) => Some(1),
                (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
                (_, Ok(exponent)) => base.checked_pow(exponent),
                _ => None,
            };
            if let Some(result) = exact {
                return some(result);
            }
        }
        some(base_double.powf(exponent_double))
    })
}

fn sigmoid(call: &OperatorCall, env: &Env) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        value => some(1.0 / (1.0 + (-double(call.name(), 14, &value)?).exp())),
    }
}

fn sqrt(call: &OperatorCall, env: &Env) -> Answer {
    of_double(call, env, |number| {
        if number < 0.0 {
            return Err(Error::new(28714, "$sqrt's argument must be greater than or equal to 0"));
        }
        Ok(number.sqrt())
    })
}
