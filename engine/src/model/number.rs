//! Arithmetic on numbers of all types.
//!
//! If at least one operand is a decimal, the other operand is converted to a decimal, and the result is a decimal.
//! Integers are converted exactly. A double is converted to the shortest of the decimals that round to this double. If
//! no decimal can represent an operand, the result is a double.
//!
//! Without decimals, a division returns a double. Every other operation returns an integer for two integers, and
//! otherwise a double.
//!
//! A result that does not fit the type is returned as a double.

use super::decimal::{self, Decimal};
use super::value::Value;

/// Returns the sum of two numbers.
pub fn add(a: &Value, b: &Value) -> Value {
    combine(a, b, i64::checked_add, Decimal::checked_add, |a, b| a + b)
}

pub fn subtract(a: &Value, b: &Value) -> Value {
    combine(a, b, i64::checked_sub, Decimal::checked_sub, |a, b| a - b)
}

pub fn multiply(a: &Value, b: &Value) -> Value {
    combine(a, b, i64::checked_mul, Decimal::checked_mul, |a, b| a * b)
}

/// Returns the quotient of two numbers. The quotient of two integers is a double. A decimal quotient has no trailing
/// zeros. The divisor must not be 0.
pub fn divide(a: &Value, b: &Value) -> Value {
    // The quotient of two integers is always a double.
    combine(a, b, |_, _| None, |a, b| a.checked_div(b).map(|quotient| quotient.normalize()), |a, b| a / b)
}

/// Returns the remainder with the sign of the dividend. The divisor must not be 0.
pub fn remainder(a: &Value, b: &Value) -> Value {
    // Dividing the lowest integer by -1 overflows. The remainder is 0.
    combine(a, b, |a, b| Some(a.checked_rem(b).unwrap_or(0)), Decimal::checked_rem, |a, b| a % b)
}

fn combine(
    a: &Value,
    b: &Value,
    ints: fn(i64, i64) -> Option<i64>,
    decimals: fn(Decimal, Decimal) -> Option<Decimal>,
    doubles: fn(f64, f64) -> f64,
) -> Value {
    let exact = match (a, b) {
        (Value::Int(a), Value::Int(b)) => ints(*a, *b).map(Value::Int),
        (Value::Decimal(_), _) | (_, Value::Decimal(_)) => {
            let both = to_decimal(a).zip(to_decimal(b));
            both.and_then(|(a, b)| decimals(a, b)).map(Value::Decimal)
        }
        _ => None,
    };
    exact.unwrap_or_else(|| Value::Double(doubles(a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN))))
}

/// Returns a number as a decimal, if a decimal can represent the number.
pub fn to_decimal(number: &Value) -> Option<Decimal> {
    match number {
        Value::Int(number) => Some(Decimal::from(*number)),
        Value::Double(number) => decimal::of_double(*number),
        Value::Decimal(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Value {
        Value::Decimal(decimal::parse(text).expect("a decimal"))
    }

    fn shown(value: Value) -> String {
        format!("{} {}", value.type_name(), crate::model::json::text(&value))
    }

    #[test]
    fn the_result_type_of_arithmetic_depends_on_the_types_of_the_operands() {
        for (result, expected) in [
            (add(&decimal("0.10"), &decimal("0.20")), r#"decimal "0.30""#),
            (add(&Value::Double(0.1), &decimal("0.2")), r#"decimal "0.3""#),
            (subtract(&Value::Int(1), &decimal("0.05")), r#"decimal "0.95""#),
            (multiply(&decimal("12.30"), &Value::Double(1.19)), r#"decimal "14.6370""#),
            (divide(&decimal("10"), &Value::Int(4)), r#"decimal "2.5""#),
            (divide(&decimal("1"), &decimal("3")), r#"decimal "0.3333333333333333333333333333""#),
            (remainder(&decimal("-7.5"), &Value::Int(2)), r#"decimal "-1.5""#),
            (divide(&Value::Int(10), &Value::Int(4)), "double 2.5"),
            (remainder(&Value::Int(i64::MIN), &Value::Int(-1)), "int 0"),
            (add(&Value::Int(i64::MAX), &Value::Int(1)), "double 9.223372036854776e+18"),
        ] {
            assert_eq!(shown(result), expected);
        }
    }

    #[test]
    fn results_outside_the_range_of_decimals_are_doubles() {
        let most = decimal("79228162514264337593543950335");
        assert_eq!(shown(add(&most, &most)), "double 1.5845632502852868e+29");
        assert_eq!(shown(multiply(&most, &Value::Double(1e300))), "double null");
        assert_eq!(shown(add(&decimal("1"), &Value::Double(f64::INFINITY))), "double null");
    }
}
