//! Decimal numbers of any length, for comparing the written forms of numbers.

/// A number in a normalized form: a sign, the digits after a decimal point, and an exponent of ten. Equal numbers have
/// the same form. For example, 12 is 0.12 times 100, with the digits `12` and the exponent 2. The digits neither begin
/// nor end with a zero. Zero has no digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

/// The maximum exponent that is read from a text. Larger exponents are replaced by this maximum. The exponents of
/// doubles are far smaller.
const MAX_EXPONENT: i64 = i64::MAX / 4;

impl Decimal {
    /// Parses a number in the notation of JSON.
    pub(super) fn of(text: &str) -> Decimal {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let too_large = if power.starts_with('-') { -MAX_EXPONENT } else { MAX_EXPONENT };
        let power = power.parse::<i64>().unwrap_or(too_large).clamp(-MAX_EXPONENT, MAX_EXPONENT);
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let leading_zeros = (all.len() - digits.len()) as i64;
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() {
            return Decimal::default();
        }
        Decimal { is_negative, digits: digits.to_owned(), exponent: power + whole.len() as i64 - leading_zeros }
    }

    /// Returns the number with the fewest digits whose nearest double is `double`. The JSON text of the double is this
    /// number.
    pub(super) fn of_double(double: f64) -> Decimal {
        Decimal::of(&format!("{double:e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_numbers_have_the_same_normalized_form() {
        for texts in [
            &["0", "-0", "0.000", "0e9"][..],
            &["1", "1.0", "10e-1", "0.01e2", "1E+0"],
            &["-120", "-1.2e2", "-120.000"],
            &["123456789012345678901", "1.23456789012345678901e20"],
        ] {
            assert!(texts.iter().all(|text| Decimal::of(text) == Decimal::of(texts[0])), "{texts:?}");
        }
        let different = ["0", "1", "-1", "10", "0.1", "11", "1e99999999999999999999", "1e-99999999999999999999"];
        for (index, a) in different.iter().enumerate() {
            assert!(different.iter().skip(index + 1).all(|b| Decimal::of(a) != Decimal::of(b)), "{a}");
        }
        assert_eq!(Decimal::of_double(1.5e300), Decimal::of("15e299"));
    }
}
