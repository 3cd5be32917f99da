//! Operators that read parts of a date in a time zone, or build a date from parts.

use std::sync::Arc;

use jiff::civil::{Date, DateTime, ISOWeekDate, Weekday};
use jiff::{Span, ToSpan};

use super::super::operator::ArgumentForm::{Named as ByName, Own};
use super::super::operator::{ExprOperator, NamedArguments, OperatorArguments, OperatorCall, name_table, named};
use super::super::{Answer, Env, NULL, ParseScope, parse, some};
use super::calendar::{LocalTime, date, instant, local, overflow, zone};
use crate::model::excerpt::excerpt;
use crate::model::value::{Object, Value};
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole;

/// The arguments of an operator that reads one part of a date.
const PART_ARGUMENTS: &str = "date, timezone?: string";

pub(in crate::pipeline::expression) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Returns the day of the month, 1 to 31.
    "$dayOfMonth"(PART_ARGUMENTS) [r#"{"$dayOfMonth":{"$toDate":"2024-02-03"}}"#, "{}", "3"]:
        Own(parse_part), |call, env| part(call, env, |time| time.day().into());
    /// Returns the day of the week, 1 (Sunday) to 7.
    "$dayOfWeek"(PART_ARGUMENTS) [r#"{"$dayOfWeek":{"$toDate":"2024-02-03"}}"#, "{}", "7"]:
        Own(parse_part), |call, env| part(call, env, |time| time.weekday().to_sunday_one_offset().into());
    /// Returns the day of the year, 1 to 366.
    "$dayOfYear"(PART_ARGUMENTS) [r#"{"$dayOfYear":{"$toDate":"2024-02-03"}}"#, "{}", "34"]:
        Own(parse_part), |call, env| part(call, env, |time| time.day_of_year().into());
    /// Returns the hour, 0 to 23.
    "$hour"(PART_ARGUMENTS)
        [r#"{"$hour":{"date":{"$toDate":"2024-02-03T10:00:00Z"},"timezone":"+02:00"}}"#, "{}", "12"]:
        Own(parse_part), |call, env| part(call, env, |time| time.hour().into());
    /// Returns the day of the week, 1 (Monday) to 7.
    "$isoDayOfWeek"(PART_ARGUMENTS) [r#"{"$isoDayOfWeek":{"$toDate":"2024-02-03"}}"#, "{}", "6"]:
        Own(parse_part), |call, env| part(call, env, |time| time.weekday().to_monday_one_offset().into());
    /// Returns the ISO 8601 week of the year, 1 to 53.
    "$isoWeek"(PART_ARGUMENTS) [r#"{"$isoWeek":{"$toDate":"2024-02-03"}}"#, "{}", "5"]:
        Own(parse_part), |call, env| part(call, env, |time| time.date().iso_week_date().week().into());
    /// Returns the year to which the ISO 8601 week belongs.
    "$isoWeekYear"(PART_ARGUMENTS) [r#"{"$isoWeekYear":{"$toDate":"2021-01-01"}}"#, "{}", "2020"]:
        Own(parse_part), |call, env| part(call, env, |time| time.date().iso_week_date().year().into());
    /// Returns the milliseconds, 0 to 999.
    "$millisecond"(PART_ARGUMENTS) [r#"{"$millisecond":{"$toDate":"2024-02-03T10:00:00.250Z"}}"#, "{}", "250"]:
        Own(parse_part), |call, env| part(call, env, |time| time.millisecond().into());
    /// Returns the minute, 0 to 59.
    "$minute"(PART_ARGUMENTS) [r#"{"$minute":{"$toDate":"2024-02-03T10:20:00Z"}}"#, "{}", "20"]:
        Own(parse_part), |call, env| part(call, env, |time| time.minute().into());
    /// Returns the month, 1 to 12.
    "$month"(PART_ARGUMENTS) [r#"{"$month":{"$toDate":"2024-02-03"}}"#, "{}", "2"]:
        Own(parse_part), |call, env| part(call, env, |time| time.month().into());
    /// Returns the second, 0 to 59.
    "$second"(PART_ARGUMENTS) [r#"{"$second":{"$toDate":"2024-02-03T10:20:30Z"}}"#, "{}", "30"]:
        Own(parse_part), |call, env| part(call, env, |time| time.second().into());
    /// Returns the week of the year, 0 to 53, where weeks begin on Sunday.
    "$week"(PART_ARGUMENTS) [r#"{"$week":{"$toDate":"2024-02-03"}}"#, "{}", "4"]:
        Own(parse_part), |call, env| part(call, env, week);
    /// Returns the year.
    "$year"(PART_ARGUMENTS) [r#"{"$year":{"$toDate":"2024-02-03"}}"#, "{}", "2024"]:
        Own(parse_part), |call, env| part(call, env, |time| time.year().into());
    /// Returns the date with the given parts.
    "$dateFromParts"(
        "year?: integer, isoWeekYear?: integer, month?: integer, day?: integer, isoWeek?: integer, isoDayOfWeek?: integer, hour?: integer, minute?: integer, second?: integer, millisecond?: integer, timezone?: string"
    ) [r#"{"$dateFromParts":{"year":2024,"month":14}}"#, "{}", r#""2025-02-01T00:00:00.000Z""#]:
        Own(parse_from_parts), from_parts;
    /// Returns the parts of the date as an object.
    "$dateToParts"("date, timezone?: string, iso8601?: boolean") [
        r#"{"$dateToParts":{"date":{"$toDate":"2024-02-03T10:20:30.004Z"}}}"#,
        "{}",
        r#"{"year":2024,"month":2,"day":3,"hour":10,"minute":20,"second":30,"millisecond":4}"#,
    ]: ByName(&TO_PARTS), to_parts;
};

static PART: NamedArguments =
    NamedArguments { not_object: 40535, unknown: 40535, fields: &[("date", Some(40539)), ("timezone", None)] };

/// Parses the argument of a date part operator: a date, an array with one date, or an object with a date and an
/// optional time zone.
fn parse_part(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    match spec {
        Value::Object(object) if object.keys().next().is_none_or(|name| !name.starts_with('$')) => {
            Ok(named("the date part operator", &PART, spec, scope)?.into())
        }
        Value::Array(items) => match items.as_slice() {
            [one] => Ok(vec![Some(parse(one, scope)?)].into()),
            items => {
                err!(40536, "date parts accept exactly one argument if given an array, but was given {}", items.len())
            }
        },
        alone => Ok(vec![Some(parse(alone, scope)?)].into()),
    }
}

fn part(call: &OperatorCall, env: &Env, read: fn(&LocalTime) -> i64) -> Answer {
    let Some(ms) = date(call, 0, 16006, env)? else { return NULL };
    let Some(zone) = zone(call, 1, env)? else { return NULL };
    some(read(&local(ms, &zone)?))
}

/// Returns the week of the year. Days before the year's first Sunday are in week 0.
pub(super) fn week(time: &LocalTime) -> i64 {
    (i64::from(time.day_of_year()) + 6 - i64::from(time.weekday().to_sunday_zero_offset())) / 7
}

static TO_PARTS: NamedArguments = NamedArguments {
    not_object: 40524,
    unknown: 40520,
    fields: &[("date", Some(40522)), ("timezone", None), ("iso8601", None)],
};

fn to_parts(call: &OperatorCall, env: &Env) -> Answer {
    let is_iso = match call.field(2, env)? {
        Some(Value::Bool(flag)) => flag,
        None if !call.has_argument(2) => false,
        None | Some(Value::Null) => return NULL,
        Some(other) => return err!(40521, "iso8601 must evaluate to a bool, found {}", other.type_name()),
    };
    let Some(zone) = zone(call, 1, env)? else { return NULL };
    let Some(ms) = date(call, 0, 16006, env)? else { return NULL };
    let time = local(ms, &zone)?;
    env.query.charge(7 * size_of::<(Arc<str>, Value)>())?;
    let mut parts = Object::with_capacity(7);
    if is_iso {
        let week = time.date().iso_week_date();
        parts.push("isoWeekYear", i64::from(week.year()));
        parts.push("isoWeek", i64::from(week.week()));
        parts.push("isoDayOfWeek", i64::from(week.weekday().to_monday_one_offset()));
    } else {
        parts.push("year", i64::from(time.year()));
        parts.push("month", i64::from(time.month()));
        parts.push("day", i64::from(time.day()));
    }
    parts.push("hour", i64::from(time.hour()));
    parts.push("minute", i64::from(time.minute()));
    parts.push("second", i64::from(time.second()));
    parts.push("millisecond", i64::from(time.millisecond()));
    some(parts)
}

static FROM_PARTS: NamedArguments = NamedArguments {
    not_object: 40519,
    unknown: 40518,
    fields: &[
        ("year", None),
        ("month", None),
        ("day", None),
        ("isoWeekYear", None),
        ("isoWeek", None),
        ("isoDayOfWeek", None),
        ("hour", None),
        ("minute", None),
        ("second", None),
        ("millisecond", None),
        ("timezone", None),
    ],
};

fn parse_from_parts(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let values = named("$dateFromParts", &FROM_PARTS, spec, scope)?;
    let has_part = |index: usize| values[index].is_some();
    if !has_part(0) && !has_part(3) {
        return Err(Error::new(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present"));
    }
    if has_part(0) && (has_part(3) || has_part(4) || has_part(5)) {
        return Err(Error::new(40489, "$dateFromParts does not allow mixing natural dates with ISO dates"));
    }
    if has_part(3) && (has_part(1) || has_part(2)) {
        return Err(Error::new(40525, "$dateFromParts does not allow mixing ISO dates with natural dates"));
    }
    Ok(values.into())
}

fn from_parts(call: &OperatorCall, env: &Env) -> Answer {
    let Some(zone) = zone(call, 10, env)? else { return NULL };
    let is_iso = call.has_argument(3);
    let mut parts = [0; 10];
    for (index, (name, _)) in FROM_PARTS.fields[..10].iter().enumerate() {
        let default = if index < 6 { 1 } else { 0 };
        let Some(part) = read_part(call, index, name, default, env)? else { return NULL };
        parts[index] = part;
    }
    let [year, month, day, iso_year, iso_week, iso_day, hour, minute, second, millisecond] = parts;
    let first = if is_iso { iso_year } else { year };
    if !(1..=9999).contains(&first) {
        let name = if is_iso { "isoWeekYear" } else { "year" };
        let code = if is_iso { 31095 } else { 40523 };
        return err!(code, "'{name}' must evaluate to an integer in the range 1 to 9999, found {first}");
    }
    let day = if is_iso {
        let start = ISOWeekDate::new(first as i16, 1, Weekday::Monday).map_err(|_| overflow())?;
        start.date().checked_add(((iso_week - 1) * 7 + iso_day - 1).days()).map_err(|_| overflow())?
    } else {
        let start = Date::new(first as i16, 1, 1).map_err(|_| overflow())?;
        start
            .checked_add((month - 1).months())
            .and_then(|date| date.checked_add((day - 1).days()))
            .map_err(|_| overflow())?
    };
    let milliseconds = ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
    let time = Span::new().try_milliseconds(milliseconds).map_err(|_| overflow())?;
    // The hours may be negative or greater than 23, so the time is added to the midnight of the day.
    let midnight: DateTime = day.to_datetime(jiff::civil::Time::midnight());
    let whole = midnight.checked_add(time).map_err(|_| overflow())?;
    some(Value::Date(instant(whole, &zone)?))
}

fn read_part(call: &OperatorCall, index: usize, name: &str, default: i64, env: &Env) -> Result<Option<i64>> {
    if !call.has_argument(index) {
        return Ok(Some(default));
    }
    let value = call.value(index, env)?;
    if value.is_null() {
        return Ok(None);
    }
    let Some(number) = whole(&value) else {
        let found = value.type_name();
        return err!(40515, "'{name}' must evaluate to an integer, found {found} with value {}", excerpt(&value));
    };
    let is_year = matches!(name, "year" | "isoWeekYear");
    let is_small = matches!(name, "month" | "day" | "isoWeek" | "isoDayOfWeek" | "hour" | "minute");
    let limit = if is_small { i64::from(i16::MAX) } else { 1 << 40 };
    if !is_year && !(-limit - 1..=limit).contains(&number) {
        let message = format!(
            "'{name}' must evaluate to a value in the range [{}, {limit}]; value {number} is not in range",
            -limit - 1
        );
        return Err(Error::new(31034, message));
    }
    Ok(Some(number))
}
