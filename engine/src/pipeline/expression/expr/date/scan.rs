//! Parses date strings for which no format is given, piece by piece.

use super::fields::{DateFaults, DateFields, month};
use super::grammar::{DatePart, Meaning, next};
use super::relative::{OfMonth, RelativeUnit, amount, unit, weekday};
use super::zone::Zone;

/// The state of parsing one string.
struct DateScan<'t> {
    /// The string with a final NUL, which some rules of the grammar match.
    text: &'t [u8],
    found: DateFields,
    faults: DateFaults,
    /// The byte offset of the current piece.
    at: usize,
    dates: u32,
    times: u32,
    zones: u32,
}

/// Parses a date string. Returns the fields of the date, and the errors and warnings.
pub(super) fn scan(text: &str) -> (DateFields, DateFaults) {
    let text = text.trim_matches(|char: char| char.is_ascii_whitespace() || char == '\x0b');
    let mut faults = DateFaults::default();
    if text.is_empty() {
        faults.error(0, "Empty string", None);
        return (DateFields::default(), faults);
    }
    let mut ended = text.as_bytes().to_vec();
    ended.push(b'\0');
    let mut scan = DateScan { text: &ended, found: DateFields::default(), faults, at: 0, dates: 0, times: 0, zones: 0 };
    while scan.at < ended.len() {
        match next(&ended, scan.at) {
            Some((meaning, end)) => {
                scan.take(meaning, &ended[scan.at..end]);
                scan.at = end;
            }
            None => {
                scan.error("Unexpected character");
                scan.at += 1;
            }
        }
    }
    if scan.times > 0 && !scan.found.is_time() {
        scan.warning("The parsed time was invalid");
    }
    if scan.dates > 0 && scan.found.date().is_none() && scan.found.has_date() {
        scan.warning("The parsed date was invalid");
    }
    (scan.found, scan.faults)
}

