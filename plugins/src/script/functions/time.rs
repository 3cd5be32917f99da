//! Functions for times: the time of the call, parsing, formatting, and the days between two times. A time is an RFC
//! 3339 text, a day such as `2024-05-01`, or a number of milliseconds since 1970.

use foldwork_engine::model::date::{format_date, parse_date};
use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use rhai::{Dynamic, Engine, INT, ImmutableString};

use super::registration::{Refused, function, thrown, too_large};
use crate::script::guard::now_ms;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const MAX_FORMAT: usize = 100;

pub(super) fn register(engine: &mut Engine) {
    function(
        "now",
        &["string"],
        "Returns the time of the call's event, or the current time for the hook `tool`. Scripts have no other clock.",
        r#"type_of(now()) == "string""#,
    )
    .register_into_engine(engine, || format_date(now_ms()));
    function(
        "parse_time",
        &["text: string", "int"],
        "Returns the milliseconds since 1970 of an RFC 3339 time or of a day such as 2024-05-01, or `()` for other \
         texts.",
        r#"parse_time("1970-01-02") == 86400000 && parse_time("soon") == ()"#,
    )
    .register_into_engine(engine, |text: &str| parse_date(text).map_or(Dynamic::UNIT, Dynamic::from_int));
    function(
        "format_time",
        &["time: string | int", "format: string", "string"],
        "Formats a time in UTC with the directives of strftime.",
        r#"format_time("2024-05-01T12:00:00Z", "%d %B %Y") == "01 May 2024""#,
    )
    .register_into_engine(engine, |time: Dynamic, format: &str| formatted(&time, format));
    function(
        "days_between",
        &["from: string | int", "to: string | int", "int"],
        "Counts the whole days from one time to another. Negative if the second time is earlier.",
        r#"days_between("2024-02-28", "2024-03-01T12:00:00Z") == 2"#,
    )
    .register_into_engine(engine, |from: Dynamic, to: Dynamic| -> Result<INT, Refused> {
        Ok(time_of(&to)?.saturating_sub(time_of(&from)?) / DAY_MS)
    });
}

fn time_of(time: &Dynamic) -> Result<i64, Refused> {
    if let Ok(ms) = time.as_int() {
        return Ok(ms);
    }
    let text = time.as_immutable_string_ref().map_err(|kind| {
        thrown(format!("expected a time as a string or as milliseconds since 1970, found a value of type {kind}"))
    })?;
    parse_date(&text).ok_or_else(|| {
        let start: String = text.chars().take(40).collect();
        thrown(format!("'{start}' is neither an RFC 3339 time nor a day such as 2024-05-01"))
    })
}

fn formatted(time: &Dynamic, format: &str) -> Result<ImmutableString, Refused> {
    if format.len() > MAX_FORMAT {
        return Err(too_large("a time format is"));
    }
    let time = Timestamp::from_millisecond(time_of(time)?)
        .map_err(|_| thrown("the time is outside the years -9999 to 9999"))?;
    let text = strtime::format(format, &time.to_zoned(TimeZone::UTC)).map_err(|error| thrown(error.to_string()))?;
    Ok(text.into())
}
