//! Exact decimal numbers, and their conversion to and from strings, integers and doubles.
//!
//! A decimal has up to 28 digits after the point. All digits together, without the point, form an integer below 2^96,
//! so any 28 digits are allowed, and 29 digits only below this limit. A decimal keeps its trailing zeros, because
//! amounts of money are written with trailing zeros.

use std::cmp::Ordering;

use super::value::Value;

pub use rust_decimal::{Decimal, RoundingStrategy};

/// The maximum length of a text that is parsed as a decimal, in bytes. The text of every decimal is shorter.
const MAX_TEXT: usize = 64;
/// The least number that is too large for a decimal, 2^96.
const LIMIT: f64 = 79_228_162_514_264_337_593_543_950_336.0;

/// Parses the text of a decimal such as `-12.30`: digits, and possibly a minus sign and a fraction. Returns `None` for
/// other strings, for more than [`MAX_TEXT`] bytes, and for numbers that a decimal cannot represent exactly.
pub fn parse(text: &str) -> Option<Decimal> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(whole) && is_number(fraction) { of_number(text) } else { None }
}

/// Parses a number with or without an exponent, as JSON and programming languages write numbers. Returns `None` for
/// other strings, for more than [`MAX_TEXT`] bytes, for exponents beyond ±[`MAX_TEXT`], and for numbers that a decimal
/// cannot represent exactly.
pub fn of_number(text: &str) -> Option<Decimal> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let (is_negative, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.unsigned_abs() <= MAX_TEXT as u32)?;
    let mut scale = i32::try_from(fraction.len()).ok()? - exponent;
    while scale < 0 {
        digits.push('0');
        scale += 1;
    }
    // Trailing zeros of the fraction do not change the number.
    while digits.ends_with('0') && (scale > Decimal::MAX_SCALE as i32 || (scale > 0 && exceeds_limit(&digits))) {
        digits.pop();
        scale -= 1;
    }
    let digits = digits.trim_start_matches('0');
    let magnitude: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let scale = if digits.is_empty() { scale.min(Decimal::MAX_SCALE as i32) } else { scale };
    let signed = if is_negative { -magnitude } else { magnitude };
    Decimal::try_from_i128_with_scale(signed, u32::try_from(scale).ok()?).ok()
}

/// Returns whether an integer with these digits is too large for a decimal.
fn exceeds_limit(digits: &str) -> bool {
    digits.len() > Decimal::MAX_SCALE as usize && digits.parse().map_or(true, |magnitude: u128| magnitude >> 96 != 0)
}

/// Returns the decimal with the fewest digits whose nearest double is `double`. JSON shows the number with the same
/// digits. Returns `None` for NaN, infinities, and numbers that need more digits than a decimal has.
pub fn of_double(double: f64) -> Option<Decimal> {
    if !double.is_finite() || double.abs() >= LIMIT {
        return None;
    }
    of_number(&format!("{double:e}"))
}

/// Returns the double that is nearest to the decimal.
pub fn to_double(decimal: Decimal) -> f64 {
    decimal.to_string().parse().unwrap_or(f64::NAN)
}

/// Returns the integer, if the decimal has no fraction and fits 64 bits.
pub fn whole(decimal: Decimal) -> Option<i64> {
    let whole = decimal.trunc();
    if whole == decimal { i64::try_from(whole.mantissa()).ok() } else { None }
}

/// Compares a decimal with the exact value of a double. NaN is less than every number.
pub fn compare_double(decimal: Decimal, double: f64) -> Ordering {
    if double.is_nan() || double <= -LIMIT {
        return Ordering::Greater;
    }
    if double >= LIMIT {
        return Ordering::Less;
    }
    let is_negative = decimal.is_sign_negative() && !decimal.is_zero();
    match (is_negative, double < 0.0) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => compare_magnitudes(decimal, double),
        (true, true) => compare_magnitudes(decimal, double).reverse(),
    }
}

/// Compares the magnitudes of two numbers below 2^96: first the integer parts, then the fractions bit by bit. The
/// operations on the double are exact.
fn compare_magnitudes(decimal: Decimal, double: f64) -> Ordering {
    let (whole, double) = (double.abs().trunc(), double.abs());
    let order = decimal.trunc().mantissa().unsigned_abs().cmp(&(whole as u128));
    if order.is_ne() {
        return order;
    }
    let mut fraction = double - whole;
    let rest = decimal.fract();
    let (mut part, unit) = (rest.mantissa().unsigned_abs(), 10_u128.pow(rest.scale()));
    while part != 0 && fraction != 0.0 {
        (part, fraction) = (part * 2, fraction * 2.0);
        match (part >= unit, fraction >= 1.0) {
            (true, true) => (part, fraction) = (part - unit, fraction - 1.0),
            (false, false) => {}
            (ours, theirs) => return ours.cmp(&theirs),
        }
    }
    (part != 0).cmp(&(fraction != 0.0))
}

