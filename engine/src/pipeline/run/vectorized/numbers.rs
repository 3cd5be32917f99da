//! The integers that satisfy a comparison with a number, as ranges.

use std::ops::RangeInclusive;

use crate::model::decimal::{self, Decimal};
use crate::model::value::Value;
use crate::pipeline::expression::filter::Comparison;

const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// The empty range.
const EMPTY_RANGE: RangeInclusive<i64> = RangeInclusive::new(1, 0);

/// Returns the integers that satisfy a comparison with the operand, or `None` if the operand is not a number.
pub fn ints(comparison: Comparison, operand: &Value) -> Option<RangeInclusive<i64>> {
    Some(match (operand, comparison) {
        (Value::Int(number), Comparison::Eq) => *number..=*number,
        (Value::Int(number), Comparison::Gt) => number.checked_add(1).map_or(EMPTY_RANGE, |least| least..=i64::MAX),
        (Value::Int(number), Comparison::Gte) => *number..=i64::MAX,
        (Value::Int(number), Comparison::Lt) => number.checked_sub(1).map_or(EMPTY_RANGE, |most| i64::MIN..=most),
        (Value::Int(number), Comparison::Lte) => i64::MIN..=*number,
        (Value::Double(number), comparison) => against_double(comparison, *number),
        (Value::Decimal(number), comparison) => match decimal::whole(*number) {
            Some(number) => return ints(comparison, &Value::Int(number)),
            None => against_decimal(comparison, *number),
        },
        _ => return None,
    })
}

/// Returns the integers that satisfy a comparison with a decimal that is not a 64-bit integer.
fn against_decimal(comparison: Comparison, number: Decimal) -> RangeInclusive<i64> {
    let all = i64::MIN..=i64::MAX;
    match (comparison, i64::try_from(number.floor().mantissa())) {
        (Comparison::Eq, _) => EMPTY_RANGE,
        (Comparison::Gt | Comparison::Gte, Ok(below)) => {
            below.checked_add(1).map_or(EMPTY_RANGE, |least| least..=i64::MAX)
        }
        (Comparison::Lt | Comparison::Lte, Ok(below)) => i64::MIN..=below,
        (Comparison::Gt | Comparison::Gte, Err(_)) if number.is_sign_negative() => all,
        (Comparison::Lt | Comparison::Lte, Err(_)) if number.is_sign_positive() => all,
        (_, Err(_)) => EMPTY_RANGE,
    }
}

fn against_double(comparison: Comparison, number: f64) -> RangeInclusive<i64> {
    if number.is_nan() {
        return EMPTY_RANGE;
    }
    let (all, low, high) = (i64::MIN..=i64::MAX, number < -LIMIT, number >= LIMIT);
    match comparison {
        Comparison::Eq if low || high || number.fract() != 0.0 => EMPTY_RANGE,
        Comparison::Gt | Comparison::Gte if low => all,
        Comparison::Lt | Comparison::Lte if high => all,
        Comparison::Gt | Comparison::Gte if high => EMPTY_RANGE,
        Comparison::Lt | Comparison::Lte if low => EMPTY_RANGE,
        Comparison::Eq => number as i64..=number as i64,
        Comparison::Gt => (number.floor() as i64).checked_add(1).map_or(EMPTY_RANGE, |least| least..=i64::MAX),
        // A number that rounds up to 2^63 is greater than every integer.
        Comparison::Gte if number.ceil() >= LIMIT => EMPTY_RANGE,
        Comparison::Gte => number.ceil() as i64..=i64::MAX,
        Comparison::Lt if number.ceil() >= LIMIT => all,
        Comparison::Lt => (number.ceil() as i64).checked_sub(1).map_or(EMPTY_RANGE, |most| i64::MIN..=most),
        Comparison::Lte => i64::MIN..=number.floor() as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_exactly_the_integers_for_which_the_comparison_holds() {
        let ints = [i64::MIN, i64::MIN + 1, -(1 << 53) - 1, -2, -1, 0, 1, 2, (1 << 53) + 1, i64::MAX - 1, i64::MAX];
        let doubles = [-1e300, -LIMIT, -2.5, -2.0, -0.0, 0.5, 2.0, 9_007_199_254_740_993.0, LIMIT, 1e300, f64::NAN];
        let decimals = ["-9223372036854775808.5", "-2.5", "-0.0", "2.00", "0.1", "9223372036854775807.5", "9e27"];
        let decimals = decimals.map(|text| Value::Decimal(decimal::of_number(text).expect("a decimal")));
        let operands = ints.iter().map(|int| Value::Int(*int)).chain(doubles.map(Value::Double)).chain(decimals);
        for operand in operands {
            for comparison in [Comparison::Eq, Comparison::Gt, Comparison::Gte, Comparison::Lt, Comparison::Lte] {
                let range = super::ints(comparison, &operand).expect("a number");
                for int in ints {
                    let holds = comparison.holds(Some(&Value::Int(int)), &operand);
                    assert_eq!(range.contains(&int), holds, "{int} {comparison:?} {operand:?}");
                }
            }
        }
    }
}