impl DateScan<'_> {
    fn error(&mut self, message: &str) {
        self.faults.error(self.at, message, self.text.get(self.at).copied());
    }

    fn warning(&mut self, message: &str) {
        self.faults.warning(self.at, message, self.text.get(self.at).copied());
    }

    /// Updates the fields of the date from a piece of the string. `meaning` is the meaning of this piece.
    fn take(&mut self, meaning: Meaning, piece: &[u8]) {
        let mut piece = Piece { rest: piece };
        match meaning {
            Meaning::Nothing | Meaning::Now => {}
            Meaning::Parts(parts) => self.parts(parts, &mut piece),
            Meaning::Digits => self.digits(&mut piece),
            Meaning::Year => self.found.year = piece.number(4).map(|(year, _)| year),
            Meaning::Month => {
                if self.scan_date() {
                    self.found.month = piece.month();
                }
            }
            Meaning::Zone => {
                if self.scan_zone() {
                    self.zone(&mut piece);
                }
            }
            Meaning::Midnight(days) => {
                self.midnight();
                self.found.relative.days += days;
            }
            Meaning::Noon => {
                self.midnight();
                if self.scan_time() {
                    self.found.hour = Some(12);
                }
            }
            Meaning::Weekday => {
                self.midnight();
                self.found.relative.weekday = weekday(piece.word());
                if self.found.relative.weekday_behavior != 2 {
                    self.found.relative.weekday_behavior = 1;
                }
            }
            Meaning::IsoWeek => self.iso_week(&mut piece),
            Meaning::DayOfYear => {
                if self.scan_date() {
                    self.found.year = piece.number(4).map(|(year, _)| year);
                    self.found.day_of_year = piece.number(3).map(|(day, _)| day);
                }
            }
            Meaning::Timestamp => self.timestamp(&mut piece),
            Meaning::FirstOrLastDayOf => {
                let is_last = piece.word().eq_ignore_ascii_case("last");
                self.found.relative.of_month = Some(if is_last { OfMonth::Last } else { OfMonth::First });
            }
            Meaning::WeekdayOf => self.weekday_of(&mut piece),
            Meaning::BackOf => self.around_hour(&mut piece, 0, 15),
            Meaning::FrontOf => self.around_hour(&mut piece, -1, 45),
            Meaning::Amount => {
                if let (Some(number), Some(unit)) = (piece.signed(), unit(piece.word())) {
                    self.add(number, unit, 1);
                }
            }
            Meaning::Word => {
                if let (Some((number, behavior)), Some(unit)) = (amount(piece.word()), unit(piece.word())) {
                    self.add(number, unit, behavior);
                }
            }
            Meaning::WordWeek => {
                if let Some((number, _)) = amount(piece.word()) {
                    self.add(number, RelativeUnit::Days(7), 2);
                    self.found.relative.weekday_behavior = 2;
                    self.found.relative.weekday.get_or_insert(1);
                }
            }
            Meaning::Ago => self.found.relative.negate(),
        }
    }

    /// Sets the time of day to midnight, and records that the string contains a time. If a time is already recorded,
    /// records an error and returns `false` instead.
    fn scan_time(&mut self) -> bool {
        if self.times > 0 {
            self.error("Double time specification");
            return false;
        }
        self.midnight();
        self.times = 1;
        true
    }

    /// Sets the time of day to midnight. Replaces a time that the string already contained.
    fn midnight(&mut self) {
        self.times = 0;
        (self.found.hour, self.found.minute, self.found.second) = (Some(0), Some(0), Some(0));
        self.found.microsecond = 0;
    }

    fn scan_date(&mut self) -> bool {
        if self.dates > 0 {
            self.error("Double date specification");
            return false;
        }
        self.dates = 1;
        true
    }

    fn scan_zone(&mut self) -> bool {
        self.zones += 1;
        match self.zones {
            1 => return true,
            2 => self.warning("Double timezone specification"),
            _ => self.error("Double timezone specification"),
        }
        false
    }

    fn zone(&mut self, piece: &mut Piece) {
        match Zone::read(piece.rest) {
            Ok((zone, _)) => self.found.zone = Some(zone),
            Err(_) => self.error("passing a time zone identifier as part of the string is not allowed"),
        }
        piece.rest = &[];
    }

    fn add(&mut self, number: i64, unit: RelativeUnit, behavior: i64) {
        if matches!(unit, RelativeUnit::Weekday(_)) {
            self.midnight();
        }
        self.found.relative.add(number, unit, behavior);
    }

    fn parts(&mut self, parts: &[DatePart], piece: &mut Piece) {
        let is_date = |part: &DatePart| matches!(part, DatePart::Month | DatePart::MonthName);
        if (parts.contains(&DatePart::Hour) && !self.scan_time()) || (parts.iter().any(is_date) && !self.scan_date()) {
            return;
        }
        // A sign belongs to a year only at the start of a piece. Elsewhere the sign separates two numbers.
        let sign = if piece.rest.first() == Some(&b'-') { -1 } else { 1 };
        for (place, part) in parts.iter().enumerate() {
            match part {
                DatePart::Year => {
                    let sign = if place == 0 { sign } else { 1 };
                    self.found.year = piece.number(4).map(|(year, _)| sign * year);
                }
                DatePart::ShortYear => self.found.year = piece.number(4).map(|(year, digits)| full_year(year, digits)),
                DatePart::Month => self.found.month = piece.number(2).map(|(month, _)| month),
                DatePart::MonthName => self.found.month = piece.month(),
                DatePart::Day => {
                    self.found.day = piece.number(2).map(|(day, _)| day);
                    piece.skip_suffix();
                }
                DatePart::Hour => self.found.hour = piece.number(2).map(|(hour, _)| hour),
                DatePart::Minute if piece.goes_on() => self.found.minute = piece.number(2).map(|(minute, _)| minute),
                DatePart::Second if piece.goes_on() => self.found.second = piece.number(2).map(|(second, _)| second),
                DatePart::Minute | DatePart::Second => {}
                DatePart::Fraction => self.found.microsecond = piece.fraction().unwrap_or(0),
                DatePart::Meridian => self.found.hour = self.found.hour.map(|hour| hour + piece.meridian(hour)),
                DatePart::Zone if piece.rest.iter().any(|byte| *byte != b'\0') => self.zone(piece),
                DatePart::Zone => {}
            }
        }
        // A month without a day denotes the first day of the month.
        if parts.iter().any(is_date) && !parts.contains(&DatePart::Day) {
            self.found.day = Some(1);
        }
    }

    fn digits(&mut self, piece: &mut Piece) {
        match self.times {
            0 => {
                self.midnight();
                self.found.hour = piece.number(2).map(|(hour, _)| hour);
                self.found.minute = piece.number(2).map(|(minute, _)| minute);
            }
            1 => self.found.year = piece.number(4).map(|(year, _)| year),
            _ => return self.error("Double time specification"),
        }
        self.times += 1;
    }

    fn iso_week(&mut self, piece: &mut Piece) {
        if !self.scan_date() {
            return;
        }
        self.found.iso_year = piece.number(4).map(|(year, _)| year);
        self.found.iso_week = piece.number(2).map(|(week, _)| week);
        self.found.iso_day = piece.number(1).map(|(day, _)| day);
    }

    fn timestamp(&mut self, piece: &mut Piece) {
        self.midnight();
        self.dates = 0;
        if !self.scan_zone() {
            return;
        }
        (self.found.year, self.found.month, self.found.day) = (Some(1970), Some(1), Some(1));
        self.found.zone = Some(Zone::Offset(0));
        let is_negative = piece.rest.contains(&b'-');
        let sign = if is_negative { -1 } else { 1 };
        let seconds = piece.number(24).map_or(0, |(seconds, _)| seconds);
        self.found.relative.seconds = self.found.relative.seconds.saturating_add(sign * seconds);
        self.found.relative.microseconds = sign * piece.fraction().unwrap_or(0);
    }

    fn weekday_of(&mut self, piece: &mut Piece) {
        if let (Some((nth, _)), Some(weekday)) = (amount(piece.word()), weekday(piece.word())) {
            self.midnight();
            self.found.relative.of_month = Some(OfMonth::Weekday { nth, weekday });
        }
    }

    /// Sets the time to a quarter past an hour (`back of`) or a quarter to an hour (`front of`).
    fn around_hour(&mut self, piece: &mut Piece, hours: i64, minute: i64) {
        self.midnight();
        if self.scan_time() {
            let hour = piece.number(2).map_or(0, |(hour, _)| hour);
            let hour = hour + piece.meridian(hour);
            self.found.hour = Some(hour + hours);
            self.found.minute = Some(minute);
        }
    }
}

