//! Reads dates from text, with a format or in the usual ways of writing them.

use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};
use jiff::tz::{Offset, TimeZone};

use super::calendar::{instant, parse_offset, parse_zone};
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

fn failure(text: &str, why: &str) -> Error {
    Error::new(241, format!("Error parsing date string '{text}'; {why}"))
}

/// What has been read of a date so far.
#[derive(Default)]
struct Parts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
    zone: Option<TimeZone>,
}

impl Parts {
    /// The instant; a zone in the text excludes one beside it.
    fn finish(self, text: &str, zone: Option<&TimeZone>) -> Result<i64> {
        let date = self.date().ok_or_else(|| failure(text, "an incomplete or impossible date"))?;
        let small = |part: i64| i8::try_from(part).ok();
        let time = (|| {
            let nanoseconds = i32::try_from(self.millisecond * 1_000_000).ok()?;
            Time::new(small(self.hour)?, small(self.minute)?, small(self.second)?, nanoseconds).ok()
        })();
        let time = time.ok_or_else(|| failure(text, "an impossible time"))?;
        let zone = match (self.zone, zone) {
            (Some(_), Some(_)) => {
                return Err(failure(
                    text,
                    "you cannot pass in a date/time string with time zone information \
                     together with a timezone argument",
                ));
            }
            (Some(zone), None) => zone,
            (None, zone) => zone.cloned().unwrap_or(TimeZone::UTC),
        };
        instant(DateTime::from_parts(date, time), &zone).map_err(|_| failure(text, "beyond the calendar"))
    }

    fn date(&self) -> Option<Date> {
        if let (Some(year), Some(week)) = (self.iso_year, self.iso_week) {
            let day = Weekday::from_monday_one_offset(i8::try_from(self.iso_day.unwrap_or(1)).ok()?).ok()?;
            return Some(ISOWeekDate::new(i16::try_from(year).ok()?, i8::try_from(week).ok()?, day).ok()?.date());
        }
        let year = i16::try_from(self.year?).ok()?;
        if let Some(day) = self.day_of_year {
            let first = Date::new(year, 1, 1).ok()?;
            let date = first.with().day_of_year(i16::try_from(day).ok()?).build().ok()?;
            return Some(date);
        }
        Date::new(year, i8::try_from(self.month?).ok()?, i8::try_from(self.day?).ok()?).ok()
    }
}

/// Reads from the front of a text.
struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn eat_any(&mut self, wanted: &[char]) -> bool {
        wanted.iter().any(|char| self.eat(*char))
    }

    /// A number of `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let len = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if len < min {
            return None;
        }
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits.parse().ok()
    }

    /// Digits after a decimal point, as milliseconds.
    fn fraction(&mut self) -> Option<i64> {
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        let padded: String = digits.chars().chain("000".chars()).take(3).collect();
        (len > 0).then(|| padded.parse().ok()).flatten()
    }

    fn word(&mut self) -> &str {
        let len = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        word
    }

    /// A month's name, or its first three letters.
    fn month(&mut self) -> Option<i64> {
        let word = self.word().to_ascii_lowercase();
        let is_month = |name: &str| {
            let name = name.to_ascii_lowercase();
            name == word || name[..3] == word || (word == "sept" && name == "september")
        };
        MONTHS.iter().position(|name| is_month(name)).map(|index| index as i64 + 1)
    }

    /// "Mon, " or "Monday ", which adds nothing to a date.
    fn skip_weekday(&mut self) {
        const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let before = self.rest;
        let word = self.word().to_ascii_lowercase();
        if word.len() >= 3 && DAYS.iter().any(|day| day.starts_with(&*word)) {
            self.eat_any(&['.', ',']);
            self.spaces();
        } else {
            self.rest = before;
        }
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    /// `Z`, an offset or a zone's name; `None` where there is none.
    fn zone(&mut self) -> Result<Option<TimeZone>, ()> {
        self.spaces();
        if self.rest.is_empty() {
            return Ok(None);
        }
        let name = std::mem::take(&mut self.rest).trim_end();
        if matches!(name, "Z" | "z" | "UTC" | "GMT") {
            return Ok(Some(TimeZone::UTC));
        }
        let offset = name.strip_prefix("GMT").or_else(|| name.strip_prefix("UTC")).unwrap_or(name);
        if let Some(seconds) = parse_offset(offset) {
            return Ok(Some(TimeZone::fixed(Offset::from_seconds(seconds).unwrap_or(Offset::UTC))));
        }
        parse_zone(name).map(Some).map_err(|_| ())
    }
}

/// Reads ISO 8601 and its relatives, and dates with a month's name.
pub(super) fn parse(text: &str, zone: Option<&TimeZone>) -> Result<i64> {
    let mut reader = Reader { rest: text.trim() };
    let mut parts = Parts::default();
    let read = read_date(&mut reader, &mut parts).and_then(|()| read_time(&mut reader, &mut parts));
    match (read, reader.zone()) {
        (Some(()), Ok(own)) => {
            parts.zone = own;
            parts.finish(text, zone)
        }
        _ => Err(failure(text, "unexpected characters")),
    }
}

