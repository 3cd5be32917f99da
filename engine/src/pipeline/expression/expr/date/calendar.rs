//! Conversions between instants and local calendar time, and the arguments that date operators share.

use std::ops::Deref;

use jiff::civil::{DateTime, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::super::Env;
use super::super::operator::OperatorCall;
pub(super) use super::super::unit::{Unit, overflow};
use crate::model::date::{civil, ms_of};
use crate::model::excerpt::excerpt_of;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};

/// Evaluates an argument that is a date. Returns `None` if the argument is null or missing.
pub(super) fn date(call: &OperatorCall, index: usize, code: i32, env: &Env) -> Result<Option<i64>> {
    match call.field(index, env)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Date(ms)) => Ok(Some(ms)),
        Some(other) => {
            let found = other.type_name();
            Err(match code {
                16006 => Error::new(code, format!("can't convert from BSON type {found} to Date")),
                _ => {
                    let argument = match (call.name(), index) {
                        ("$dateTrunc", _) => "date",
                        (_, 0) => "startDate",
                        _ => "endDate",
                    };
                    Error::new(code, format!("{} requires '{argument}' to be a date, but got {found}", call.name()))
                }
            })
        }
    }
}

/// Evaluates an argument that is a time zone. Returns UTC if the specification does not contain the argument, and
/// `None` if the value of the argument is null or missing.
pub(super) fn zone(call: &OperatorCall, index: usize, env: &Env) -> Result<Option<TimeZone>> {
    if !call.has_argument(index) {
        return Ok(Some(TimeZone::UTC));
    }
    let name = call.text(index, 40517, "timezone must evaluate to a string, found", env)?;
    name.map(|name| parse_zone(&name)).transpose()
}

/// Parses a time zone: an Olson name such as `Europe/Zurich`, `UTC`, `GMT`, or an offset such as `+02:00`.
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

/// Parses an offset such as `+hh`, `+hhmm` or `+hh:mm` and returns the seconds east of Greenwich.
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

/// A local date and time, with the offset of its zone.
pub(super) struct LocalTime {
    pub datetime: DateTime,
    pub offset: Offset,
}

impl Deref for LocalTime {
    type Target = DateTime;

    fn deref(&self) -> &DateTime {
        &self.datetime
    }
}

/// Returns the local time of an instant in a zone.
pub(super) fn local(ms: i64, zone: &TimeZone) -> Result<LocalTime> {
    let utc = civil(ms).ok_or_else(overflow)?;
    let offset = zone.to_offset(nearest(ms));
    let east = SignedDuration::from_secs(offset.seconds().into());
    let datetime = utc.checked_add(east).map_err(|_| overflow())?;
    Ok(LocalTime { datetime, offset })
}

/// Returns the instant of a local time. A local time that the zone skips denotes the later of the two possible
/// instants. A local time that occurs twice denotes the earlier instant.
pub(super) fn instant(local: DateTime, zone: &TimeZone) -> Result<i64> {
    if let Ok(time) = zone.to_ambiguous_timestamp(local).compatible() {
        return Ok(time.as_millisecond());
    }
    let utc_ms = ms_of(local);
    let ms = utc_ms - i64::from(zone.to_offset(nearest(utc_ms)).seconds()) * 1000;
    civil(ms).map(|_| ms).ok_or_else(overflow)
}

/// Returns the timestamp nearest to an instant. The library `jiff` has no timestamps for some hours at the beginning
/// and the end of the calendar. In these hours, the offset of the first or the last timestamp applies.
fn nearest(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// Evaluates an argument that is a unit. Returns `None` if the argument is null or missing.
pub(super) fn unit(call: &OperatorCall, index: usize, env: &Env) -> Result<Option<Unit>> {
    let name = call.name();
    let complaint = format_args!("{name} requires 'unit' to be a string, but got");
    let Some(text) = call.text(index, 5_439_013, complaint, env)? else { return Ok(None) };
    Unit::parse(&text).map(Some).ok_or_else(|| {
        let found = excerpt_of(text);
        Error::new(9, format!("{name} parameter 'unit' value parsing failed: unknown time unit value: {found}"))
    })
}

/// Evaluates an argument that is the first day of a week. Returns Sunday if the specification does not contain the
/// argument, and `None` if the value of the argument is null or missing.
pub(super) fn start_of_week(call: &OperatorCall, index: usize, env: &Env) -> Result<Option<Weekday>> {
    if !call.has_argument(index) {
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
            _ => err!(
                9,
                "{name} parameter 'startOfWeek' value parsing failed: unknown day of week value: {}",
                excerpt_of(text)
            ),
        },
        other => err!(5_439_015, "{name} requires 'startOfWeek' to be a string, but got {}", other.type_name()),
    }
}
