//! The fields of a date that a string contains, the instant that the fields denote, and the errors in a string.

use std::fmt::Write;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Span};

use super::calendar::instant;
use super::relative::RelativeDate;
use super::zone::Zone;
use crate::model::date::{civil, ms_of};
use crate::model::excerpt::excerpt_of;
use crate::pipeline::value::error::{Error, Result};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns the number of a month, given its name, the first three letters, `sept`, or a Roman numeral.
pub(super) fn month(word: &str) -> Option<i64> {
    const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
    let is_named = |name: &str| {
        name.eq_ignore_ascii_case(word)
            || name[..3].eq_ignore_ascii_case(word)
            || (name == "September" && word.eq_ignore_ascii_case("sept"))
    };
    let place = MONTHS.iter().position(|name| is_named(name));
    let place = place.or_else(|| ROMAN.iter().position(|numeral| numeral.eq_ignore_ascii_case(word)))?;
    Some(place as i64 + 1)
}

/// The date and time fields that a string contains.
#[derive(Debug, Default)]
pub(super) struct DateFields {
    pub year: Option<i64>,
    pub month: Option<i64>,
    pub day: Option<i64>,
    pub day_of_year: Option<i64>,
    pub iso_year: Option<i64>,
    pub iso_week: Option<i64>,
    pub iso_day: Option<i64>,
    pub hour: Option<i64>,
    pub minute: Option<i64>,
    pub second: Option<i64>,
    pub microsecond: i64,
    pub zone: Option<Zone>,
    pub relative: RelativeDate,
}

/// The errors and warnings about a string. Each message names a character and its position.
#[derive(Debug, Default)]
pub(super) struct DateFaults {
    errors: String,
    warnings: String,
}

impl DateFaults {
    pub fn error(&mut self, at: usize, message: &str, byte: Option<u8>) {
        record(&mut self.errors, at, message, byte);
    }

    /// Adds a warning. Warnings follow all errors in the final message.
    pub fn warning(&mut self, at: usize, message: &str, byte: Option<u8>) {
        record(&mut self.warnings, at, message, byte);
    }
}

/// The total length of the recorded errors, in bytes, above which further errors are dropped. The same limit applies to
/// the warnings separately. Without this limit, each byte of a long string could cause a message.
const MAX_NOTES_BYTES: usize = 400;

fn record(notes: &mut String, at: usize, message: &str, byte: Option<u8>) {
    if notes.len() > MAX_NOTES_BYTES {
        return;
    }
    let shown = byte.filter(|byte| *byte != 0).map_or_else(|| "\\0".to_owned(), |byte| byte.escape_ascii().to_string());
    // Writing to a string cannot fail.
    let _ = write!(notes, "; {at}: {message} '{shown}'");
}

pub(super) fn failure(text: impl Into<String>) -> Error {
    Error::new(241, text.into())
}

impl DateFields {
    /// Returns whether the string contains a complete day. A day is complete in three forms: year, month and day of the
    /// month; year and day of the year; ISO year, with or without week and day.
    pub fn has_date(&self) -> bool {
        let is_date = self.year.is_some() && self.month.is_some() && self.day.is_some();
        is_date || self.iso_year.is_some() || (self.year.is_some() && self.day_of_year.is_some())
    }

    /// Returns whether the time of day is valid. Missing parts count as zero.
    pub fn is_time(&self) -> bool {
        let fits = |part: Option<i64>, end: i64| (0..end).contains(&part.unwrap_or(0));
        fits(self.hour, 24) && fits(self.minute, 60) && fits(self.second, 60)
    }

    /// Returns the day, or `None` if the string does not contain a complete day, or the calendar does not contain the
    /// day. If the week or the day of the year exceeds the length of the year, the count continues in the next year.
    pub fn date(&self) -> Option<Date> {
        if let Some(year) = self.iso_year {
            // January 4 is always in the first ISO week.
            let fourth = Date::new(i16::try_from(year).ok()?, 1, 4).ok()?;
            let before = i64::from(fourth.weekday().to_monday_zero_offset());
            let days = (self.iso_week.unwrap_or(1) - 1) * 7 + self.iso_day.unwrap_or(1) - 1 - before;
            return fourth.checked_add(Span::new().try_days(days).ok()?).ok();
        }
        let year = i16::try_from(self.year?).ok().filter(|year| *year >= 0)?;
        if let Some(day) = self.day_of_year {
            return Date::new(year, 1, 1).ok()?.checked_add(Span::new().try_days(day - 1).ok()?).ok();
        }
        Date::new(year, i8::try_from(self.month?).ok()?, i8::try_from(self.day?).ok()?).ok()
    }

    /// Returns the instant. If there are faults, returns an error with all recorded faults. Otherwise returns an error
    /// if the string does not contain a complete day, if the string contains a zone although `zone` is given and
    /// is not UTC, or if the date is outside the calendar.
    pub fn finish(&self, faults: &DateFaults, text: &str, zone: Option<&TimeZone>) -> Result<i64> {
        if !faults.errors.is_empty() || !faults.warnings.is_empty() {
            let DateFaults { errors, warnings } = faults;
            return Err(failure(format!("Error parsing date string '{}'{errors}{warnings}", excerpt_of(text))));
        }
        if !self.has_date() {
            return Err(failure(format!(
                "an incomplete date/time string has been found, with elements missing: \"{}\"",
                excerpt_of(text)
            )));
        }
        let zone = zone.filter(|zone| **zone != TimeZone::UTC);
        let zone = match (&self.zone, zone) {
            (Some(Zone::Offset(_)), Some(_)) => {
                return Err(failure(
                    "you cannot pass in a date/time string with GMT offset together with a timezone argument",
                ));
            }
            (Some(Zone::Named(name, _)), Some(_)) => {
                return Err(failure(format!(
                    "you cannot pass in a date/time string with time zone information ('{}') together with a \
                     timezone argument",
                    excerpt_of(name)
                )));
            }
            (Some(own), None) => Offset::from_seconds(own.seconds()).ok().map(TimeZone::fixed),
            (None, zone) => Some(zone.cloned().unwrap_or(TimeZone::UTC)),
        };
        let ms = zone.and_then(|zone| self.instant(&zone));
        ms.ok_or_else(|| {
            failure(format!("Error parsing date string '{}'; the date is outside the calendar", excerpt_of(text)))
        })
    }

    /// Returns the instant in a zone, or `None` if the result is outside the calendar.
    fn instant(&self, zone: &TimeZone) -> Option<i64> {
        let date = self.relative.apply(self.date()?)?;
        let part = |part: Option<i64>| i8::try_from(part.unwrap_or(0)).ok();
        let time = Time::new(part(self.hour)?, part(self.minute)?, part(self.second)?, 0).ok()?;
        let local = DateTime::from_parts(date, time);
        let seconds = match zone.to_fixed_offset() {
            Ok(offset) => ms_of(local.checked_sub(SignedDuration::from_secs(offset.seconds().into())).ok()?),
            Err(_) => instant(local, zone).ok()?,
        };
        let moved = self.relative.seconds.checked_mul(1_000)?;
        let microseconds = self.microsecond.checked_add(self.relative.microseconds)?;
        let ms = seconds.checked_add(moved)?.checked_mul(1_000)?.checked_add(microseconds)?.div_euclid(1_000);
        civil(ms).map(|_| ms)
    }
}
