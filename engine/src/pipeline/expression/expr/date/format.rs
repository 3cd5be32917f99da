//! Operators that convert dates to and from strings.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::super::operator::ArgumentForm::Named as ByName;
use super::super::operator::{ExprOperator, NamedArguments, OperatorCall, name_table};
use super::super::{Answer, Env, NULL, some};
use super::calendar::{LocalTime, date, local, zone};
use super::parts::week;
use super::{fields, text};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result, err};

pub(in crate::pipeline::expression) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Parses a string as a date.
    "$dateFromString"(
        "dateString: string, format?: string, timezone?: string, onError?: any, onNull?: any"
    ) [r#"{"$dateFromString":{"dateString":"03.02.2024","format":"%d.%m.%Y"}}"#, "{}", r#""2024-02-03T00:00:00.000Z""#]:
        ByName(&FROM_STRING), from_string;
    /// Formats a date as a string.
    "$dateToString"("date, format?: string, timezone?: string, onNull?: any")
        [r#"{"$dateToString":{"date":{"$toDate":"2024-02-03"},"format":"%d.%m.%Y"}}"#, "{}", r#""03.02.2024""#]:
        ByName(&TO_STRING), to_string;
};

static TO_STRING: NamedArguments = NamedArguments {
    not_object: 18629,
    unknown: 18534,
    fields: &[("date", Some(18628)), ("format", None), ("timezone", None), ("onNull", None)],
};

fn to_string(call: &OperatorCall, env: &Env) -> Answer {
    let format = format_of(call, 18533, env)?;
    let Some(zone) = zone(call, 2, env)? else { return NULL };
    let Some(ms) = date(call, 0, 16006, env)? else {
        return if call.has_argument(3) { call.field(3, env) } else { NULL };
    };
    let format = match &format {
        Some(format) => format,
        None if call.has_argument(1) => return NULL,
        None if zone == TimeZone::UTC => "%Y-%m-%dT%H:%M:%S.%LZ",
        None => "%Y-%m-%dT%H:%M:%S.%L",
    };
    env.query.charge(format.len() * 6)?;
    some(write(format, &local(ms, &zone)?))
}

/// Evaluates and checks the format in the second argument. Returns `None` if the argument is null or missing.
fn format_of(call: &OperatorCall, code: i32, env: &Env) -> Result<Option<Arc<str>>> {
    let complaint = format_args!("{} requires that 'format' be a string, found:", call.name());
    let format = call.text(1, code, complaint, env)?;
    if let Some(format) = &format {
        check_format(format, call.name())?;
    }
    Ok(format)
}

/// Rejects a format with an unknown specifier or with a single `%` at the end.
fn check_format(format: &str, name: &str) -> Result<()> {
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            continue;
        }
        match chars.next() {
            None => return err!(18535, "Unmatched '%' at end of format string in {name}"),
            Some(known) if "bBdGHjLmMSuUVwYzZ%".contains(known) => {}
            Some(stray) => return err!(18536, "Invalid format character '%{stray}' in format string"),
        }
    }
    Ok(())
}

fn write(format: &str, time: &LocalTime) -> String {
    let mut text = String::with_capacity(format.len() * 2);
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            text.push(char);
            continue;
        }
        let iso = || time.date().iso_week_date();
        let minutes = time.offset.seconds() / 60;
        let part = match chars.next() {
            Some('b') => fields::MONTHS[time.month() as usize - 1][..3].to_owned(),
            Some('B') => fields::MONTHS[time.month() as usize - 1].to_owned(),
            Some('d') => format!("{:02}", time.day()),
            Some('G') => format!("{:04}", iso().year()),
            Some('H') => format!("{:02}", time.hour()),
            Some('j') => format!("{:03}", time.day_of_year()),
            Some('L') => format!("{:03}", time.millisecond()),
            Some('m') => format!("{:02}", time.month()),
            Some('M') => format!("{:02}", time.minute()),
            Some('S') => format!("{:02}", time.second()),
            Some('u') => time.weekday().to_monday_one_offset().to_string(),
            Some('U') => format!("{:02}", week(time)),
            Some('V') => format!("{:02}", iso().week()),
            Some('w') => time.weekday().to_sunday_one_offset().to_string(),
            Some('Y') => format!("{:04}", time.year()),
            Some('z') => {
                let sign = if minutes < 0 { '-' } else { '+' };
                format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
            Some('Z') => format!("{minutes:+}"),
            other => other.map(String::from).unwrap_or_default(),
        };
        text.push_str(&part);
    }
    text
}

static FROM_STRING: NamedArguments = NamedArguments {
    not_object: 40540,
    unknown: 40541,
    fields: &[("dateString", Some(40542)), ("format", None), ("timezone", None), ("onError", None), ("onNull", None)],
};

fn from_string(call: &OperatorCall, env: &Env) -> Answer {
    let format = format_of(call, 40684, env)?;
    if let Some(format) = &format
        && let Some(place) = format.find("%U").or_else(|| format.find("%w"))
    {
        return err!(18536, "Invalid format character '{}' in format string", &format[place..place + 2]);
    }
    let text = call.value(0, env)?;
    if text.is_null() {
        return if call.has_argument(4) { call.field(4, env) } else { NULL };
    }
    let zone = zone(call, 2, env)?;
    if zone.is_none() || (call.has_argument(1) && format.is_none()) {
        return NULL;
    }
    let parsed = match &text {
        Value::String(text) => {
            let zone = zone.filter(|_| call.has_argument(2));
            match format {
                Some(format) => text::parse_with(text, &format, zone.as_ref()),
                None => text::parse(text, zone.as_ref()),
            }
        }
        other => {
            let found = other.type_name();
            err!(
                241,
                "$dateFromString requires that 'dateString' be a string, found: {found} with value {}",
                excerpt(other)
            )
        }
    };
    match parsed {
        Err(Error { code: PipelineErrorCode::Number(241), .. }) if call.has_argument(3) => call.field(3, env),
        result => result.map(|ms| Some(Value::Date(ms))),
    }
}
