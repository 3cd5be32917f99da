//! Instants to and from local calendar time, and the arguments that dates share.

use std::ops::Deref;

use jiff::civil::{DateTime, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::Env;
use super::operator::Call;
use crate::model::date::{civil, ms_of};
use crate::model::excerpt::excerpt_of;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result};

/// The date that an argument is; `None` where it is null or missing.
pub(super) fn date(call: &Call, index: usize, code: i32, env: &Env) -> Result<Option<i64>> {
    match call.field(index, env)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Date(ms)) => Ok(Some(ms)),
        Some(other) => {
            let found = other.type_name();
            Err(match code {
                16006 => Error::new(code, format!("can't convert from BSON type {found} to Date")),
                _ => Error::new(code, format!("{} requires a date, found: {found}", call.name())),
            })
        }
    }
}

/// The time zone that an argument names: UTC where it was not written, `None` where it is null.
pub(super) fn zone(call: &Call, index: usize, env: &Env) -> Result<Option<TimeZone>> {
    if !call.given(index) {
        return Ok(Some(TimeZone::UTC));
    }
    match call.value(index, env)? {
        Value::Null => Ok(None),
        Value::String(name) => parse_zone(&name).map(Some),
        other => {
            let found = other.type_name();
            Err(Error::new(40517, format!("timezone must evaluate to a string, found {found}")))
        }
    }
}

/// An Olson name such as `Europe/Zurich`, `UTC`, or an offset such as `+02:00`.
pub(super) fn parse_zone(name: &str) -> Result<TimeZone> {
    if matches!(name, "UTC" | "GMT") {
        return Ok(TimeZone::UTC);
    }
    if let Some(seconds) = parse_offset(name) {
        return Ok(TimeZone::fixed(Offset::from_seconds(seconds).unwrap_or(Offset::UTC)));
    }
    let known = TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name));
    known.ok_or_else(|| Error::new(40485, format!("unrecognized time zone identifier: \"{}\"", excerpt_of(name))))
}

/// Seconds east of Greenwich that `+hh`, `+hhmm` or `+hh:mm` says.
pub(super) fn parse_offset(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = &text[1..];
    let (hours, minutes) = match digits.len() {
        2 => (digits, "0"),
        4 => (digits.get(..2)?, digits.get(2..)?),
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// What the calendar and the clock of a zone show.
pub(super) struct Local {
    pub datetime: DateTime,
    pub offset: Offset,
}

impl Deref for Local {
    type Target = DateTime;

    fn deref(&self) -> &DateTime {
        &self.datetime
    }
}

/// An instant in a zone.
pub(super) fn local(ms: i64, zone: &TimeZone) -> Result<Local> {
    let utc = civil(ms).ok_or_else(overflow)?;
    // In the last hours of the calendar, which the library's instants do not reach, zones are as they were before.
    let offset = zone.to_offset(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX));
    let east = SignedDuration::from_secs(offset.seconds().into());
    let datetime = utc.checked_add(east).map_err(|_| overflow())?;
    Ok(Local { datetime, offset })
}

/// The instant of a local time; in a gap or an overlap of the zone, the compatible one.
pub(super) fn instant(local: DateTime, zone: &TimeZone) -> Result<i64> {
    if let Ok(time) = zone.to_ambiguous_timestamp(local).compatible() {
        return Ok(time.as_millisecond());
    }
    let ms = ms_of(local) - i64::from(zone.to_offset(Timestamp::MAX).seconds()) * 1000;
    civil(ms).map(|_| ms).ok_or_else(overflow)
}

pub(super) fn overflow() -> Error {
    Error::new(5_166_406, "the date is beyond the range of the calendar")
}

/// The units of date arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    pub fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => return None,
        })
    }

    /// Months in one, where it is a unit of months.
    pub fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }

    /// Days in one, where it is a unit of days.
    pub fn days(self) -> Option<i64> {
        match self {
            Unit::Week => Some(7),
            Unit::Day => Some(1),
            _ => None,
        }
    }

    /// Milliseconds in one, where it is a unit of time of day.
    pub fn milliseconds(self) -> i64 {
        match self {
            Unit::Hour => 3_600_000,
            Unit::Minute => 60_000,
            Unit::Second => 1000,
            _ => 1,
        }
    }
}

/// The unit that an argument names; `None` where it is null.
pub(super) fn unit(call: &Call, index: usize, env: &Env) -> Result<Option<Unit>> {
    let name = call.name();
    match call.value(index, env)? {
        Value::Null => Ok(None),
        Value::String(text) => match Unit::parse(&text) {
            Some(unit) => Ok(Some(unit)),
            None => Err(Error::new(
                9,
                format!("{name} parameter 'unit' value parsing failed: unknown time unit value: {}", excerpt_of(text)),
            )),
        },
        other => {
            let found = other.type_name();
            Err(Error::new(5_439_013, format!("{name} requires 'unit' to be a string, but got {found}")))
        }
    }
}

/// The first day of a week, Sunday where it was not written; `None` where it is null.
pub(super) fn start_of_week(call: &Call, index: usize, env: &Env) -> Result<Option<Weekday>> {
    if !call.given(index) {
        return Ok(Some(Weekday::Sunday));
    }
    let name = call.name();
    match call.value(index, env)? {
        Value::Null => Ok(None),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "monday" | "mon" => Ok(Some(Weekday::Monday)),
            "tuesday" | "tue" => Ok(Some(Weekday::Tuesday)),
            "wednesday" | "wed" => Ok(Some(Weekday::Wednesday)),
            "thursday" | "thu" => Ok(Some(Weekday::Thursday)),
            "friday" | "fri" => Ok(Some(Weekday::Friday)),
            "saturday" | "sat" => Ok(Some(Weekday::Saturday)),
            "sunday" | "sun" => Ok(Some(Weekday::Sunday)),
            _ => Err(Error::new(
                9,
                format!(
                    "{name} parameter 'startOfWeek' value parsing failed: unknown day of week value: {}",
                    excerpt_of(text)
                ),
            )),
        },
        other => {
            let found = other.type_name();
            Err(Error::new(5_439_015, format!("{name} requires 'startOfWeek' to be a string, but got {found}")))
        }
    }
}
