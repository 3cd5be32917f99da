//! Converts numbers to text, and text to numbers.

/// Parses a number in decimal notation, or in hexadecimal notation with the prefix `0x`. Also parses `inf`, `infinity`
/// and `nan`, ignoring case.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (-1.0, magnitude),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let Some(hex) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) else {
        return parse_decimal(text);
    };
    let (digits, exponent) = match hex.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (hex, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(sign * number * 2_f64.powi(exponent.saturating_sub(4 * i32::try_from(fraction.len()).ok()?)))
}

/// Parses a number in decimal notation. Rejects numbers that are too large for a double, or so small that the double
/// would be 0.
fn parse_decimal(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let has_digits = text.contains(|char: char| char.is_ascii_digit());
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_zero = !mantissa.contains(|char: char| ('1'..='9').contains(&char));
    let is_beyond = has_digits && (number.is_infinite() || (number == 0.0 && !is_zero));
    (!is_beyond).then_some(number)
}

/// Returns a double as text.
pub(super) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    // The format is that of C's `%g`, with all the digits that the number needs.
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    if exponent.parse().is_ok_and(|exponent: i32| (-4..16).contains(&exponent)) {
        return number.to_string();
    }
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}
