//! Parses the dates in front matter, which people write in many forms.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// The maximum length of a date in bytes.
const MAX_LEN: usize = 64;
/// The characters between a date and a time.
const SEPARATORS: [char; 3] = [' ', 'T', 't'];
/// The formats of dates with the name of a month. Commas are removed before a date is parsed.
const NAMED_MONTHS: [&str; 4] = ["%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y"];

/// Returns a date as RFC 3339 in UTC. Returns `None` if the text is not a date in a supported form, is longer than
/// [`MAX_LEN`] bytes, or has a year outside 0 to 9999. A date without a time zone is in UTC, and a date without a time
/// is midnight.
pub fn rfc3339(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() > MAX_LEN {
        return None;
    }
    let time = timestamp(text).or_else(|| civil(text)?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp()))?;
    // The server accepts times in the years 0000 to 9999.
    let is_in_range = (0..=9_999).contains(&time.to_zoned(TimeZone::UTC).year());
    is_in_range.then(|| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// Parses a date with a time zone.
fn timestamp(text: &str) -> Option<Timestamp> {
    let iso = text.split_once(SEPARATORS).and_then(|(date, time)| {
        let (time, zone) = time.rsplit_once(char::is_whitespace).unwrap_or((time, ""));
        let zone = if matches!(zone, "UTC" | "GMT" | "Z") { "Z" } else { zone };
        Some(format!("{}T{}{zone}", hyphenated(date)?, with_two_digits(time.trim())))
    });
    let parsed = iso.unwrap_or_else(|| text.to_owned()).parse().ok();
    parsed.or_else(|| rfc2822::parse(text).ok().map(|time| time.timestamp()))
}

/// Parses a date without a time zone.
fn civil(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_once(SEPARATORS).unwrap_or((text, ""));
    let numbers = hyphenated(date).and_then(|date| match time.trim() {
        "" => date.parse::<Date>().ok().map(DateTime::from),
        time => format!("{date}T{}", with_two_digits(time)).parse().ok(),
    });
    let plain = text.replace(',', "");
    let named = || NAMED_MONTHS.iter().find_map(|form| Date::strptime(form, &plain).ok()).map(DateTime::from);
    numbers.or_else(named)
}

/// Returns `2024-01-02` for `2024-1-2`, `2024/01/02` and `2024.1.2`.
fn hyphenated(date: &str) -> Option<String> {
    let parts: Vec<&str> = date.split(['-', '/', '.']).collect();
    match *parts.as_slice() {
        [year, month, day] if year.len() == 4 => Some(format!("{year}-{month:0>2}-{day:0>2}")),
        _ => None,
    }
}

/// Returns `09:05` for `9:05`.
fn with_two_digits(time: &str) -> String {
    let hour = time.split(':').next().unwrap_or_default();
    if hour.len() == 1 { format!("0{time}") } else { time.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_forms_of_dates_are_read() {
        for (text, expected) in [
            ("2024-01-02", "2024-01-02T00:00:00.000Z"),
            ("2024-1-2", "2024-01-02T00:00:00.000Z"),
            ("2024/01/02", "2024-01-02T00:00:00.000Z"),
            ("2024-02-25 00:00", "2024-02-25T00:00:00.000Z"),
            ("2024-02-25 9:05", "2024-02-25T09:05:00.000Z"),
            ("2024/02/25 09:05:06", "2024-02-25T09:05:06.000Z"),
            ("2024-02-25T09:05:06", "2024-02-25T09:05:06.000Z"),
            ("2024-02-25T09:05:06.789Z", "2024-02-25T09:05:06.789Z"),
            ("2024-02-25T09:05:06+02:00", "2024-02-25T07:05:06.000Z"),
            ("2024-02-25 09:05:06 +0200", "2024-02-25T07:05:06.000Z"),
            ("2024-2-25T09:05:06.000Z", "2024-02-25T09:05:06.000Z"),
            ("2024/2/25 9:05:06+02:00", "2024-02-25T07:05:06.000Z"),
            ("2024/02/25T09:05:06+02:00", "2024-02-25T07:05:06.000Z"),
            ("2024-02-25 09:05:06 -05:30", "2024-02-25T14:35:06.000Z"),
            ("2024-02-25 09:05:06 UTC", "2024-02-25T09:05:06.000Z"),
            ("1979-05-27 07:32:00Z", "1979-05-27T07:32:00.000Z"),
            ("Sun, 25 Feb 2024 09:05:06 +0000", "2024-02-25T09:05:06.000Z"),
            ("Jul 08 2022", "2022-07-08T00:00:00.000Z"),
            ("July 8, 2022", "2022-07-08T00:00:00.000Z"),
            ("8 July 2022", "2022-07-08T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_in_unsupported_forms_are_not_read_as_dates() {
        for text in ["", "2024", "soon", "2024-13-01", "-0001-01-01", "12:30", "25/02/2024", "\u{0}", "2024-01-0é"] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
        assert_eq!(rfc3339(&"2".repeat(100_000)), None);
    }
}
