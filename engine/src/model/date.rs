//! Dates, as milliseconds since 1970 in UTC. Converts dates to and from text and calendar fields.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp};

const NANOSECONDS_PER_MS: i128 = 1_000_000;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Formats a date in the format of the API: RFC 3339, in UTC, with milliseconds and `Z`. A year before 0000, which RFC
/// 3339 does not have, is written with a sign and six digits, as in `-000001-12-31T00:00:00.000Z`. For a year before
/// -9999 or after 9999, returns the number of milliseconds since 1970 instead.
pub fn format_date(ms: i64) -> String {
    match civil(ms) {
        Some(time) => format!("{time:.3}Z"),
        None => ms.to_string(),
    }
}

/// Parses an RFC 3339 string into milliseconds since the epoch. Also accepts similar ISO 8601 strings with an offset,
/// such as `2026-12-01T12:00Z`. A full date without a time, such as `2026-12-01`, is the beginning of that day in UTC.
/// Returns `None` for any other string, and for dates outside the years 0000 to 9999 in UTC. A date with a time in the
/// last 26 hours of the year 9999 is accepted only if the string ends with `Z`. Fractions of a millisecond are rounded
/// down to the earlier millisecond, also before 1970.
pub fn parse_date(text: &str) -> Option<i64> {
    if is_full_date(text) {
        return text.parse::<Date>().ok().map(|date| ms_of(date.to_datetime(Time::midnight())));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        let ms = i64::try_from(time.as_nanosecond().div_euclid(NANOSECONDS_PER_MS)).ok()?;
        return civil(ms).filter(|time| time.year() >= 0).map(|_| ms);
    }
    // The library excludes the last hours of the year 9999 so that every UTC offset fits. Clients use the last instant
    // of 9999 to mean "forever", so these hours must be accepted.
    let last_days = text.strip_suffix('Z').filter(|local| local.starts_with("9999-12-3") && local.contains('T'))?;
    last_days.parse::<DateTime>().ok().map(ms_of)
}

/// Returns whether a string has the form of a date without a time, `YYYY-MM-DD`.
fn is_full_date(text: &str) -> bool {
    let digits = |byte: (usize, u8)| if matches!(byte.0, 4 | 7) { byte.1 == b'-' } else { byte.1.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(digits)
}

/// Returns the calendar date and time in UTC, or `None` if the date is outside the calendar's years.
pub fn civil(ms: i64) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::from_millis(ms)).ok()
}

/// Converts a date and time in UTC to milliseconds since the epoch.
pub fn ms_of(civil: DateTime) -> i64 {
    let since = civil.duration_since(EPOCH).as_nanos().div_euclid(NANOSECONDS_PER_MS);
    i64::try_from(since).expect("the calendar's milliseconds fit 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_survive_formatting_and_parsing_but_malformed_dates_are_rejected() {
        for text in [
            "1969-12-31T23:59:59.999Z",
            "2024-02-29T12:00:00.000Z",
            "9999-12-30T22:00:00.001Z",
            "9999-12-31T23:59:59.999Z",
            "0000-01-01T00:00:00.000Z",
        ] {
            assert_eq!(parse_date(text).map(format_date).as_deref(), Some(text));
        }
        assert_eq!(
            parse_date("2024-01-02T03:04:05+02:00").map(format_date).as_deref(),
            Some("2024-01-02T01:04:05.000Z")
        );
        for text in [
            "9999-12-32",
            "2024-2-09",
            "+024-02-09",
            "20240209",
            "9999-12-31T24:00:00Z",
            "9999-12-32T00:00:00Z",
            "9999-12-31T23:59:59",
            "x",
            "",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        for (text, written) in [
            ("2024-02-29", "2024-02-29T00:00:00.000Z"),
            ("0000-01-01", "0000-01-01T00:00:00.000Z"),
            ("9999-12-31", "9999-12-31T00:00:00.000Z"),
        ] {
            assert_eq!(parse_date(text).map(format_date).as_deref(), Some(written));
        }
        assert_eq!(format_date(253_402_300_800_000), "253402300800000");
    }

    #[test]
    fn fractions_below_a_millisecond_are_truncated_before_and_after_1970() {
        for (text, written) in [
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
            ("1960-05-01T12:00:00.123456789Z", "1960-05-01T12:00:00.123Z"),
            ("0000-01-01T00:00:00.0009Z", "0000-01-01T00:00:00.000Z"),
            ("1970-01-01T00:00:00.0009Z", "1970-01-01T00:00:00.000Z"),
            ("2024-05-01T12:00:00.123999Z", "2024-05-01T12:00:00.123Z"),
            ("9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(parse_date(text).map(format_date).as_deref(), Some(written), "{text}");
        }
    }

    #[test]
    fn years_before_0000_and_after_9999_are_rejected() {
        for text in [
            "-000001-12-31T23:59:59.999Z",
            "-009999-01-02T00:00:00Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "10000-01-01T00:00:00Z",
            "+010000-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }
}