/// Returns the year that a number denotes. A number below 100 with fewer than four digits denotes a year from 1970 to
/// 2069.
fn full_year(year: i64, digits: usize) -> i64 {
    match year {
        _ if digits >= 4 => year,
        ..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    }
}

/// A piece of the string that is being read. Only the unread part of the piece is kept.
struct Piece<'p> {
    rest: &'p [u8],
}

impl Piece<'_> {
    /// Skips to the next number and reads at most `max` of its digits. Returns the number and the count of digits, or
    /// `None` if no number follows.
    fn number(&mut self, max: usize) -> Option<(i64, usize)> {
        let start = self.rest.iter().position(u8::is_ascii_digit)?;
        let digits = self.rest[start..].iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.rest[start..start + digits]).ok()?;
        self.rest = &self.rest[start + digits..];
        Some((number.parse().unwrap_or(i64::MAX), digits))
    }

    /// Reads a number and the signs before the number. The number is negative if the count of minus signs is odd.
    fn signed(&mut self) -> Option<i64> {
        let minuses = self.rest.iter().take_while(|byte| !byte.is_ascii_digit()).filter(|byte| **byte == b'-').count();
        self.number(24).map(|(number, _)| if minuses % 2 == 1 { -number } else { number })
    }

    /// Returns whether the next byte continues the time.
    fn goes_on(&self) -> bool {
        matches!(self.rest.first(), Some(b':' | b'.' | b'0'..=b'9'))
    }

    /// Reads the fraction of a second after a point or colon. Returns microseconds, or `None` if neither follows.
    fn fraction(&mut self) -> Option<i64> {
        let rest = self.rest.strip_prefix(b".").or_else(|| self.rest.strip_prefix(b":"))?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut number = 0;
        for place in 0..6 {
            number = number * 10 + rest[..digits].get(place).map_or(0, |digit| i64::from(digit - b'0'));
        }
        self.rest = &rest[digits..];
        Some(number)
    }

    /// Returns the number of hours that `am` or `pm` adds to `hour`.
    fn meridian(&mut self, hour: i64) -> i64 {
        match self.rest.iter().find(|byte| matches!(byte, b'a' | b'A' | b'p' | b'P')) {
            Some(b'a' | b'A') if hour == 12 => -12,
            Some(b'p' | b'P') if hour != 12 => 12,
            _ => 0,
        }
    }

    fn skip_suffix(&mut self) {
        let suffix = self.rest.get(..2).map(<[u8]>::to_ascii_lowercase);
        if let Some(b"st" | b"nd" | b"rd" | b"th") = suffix.as_deref() {
            self.rest = &self.rest[2..];
        }
    }

    fn month(&mut self) -> Option<i64> {
        month(self.word())
    }

    /// Skips to the next word and reads the word. Returns an empty string if no word follows.
    fn word(&mut self) -> &str {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
        let start = self.rest.iter().position(is_letter).unwrap_or(self.rest.len());
        let rest = &self.rest[start..];
        let len = rest.iter().take_while(|byte| is_letter(byte)).count();
        self.rest = &rest[len..];
        std::str::from_utf8(&rest[..len]).unwrap_or_default()
    }
}