fn read_date(reader: &mut Reader, parts: &mut Parts) -> Option<()> {
    reader.skip_weekday();
    if reader.rest.starts_with(|char: char| char.is_ascii_alphabetic()) {
        // "February 3, 2024".
        parts.month = Some(reader.month()?);
        reader.spaces();
        parts.day = Some(reader.number(1, 2)?);
        reader.eat(',');
        reader.spaces();
        parts.year = Some(reader.number(4, 4)?);
        return Some(());
    }
    let digits = reader.rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 8 {
        parts.year = Some(reader.number(4, 4)?);
        parts.month = Some(reader.number(2, 2)?);
        parts.day = Some(reader.number(2, 2)?);
        return Some(());
    }
    if digits == 4 {
        parts.year = Some(reader.number(4, 4)?);
        if reader.eat('-') && reader.eat('W') {
            parts.iso_year = parts.year;
            parts.iso_week = Some(reader.number(2, 2)?);
            reader.eat('-');
            parts.iso_day = reader.number(1, 1);
            return Some(());
        }
        reader.eat('/');
        parts.month = Some(reader.number(1, 2)?);
        let has_day = reader.eat_any(&['-', '/']);
        parts.day = Some(if has_day { reader.number(1, 2)? } else { 1 });
        return Some(());
    }
    let first = reader.number(1, 2)?;
    if reader.eat('/') {
        // The month comes first, as in America.
        parts.month = Some(first);
        parts.day = Some(reader.number(1, 2)?);
        reader.eat('/').then_some(())?;
    } else if reader.eat_any(&['-', '.']) && reader.rest.starts_with(|char: char| char.is_ascii_digit()) {
        parts.day = Some(first);
        parts.month = Some(reader.number(1, 2)?);
        reader.eat_any(&['-', '.']).then_some(())?;
    } else {
        // "3 February 2024", "03-Feb-2024".
        reader.spaces();
        parts.day = Some(first);
        parts.month = Some(reader.month()?);
        reader.eat_any(&['-', ',']);
        reader.spaces();
    }
    parts.year = Some(reader.number(4, 4)?);
    Some(())
}

fn read_time(reader: &mut Reader, parts: &mut Parts) -> Option<()> {
    reader.eat_any(&['T', 't', ',']);
    reader.spaces();
    if !reader.rest.starts_with(|char: char| char.is_ascii_digit()) {
        return Some(());
    }
    parts.hour = reader.number(1, 2)?;
    if reader.eat(':') {
        parts.minute = reader.number(2, 2)?;
        if reader.eat(':') {
            parts.second = reader.number(2, 2)?;
        }
    } else if let Some(minute) = reader.number(2, 2) {
        parts.minute = minute;
        parts.second = reader.number(2, 2).unwrap_or(0);
    }
    if reader.eat_any(&['.', ',']) {
        parts.millisecond = reader.fraction()?;
    }
    reader.spaces();
    let lower = reader.rest.to_ascii_lowercase();
    if lower.starts_with("am") || lower.starts_with("pm") {
        reader.rest = &reader.rest[2..];
        (1..=12).contains(&parts.hour).then_some(())?;
        parts.hour = parts.hour % 12 + if lower.starts_with('p') { 12 } else { 0 };
    }
    Some(())
}

/// Reads a text that is written in a format.
pub(super) fn parse_with(text: &str, format: &str, zone: Option<&TimeZone>) -> Result<i64> {
    let mut reader = Reader { rest: text };
    let mut parts = Parts::default();
    let read = read_format(&mut reader, format, &mut parts);
    if read.is_none() || !reader.rest.is_empty() {
        return Err(failure(text, "it does not fit the format"));
    }
    parts.finish(text, zone)
}

fn read_format(reader: &mut Reader, format: &str, parts: &mut Parts) -> Option<()> {
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            reader.eat(char).then_some(())?;
            continue;
        }
        match chars.next()? {
            'b' | 'B' => parts.month = Some(reader.month()?),
            'd' => parts.day = Some(reader.number(1, 2)?),
            'G' => parts.iso_year = Some(reader.number(4, 4)?),
            'H' => parts.hour = reader.number(1, 2)?,
            'j' => parts.day_of_year = Some(reader.number(1, 3)?),
            'L' => parts.millisecond = reader.number(1, 3)?,
            'm' => parts.month = Some(reader.number(1, 2)?),
            'M' => parts.minute = reader.number(1, 2)?,
            'S' => parts.second = reader.number(1, 2)?,
            'u' => parts.iso_day = Some(reader.number(1, 1)?),
            'V' => parts.iso_week = Some(reader.number(1, 2)?),
            'Y' => parts.year = Some(reader.number(4, 4)?),
            'z' | 'Z' => {
                let (sign, text) = (reader.rest.get(..1)?, &reader.rest[1..]);
                if matches!(sign, "Z" | "z") {
                    reader.rest = text;
                    parts.zone = Some(TimeZone::UTC);
                    continue;
                }
                let len = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b':').count();
                let (offset, rest) = reader.rest.split_at(len + 1);
                let seconds = parse_offset(offset).or_else(|| offset.parse::<i32>().ok()?.checked_mul(60))?;
                reader.rest = rest;
                parts.zone = Some(TimeZone::fixed(Offset::from_seconds(seconds).ok()?));
            }
            '%' => reader.eat('%').then_some(())?,
            _ => return None,
        }
    }
    Some(())
}
