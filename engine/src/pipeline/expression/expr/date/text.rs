//! Parses dates from strings, with a format or without one.

use jiff::tz::TimeZone;

use super::fields::failure;
use super::{layout, scan};
use crate::model::excerpt::excerpt_of;
use crate::pipeline::value::error::Result;

/// The maximum length of a string or format, in bytes. The parser reads the whole string even after an error, and the
/// query's time limit does not interrupt the parser.
const MAX_BYTES: usize = 1_000;

/// Parses a date string in any of the usual notations. `zone` applies to a string without a zone. Rejects a string with
/// a zone if `zone` is a zone other than UTC. Returns the milliseconds since 1970.
pub(in crate::pipeline::expression) fn parse(text: &str, zone: Option<&TimeZone>) -> Result<i64> {
    check_length("date string", text)?;
    let (found, faults) = scan::scan(text);
    found.finish(&faults, text, zone)
}

/// Parses a date string in the given format, otherwise like [`parse`].
pub(super) fn parse_with(text: &str, format: &str, zone: Option<&TimeZone>) -> Result<i64> {
    check_length("date string", text)?;
    check_length("format", format)?;
    let (found, faults) = layout::read(text, format);
    found.finish(&faults, text, zone)
}

fn check_length(what: &str, text: &str) -> Result<()> {
    if text.len() <= MAX_BYTES {
        return Ok(());
    }
    let (shown, bytes) = (excerpt_of(text), text.len());
    Err(failure(format!("Error parsing {what}: '{shown}' has {bytes} bytes; the limit is {MAX_BYTES} bytes")))
}
