//! Addition, difference and truncation of dates.

use jiff::civil::{Date, DateTime, Weekday, date as civil_date};
use jiff::{Span, ToSpan, tz::TimeZone};

use super::super::operator::ArgumentForm::{Exactly, Named as ByName};
use super::super::operator::{ExprOperator, NamedArguments, OperatorCall, name_table};
use super::super::{Answer, Env, NULL, some};
use super::calendar::{Unit, date, instant, local, overflow, start_of_week, unit, zone};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole;

pub(in crate::pipeline::expression) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Adds a number of units to a date.
    "$dateAdd"("startDate: date, unit: string, amount: integer, timezone?: string") [
        r#"{"$dateAdd":{"startDate":{"$toDate":"2024-01-31"},"unit":"month","amount":1}}"#,
        "{}",
        r#""2024-02-29T00:00:00.000Z""#,
    ]: ByName(&MOVE), |call, env| move_by(call, env, 1);
    /// Subtracts a number of units from a date.
    "$dateSubtract"("startDate: date, unit: string, amount: integer, timezone?: string") [
        r#"{"$dateSubtract":{"startDate":{"$toDate":"2024-03-01"},"unit":"day","amount":1}}"#,
        "{}",
        r#""2024-02-29T00:00:00.000Z""#,
    ]: ByName(&MOVE), |call, env| move_by(call, env, -1);
    /// Returns the number of unit boundaries, such as starts of months, between two dates.
    "$dateDiff"("startDate: date, endDate: date, unit: string, timezone?: string, startOfWeek?: string") [
        r#"{"$dateDiff":{"startDate":{"$toDate":"2024-01-31"},"endDate":{"$toDate":"2024-02-01"},"unit":"month"}}"#,
        "{}",
        "1",
    ]: ByName(&DIFF), diff;
    /// Returns the start of the unit, or of the bin of units, that contains the date.
    "$dateTrunc"("date, unit: string, binSize?: integer, timezone?: string, startOfWeek?: string") [
        r#"{"$dateTrunc":{"date":{"$toDate":"2024-02-03T10:20:30Z"},"unit":"hour","binSize":2}}"#,
        "{}",
        r#""2024-02-03T10:00:00.000Z""#,
    ]: ByName(&TRUNC), trunc;
    /// Returns the number of whole days from the date to now.
    "$daysSince"("date")
        [r#"{"$daysSince":{"$dateSubtract":{"startDate":"$$NOW","unit":"hour","amount":99}}}"#, "{}", "4"].volatile()
        .remark("Not in MongoDB. Null if the date is null or missing; negative if the date is in the future."):
        Exactly(1), |call, env| since(call, env, 86_400_000);
    /// Returns the number of whole hours from the date to now.
    "$hoursSince"("date")
        [r#"{"$hoursSince":{"$dateSubtract":{"startDate":"$$NOW","unit":"minute","amount":90}}}"#, "{}", "1"]
        .volatile()
        .remark("Not in MongoDB. Null if the date is null or missing; negative if the date is in the future."):
        Exactly(1), |call, env| since(call, env, 3_600_000);
    /// Returns the number of whole minutes from the date to now.
    "$minutesSince"("date")
        [r#"{"$minutesSince":{"$dateSubtract":{"startDate":"$$NOW","unit":"second","amount":150}}}"#, "{}", "2"]
        .volatile()
        .remark("Not in MongoDB. Null if the date is null or missing; negative if the date is in the future."):
        Exactly(1), |call, env| since(call, env, 60_000);
};

fn since(call: &OperatorCall, env: &Env, unit_ms: i64) -> Answer {
    let Some(ms) = date(call, 0, 16006, env)? else { return NULL };
    some(env.query.now_ms.saturating_sub(ms).div_euclid(unit_ms))
}

static MOVE: NamedArguments = NamedArguments {
    not_object: 5_166_400,
    unknown: 5_166_401,
    fields: &[
        ("startDate", Some(5_166_402)),
        ("unit", Some(5_166_402)),
        ("amount", Some(5_166_402)),
        ("timezone", None),
    ],
};

fn move_by(call: &OperatorCall, env: &Env, sign: i64) -> Answer {
    let Some(ms) = date(call, 0, 5_166_403, env)? else { return NULL };
    let unit = match call.value(1, env)? {
        Value::Null => return NULL,
        Value::String(_) => unit(call, 1, env)?,
        other => {
            let (name, found) = (call.name(), other.type_name());
            return err!(5_166_404, "{name} expects string defining the time unit, found: {found}");
        }
    };
    let Some(unit) = unit else { return NULL };
    let amount = call.value(2, env)?;
    if amount.is_null() {
        return NULL;
    }
    let Some(amount) = whole(&amount) else {
        return err!(5_166_405, "{} expects integer amount of time units", call.name());
    };
    let Some(zone) = zone(call, 3, env)? else { return NULL };
    some(Value::Date(add(ms, unit, amount.checked_mul(sign).ok_or_else(overflow)?, &zone)?))
}

/// Adds an amount of a unit to an instant. Units of a day or more keep the local time of day.
fn add(ms: i64, unit: Unit, amount: i64, zone: &TimeZone) -> Result<i64> {
    let span = if let Some(months) = unit.months() {
        amount.checked_mul(months).and_then(|months| Span::new().try_months(months).ok())
    } else if let Some(days) = unit.days() {
        amount.checked_mul(days).and_then(|days| Span::new().try_days(days).ok())
    } else {
        let moved = amount.checked_mul(unit.milliseconds()).and_then(|by| ms.checked_add(by));
        return moved.ok_or_else(overflow);
    };
    let span = span.ok_or_else(overflow)?;
    let moved = local(ms, zone)?.datetime.checked_add(span).map_err(|_| overflow())?;
    instant(moved, zone)
}

static DIFF: NamedArguments = NamedArguments {
    not_object: 5_166_301,
    unknown: 5_166_302,
    fields: &[
        ("startDate", Some(5_166_303)),
        ("endDate", Some(5_166_304)),
        ("unit", Some(5_166_305)),
        ("timezone", None),
        ("startOfWeek", None),
    ],
};

fn diff(call: &OperatorCall, env: &Env) -> Answer {
    let (Some(start), Some(end)) = (date(call, 0, 5_166_307, env)?, date(call, 1, 5_166_307, env)?) else {
        return NULL;
    };
    let (Some(unit), Some(zone)) = (unit(call, 2, env)?, zone(call, 3, env)?) else { return NULL };
    let Some(first_day) = start_of_week(call, 4, env)? else { return NULL };
    let (from, to) = (local(start, &zone)?, local(end, &zone)?);
    if let Some(months) = unit.months() {
        let count = |date: Date| (i64::from(date.year()) * 12 + i64::from(date.month()) - 1).div_euclid(months);
        return some(count(to.date()) - count(from.date()));
    }
    let days = |date: Date| day_number(date);
    Ok(Some(Value::Int(match unit {
        Unit::Day => days(to.date()) - days(from.date()),
        Unit::Week => {
            let week = |date: Date| days(week_start(date, first_day)).div_euclid(7);
            week(to.date()) - week(from.date())
        }
        Unit::Hour | Unit::Minute | Unit::Second => {
            // Offsets with a fraction of an hour shift the boundaries of hours.
            let local_ms = |ms: i64, offset: i32| ms + i64::from(offset) * 1000;
            let (from, to) = (local_ms(start, from.offset.seconds()), local_ms(end, from.offset.seconds()));
            to.div_euclid(unit.milliseconds()) - from.div_euclid(unit.milliseconds())
        }
        _ => end.checked_sub(start).ok_or_else(overflow)?,
    })))
}

/// Returns the number of days since 2000-01-01.
fn day_number(date: Date) -> i64 {
    let span = date.since(civil_date(2000, 1, 1)).expect("two calendar dates differ by a number of days");
    i64::from(span.get_days())
}

fn week_start(date: Date, first_day: Weekday) -> Date {
    let back = i64::from(date.weekday().since(first_day));
    date.checked_sub(back.days()).unwrap_or(Date::MIN)
}

static TRUNC: NamedArguments = NamedArguments {
    not_object: 5_439_007,
    unknown: 5_439_008,
    fields: &[
        ("date", Some(5_439_009)),
        ("unit", Some(5_439_010)),
        ("binSize", None),
        ("timezone", None),
        ("startOfWeek", None),
    ],
};

fn trunc(call: &OperatorCall, env: &Env) -> Answer {
    let Some(ms) = date(call, 0, 5_166_307, env)? else { return NULL };
    let Some(unit) = unit(call, 1, env)? else { return NULL };
    let size = if call.has_argument(2) { call.value(2, env)? } else { Value::Int(1) };
    if size.is_null() {
        return NULL;
    }
    let Some(size) = whole(&size) else {
        return Err(Error::new(
            5_439_017,
            format!("$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}'", excerpt(&size)),
        ));
    };
    if size <= 0 {
        return err!(5_439_018, "$dateTrunc requires 'binSize' to be greater than 0, but got value {size}");
    }
    let Some(zone) = zone(call, 3, env)? else { return NULL };
    let Some(first_day) = start_of_week(call, 4, env)? else { return NULL };
    some(Value::Date(trunc_to(ms, unit, size, &zone, first_day)?))
}

/// Returns the start of the bin that contains an instant. Bins of weeks are counted from the first start of a week on
/// or after 2000-01-01. All other bins are counted from 2000-01-01.
fn trunc_to(ms: i64, unit: Unit, size: i64, zone: &TimeZone, first_day: Weekday) -> Result<i64> {
    let date = local(ms, zone)?.date();
    let origin = civil_date(2000, 1, 1);
    let start = if let Some(months) = unit.months() {
        let bin = size.checked_mul(months).ok_or_else(overflow)?;
        let count = (i64::from(date.year()) - 2000) * 12 + i64::from(date.month()) - 1;
        origin.checked_add(Span::new().try_months(count.div_euclid(bin) * bin).map_err(|_| overflow())?)
    } else if let Some(days) = unit.days() {
        let bin = size.checked_mul(days).ok_or_else(overflow)?;
        let origin = match unit {
            Unit::Week => week_start(origin.saturating_add(6.days()), first_day),
            _ => origin,
        };
        let count = day_number(date) - day_number(origin);
        origin.checked_add(Span::new().try_days(count.div_euclid(bin) * bin).map_err(|_| overflow())?)
    } else {
        let bin = size.checked_mul(unit.milliseconds()).ok_or_else(overflow)?;
        let origin = instant(origin.to_datetime(jiff::civil::Time::midnight()), zone)?;
        let distance = ms.checked_sub(origin).ok_or_else(overflow)?;
        return ms.checked_sub(distance.rem_euclid(bin)).ok_or_else(overflow);
    };
    let start: DateTime = start.map_err(|_| overflow())?.to_datetime(jiff::civil::Time::midnight());
    instant(start, zone)
}
