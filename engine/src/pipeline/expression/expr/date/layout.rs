//! Parses dates that are written in a given format.

use super::fields::{DateFaults, DateFields, month};
use super::zone::Zone;

/// A parser that reads a date string in the order of its format, and collects the fields and the errors.
struct LayoutReader<'t> {
    text: &'t [u8],
    at: usize,
    found: DateFields,
    faults: DateFaults,
}

/// Parses a date string in a format. Returns the fields of the date, and the errors and warnings.
pub(super) fn read(text: &str, format: &str) -> (DateFields, DateFaults) {
    let mut reader =
        LayoutReader { text: until_end(text), at: 0, found: DateFields::default(), faults: DateFaults::default() };
    let mut format = until_end(format).iter();
    while reader.at < reader.text.len() {
        match format.next() {
            None => break,
            Some(b'%') => match format.next() {
                None => break,
                Some(b'%') => reader.literal(b'%'),
                Some(specifier) => reader.specifier(*specifier),
            },
            Some(byte) => reader.literal(*byte),
        }
    }
    if reader.at < reader.text.len() {
        reader.error(reader.at, "Trailing data");
    }
    if !format.as_slice().is_empty() {
        reader.error(reader.at, "Not enough data available to satisfy format");
    }
    reader.check();
    (reader.found, reader.faults)
}

/// Returns the bytes before the first NUL, which ends formats and dates.
fn until_end(text: &str) -> &[u8] {
    text.as_bytes().split(|byte| *byte == b'\0').next().unwrap_or_default()
}

impl LayoutReader<'_> {
    fn error(&mut self, at: usize, message: &str) {
        self.faults.error(at, message, self.text.get(at).copied());
    }

    fn literal(&mut self, expected: u8) {
        if self.text.get(self.at) != Some(&expected) {
            self.error(self.at, "Format literal not found");
        }
        self.at += 1;
    }

    /// Reads a number of at most `max` digits. Returns the number and the count of its digits, or `None` if no digit
    /// follows.
    fn number(&mut self, max: usize) -> Option<(i64, usize)> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let digits = rest.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        self.at += digits;
        Some((number, digits))
    }

    /// Reads a number of at most `max` digits. Records an error if there is no number.
    fn required_number(&mut self, max: usize, what: &str) -> Option<i64> {
        let begin = self.at;
        let number = self.number(max).map(|(number, _)| number);
        if number.is_none() {
            self.error(begin, &format!("{what} could not be found"));
        }
        number
    }

    /// Reads a number of exactly two digits. Records an error if fewer digits follow.
    fn two_digits(&mut self, what: &str) -> Option<i64> {
        let begin = self.at;
        let number = self.number(2).filter(|(_, digits)| *digits == 2).map(|(number, _)| number);
        if number.is_none() {
            self.error(begin, &format!("A two digit {what} could not be found"));
        }
        number
    }

    fn within(&mut self, number: Option<i64>, begin: usize, last: i64, what: &str) -> Option<i64> {
        if number.is_some_and(|number| !(1..=last).contains(&number)) {
            self.error(begin, &format!("{what} must be between 1 and {last}"));
        }
        number
    }

    fn specifier(&mut self, specifier: u8) {
        let begin = self.at;
        match specifier {
            b'b' | b'B' => self.month(),
            b'd' => self.found.day = self.required_number(2, "A two digit day"),
            b'G' => self.found.iso_year = self.required_number(4, "A four digit ISO year"),
            b'H' => self.found.hour = self.required_number(2, "A two digit hour"),
            b'j' => self.found.day_of_year = self.required_number(3, "A three digit day-of-year"),
            b'L' => match self.number(3) {
                Some((number, digits)) => {
                    // Fewer than three digits denote a decimal fraction of a second.
                    let scale = [1_000_000, 100_000, 10_000, 1_000].get(digits).copied().unwrap_or(1_000);
                    self.found.microsecond = number * scale;
                    self.found.second.get_or_insert(0);
                }
                None => self.error(begin, "A three digit millisecond could not be found"),
            },
            b'm' => self.found.month = self.required_number(2, "A two digit month"),
            b'M' => self.found.minute = self.two_digits("minute"),
            b'S' => self.found.second = self.two_digits("second"),
            b'u' => {
                let day = self.required_number(1, "A single digit day of week");
                self.found.iso_day = self.within(day, begin, 7, "Day of week");
            }
            b'V' => {
                let week = self.required_number(2, "A two digit ISO week");
                self.found.iso_week = self.within(week, begin, 53, "ISO Week");
            }
            b'Y' => self.found.year = self.required_number(4, "A four digit year"),
            b'z' => match Zone::read(&self.text[self.at..]) {
                Ok((zone, len)) => {
                    self.found.zone = Some(zone);
                    self.at += len;
                }
                Err(len) => {
                    self.error(begin, "passing a time zone identifier as part of the string is not allowed");
                    self.at += len;
                }
            },
            b'Z' => match Zone::read_minutes(&self.text[self.at..]) {
                Some((zone, len)) => {
                    self.found.zone = Some(zone);
                    self.at += len;
                }
                None => self.error(begin, "Invalid timezone offset in minutes"),
            },
            // The caller has already rejected invalid specifiers.
            other => self.literal(other),
        }
    }

    fn month(&mut self) {
        let rest = &self.text[self.at..];
        let len = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        self.found.month = std::str::from_utf8(&rest[..len]).ok().and_then(month);
        if self.found.month.is_none() {
            self.error(self.at, "A textual month could not be found");
        }
        self.at += len;
    }

    /// Records the errors and warnings that involve several fields.
    fn check(&mut self) {
        let end = self.at;
        let found = &self.found;
        let is_natural = found.year.is_some() || found.month.is_some() || found.day.is_some();
        let is_iso = found.iso_year.is_some() || found.iso_week.is_some() || found.iso_day.is_some();
        let (iso_alone, has_iso_year) = (is_iso && found.iso_year.is_none(), found.iso_year.is_some());
        let is_complete = found.has_date();
        if (found.year.is_some() && is_iso) || (has_iso_year && is_natural) {
            self.error(end, "Mixing of ISO dates with natural dates is not allowed");
        } else if iso_alone || (is_complete && self.found.date().is_none()) {
            self.faults.warning(end, "The parsed date was invalid", None);
        }
        if !self.found.is_time() {
            self.faults.warning(end, "The parsed time was invalid", None);
        }
    }
}
