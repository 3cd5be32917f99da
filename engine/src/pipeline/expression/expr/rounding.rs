//! Rounding to a decimal place.

use super::operator::ArgumentForm::Between;
use super::operator::{ExprOperator, OperatorCall, name_table};
use super::{Answer, Env, NULL, some};
use crate::model::decimal::{Decimal, RoundingStrategy, to_double};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::err;
use crate::pipeline::value::number::{double, whole};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Rounds to a decimal place; ties round to the even digit.
    "$round"("number, place?: integer") [r#"{"$round":[2.5]}"#, "{}", "2.0"]: Between(1, 2), round;
    /// Truncates to a decimal place.
    "$trunc"("number, place?: integer") [r#"{"$trunc":[-1.57,1]}"#, "{}", "-1.5"]:
        Between(1, 2), trunc;
};

fn round(call: &OperatorCall, env: &Env) -> Answer {
    let half_even = |kept: i128, rest: i128, unit: i128| match (2 * rest).cmp(&unit) {
        std::cmp::Ordering::Less => kept,
        std::cmp::Ordering::Equal => kept + kept % 2,
        std::cmp::Ordering::Greater => kept + 1,
    };
    to_place(call, env, half_even, f64::round_ties_even, RoundingStrategy::MidpointNearestEven)
}

fn trunc(call: &OperatorCall, env: &Env) -> Answer {
    to_place(call, env, |kept, _, _| kept, f64::trunc, RoundingStrategy::ToZero)
}

/// Rounds the first argument to the decimal place in the second argument. `digits` rounds integers, and rounds doubles
/// to places other than 0. `digits` receives the quotient, the remainder and the divisor of an integer division by the
/// unit of the place, and returns the rounded quotient. `whole_of` rounds doubles to place 0, so the results are whole
/// numbers. `strategy` rounds decimals.
fn to_place(
    call: &OperatorCall,
    env: &Env,
    digits: fn(i128, i128, i128) -> i128,
    whole_of: fn(f64) -> f64,
    strategy: RoundingStrategy,
) -> Answer {
    let name = call.name();
    let value = call.value(0, env)?;
    let place = if call.has_argument(1) { call.value(1, env)? } else { Value::Int(0) };
    if value.is_null() || place.is_null() {
        return NULL;
    }
    double(name, 51081, &value)?;
    if !place.is_number() {
        return err!(16004, "{name} requires a numeric \"place\" argument, found: {}", place.type_name());
    }
    let Some(place) = whole(&place) else {
        return err!(51082, "invalid precision for {name}: {} is not a whole number", excerpt(&place));
    };
    if !(-20..=100).contains(&place) {
        return err!(51083, "cannot apply {name} with precision value {place} value must be in [-20, 100]");
    }
    match value {
        Value::Int(number) if place >= 0 => some(number),
        Value::Int(number) => {
            let unit = 10_i128.pow(place.unsigned_abs() as u32);
            let magnitude = i128::from(number).abs();
            let result = digits(magnitude / unit, magnitude % unit, unit) * unit * i128::from(number.signum());
            match i64::try_from(result) {
                Ok(result) => some(result),
                Err(_) => err!(51080, "invalid conversion from Decimal128 result in {name}"),
            }
        }
        Value::Decimal(number) => some(decimal_to_place(number, place as i32, strategy)),
        value => {
            let number = value.as_f64().unwrap_or(f64::NAN);
            some(double_to_place(number, place as i32, digits, whole_of))
        }
    }
}

fn decimal_to_place(number: Decimal, place: i32, strategy: RoundingStrategy) -> Value {
    if place >= 0 {
        return number.round_dp_with_strategy(place.unsigned_abs(), strategy).into();
    }
    // The place is at least -20.
    let unit = Decimal::from_i128_with_scale(10_i128.pow(place.unsigned_abs()), 0);
    let units = number.checked_div(unit).map(|units| units.round_dp_with_strategy(0, strategy));
    let rounded = units.and_then(|units| units.checked_mul(unit));
    rounded.map_or_else(|| Value::Double(to_double(number)), Value::Decimal)
}

/// Rounds a double by its first 34 significant digits, because MongoDB's decimals have 34 digits.
fn double_to_place(number: f64, place: i32, digits: fn(i128, i128, i128) -> i128, whole_of: fn(f64) -> f64) -> f64 {
    if place == 0 || !number.is_finite() || number == 0.0 {
        return whole_of(number);
    }
    let text = format!("{:.33e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').expect("scientific notation has an exponent");
    let fraction_len = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len()) as i32;
    let exponent: i32 = exponent.parse().expect("a double's exponent is small");
    // The number is `unscaled` times ten to the power of `-scale`.
    let scale = fraction_len - exponent;
    let cut = scale - place;
    if cut <= 0 {
        return number;
    }
    let unscaled: i128 = mantissa.replace('.', "").parse().expect("34 digits are a number");
    let kept = match 10_i128.checked_pow(cut as u32) {
        Some(unit) => digits(unscaled / unit, unscaled % unit, unit),
        None => 0,
    };
    let magnitude: f64 = format!("{kept}e{}", -place).parse().unwrap_or(0.0);
    magnitude.copysign(number)
}