/// Converts a payload's value to a decimal. The value is a number, or a string that contains a decimal. If the value is
/// a double that only approximates the number in the payload, `written` is the original text of the number. Returns
/// `None` for any other value, and for a number that a decimal cannot represent exactly.
pub fn decimal_of(value: &Value, written: Option<&str>) -> Option<Decimal> {
    match (value, written) {
        (Value::String(text), _) => parse(text),
        (Value::Int(number), _) => Some(Decimal::from(*number)),
        // The value may have been replaced after the number was read.
        (Value::Double(number), Some(text)) if text.parse() == Ok(*number) => of_number(text),
        (Value::Double(number), _) => of_double(*number),
        (Value::Decimal(number), _) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decimal(text: &str) -> Decimal {
        parse(text).unwrap_or_else(|| panic!("'{text}' is not a decimal"))
    }

    #[test]
    fn decimals_keep_trailing_zeros_and_malformed_decimals_are_rejected() {
        for text in ["0", "12.30", "-0.05", "79228162514264337593543950335", "0.0000000000000000000000000001", "1.000"]
        {
            assert_eq!(decimal(text).to_string(), text);
        }
        for text in [
            "",
            "-",
            ".5",
            "5.",
            "+1",
            "1e3",
            " 1",
            "1_000",
            "0x1",
            "NaN",
            "1.2.3",
            "٣",
            "79228162514264337593543950336",
            "0.00000000000000000000000000001",
            "1.0000000000000000000000000000001",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"0".repeat(MAX_TEXT + 1)), None);
    }

    #[test]
    fn zeros_at_the_end_of_a_fraction_do_not_count_as_digits() {
        let zeros = "0".repeat(29);
        for (text, number) in [(format!("12.{zeros}"), "12"), (format!("1.{zeros}E+5"), "100000")] {
            assert_eq!(of_number(&text), Some(decimal(number)), "{text}");
        }
        assert_eq!(of_number(&format!("1{zeros}")), None);
        assert_eq!(of_number(&format!("1.{zeros}1")), None);
    }

    #[test]
    fn doubles_are_converted_to_decimals_by_their_shortest_digits() {
        for (double, text) in [(12.3, "12.3"), (0.1, "0.1"), (1e21, "1000000000000000000000"), (-2.5e-7, "-0.00000025")]
        {
            assert_eq!(of_double(double), Some(decimal(text)), "{double}");
        }
        for double in [f64::NAN, f64::INFINITY, 1e29, 1e-29, 5e-324, f64::MAX] {
            assert_eq!(of_double(double), None, "{double}");
        }
    }

    #[test]
    fn doubles_are_compared_by_their_exact_value() {
        for (text, double, order) in [
            ("0.1", 0.1, Ordering::Less),
            ("0.5", 0.5, Ordering::Equal),
            ("-0.1", -0.1, Ordering::Greater),
            ("0", -0.0, Ordering::Equal),
            ("0", 5e-324, Ordering::Less),
            ("0.0000000000000000000000000001", 5e-324, Ordering::Greater),
            ("9007199254740993", 9_007_199_254_740_992.0, Ordering::Greater),
            ("79228162514264337593543950335", 1e300, Ordering::Less),
            ("-1", f64::NEG_INFINITY, Ordering::Greater),
            ("1", f64::NAN, Ordering::Greater),
        ] {
            assert_eq!(compare_double(decimal(text), double), order, "{text} and {double}");
        }
    }

    proptest! {
        #[test]
        fn comparisons_of_decimals_with_doubles_follow_the_order_of_integers(int in -(1i64 << 53)..(1i64 << 53), by in -2i64..3) {
            let order = (int + by).cmp(&int);
            prop_assert_eq!(compare_double(Decimal::from(int + by), int as f64), order);
            let (half, double) = (Decimal::from_i128_with_scale(i128::from(int) * 5, 1), int as f64 / 2.0);
            prop_assert_eq!(compare_double(half, double), Ordering::Equal);
        }
    }
}
