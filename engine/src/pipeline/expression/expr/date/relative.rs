//! The relative parts of a date string: weekdays, offsets such as `2 days ago`, and days of the month.

use jiff::civil::{Date, Weekday};

/// The relative parts of a date: an offset in each unit, a weekday, and a day of the month.
#[derive(Debug, Clone, Default)]
pub(super) struct RelativeDate {
    pub years: i64,
    pub months: i64,
    pub days: i64,
    pub seconds: i64,
    pub microseconds: i64,
    pub weekday: Option<i64>,
    /// The rule for choosing a day that falls on `weekday`, relative to the date in the string:
    ///
    /// - Rule 0 selects the first such day after the date. If `days` is negative, rule 1 applies instead.
    /// - Rule 1 selects the first such day that is not before the date.
    /// - Rule 2 selects the day in the week of the date, even if the day is before the date.
    ///
    /// A negative `weekday`, as after `ago`, changes rules 0 and 1: both select a day that is not after the date.
    pub weekday_behavior: i64,
    pub of_month: Option<OfMonth>,
}

/// A day of the month given by its position.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfMonth {
    First,
    Last,
    /// The nth occurrence of a weekday. An `nth` below 1 denotes the last occurrence.
    Weekday {
        nth: i64,
        weekday: i64,
    },
}

/// A unit of relative time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelativeUnit {
    Microseconds(i64),
    Seconds(i64),
    Days(i64),
    Months,
    Years,
    Weekday(i64),
}

/// Returns the unit with this name, ignoring case. All names except those of weekdays may be in the plural.
pub(super) fn unit(word: &str) -> Option<RelativeUnit> {
    let word = word.to_ascii_lowercase();
    if let Some(weekday) = weekday(&word) {
        return Some(RelativeUnit::Weekday(weekday));
    }
    Some(match word.strip_suffix('s').filter(|singular| singular.chars().count() > 1).unwrap_or(&word) {
        "ms" | "msec" | "millisecond" => RelativeUnit::Microseconds(1_000),
        "µs" | "usec" | "µsec" | "microsecond" => RelativeUnit::Microseconds(1),
        "sec" | "second" => RelativeUnit::Seconds(1),
        "min" | "minute" => RelativeUnit::Seconds(60),
        "hour" => RelativeUnit::Seconds(3_600),
        "day" => RelativeUnit::Days(1),
        "week" => RelativeUnit::Days(7),
        "fortnight" | "forthnight" => RelativeUnit::Days(14),
        "month" => RelativeUnit::Months,
        "year" => RelativeUnit::Years,
        _ => return None,
    })
}

/// Returns the number of days from Sunday to a weekday, given its name or the first three letters, ignoring case.
pub(super) fn weekday(word: &str) -> Option<i64> {
    const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let is_day = |day: &&str| day.eq_ignore_ascii_case(word) || day[..3].eq_ignore_ascii_case(word);
    DAYS.iter().position(is_day).map(|place| place as i64)
}

/// Returns the number that a word denotes, and the `weekday_behavior` for a weekday that follows the word. The word
/// must be an ordinal, or a word such as `next`.
pub(super) fn amount(word: &str) -> Option<(i64, i64)> {
    const ORDINALS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
        "twelfth",
    ];
    Some(match word.to_ascii_lowercase().as_str() {
        "next" => (1, 0),
        "last" | "previous" => (-1, 0),
        "this" => (0, 1),
        "eight" => (8, 0),
        ordinal => (ORDINALS.iter().position(|known| *known == ordinal)? as i64 + 1, 0),
    })
}

impl RelativeDate {
    /// Adds an amount of a unit. For a weekday, also sets `weekday` and `weekday_behavior`.
    pub fn add(&mut self, amount: i64, unit: RelativeUnit, behavior: i64) {
        let scaled = |by: i64| amount.saturating_mul(by);
        match unit {
            RelativeUnit::Microseconds(by) => self.microseconds = self.microseconds.saturating_add(scaled(by)),
            RelativeUnit::Seconds(by) => self.seconds = self.seconds.saturating_add(scaled(by)),
            RelativeUnit::Days(by) => self.days = self.days.saturating_add(scaled(by)),
            RelativeUnit::Months => self.months = self.months.saturating_add(amount),
            RelativeUnit::Years => self.years = self.years.saturating_add(amount),
            RelativeUnit::Weekday(weekday) => {
                let weeks = if amount > 0 { amount - 1 } else { amount };
                self.days = self.days.saturating_add(weeks.saturating_mul(7));
                self.weekday = Some(weekday);
                self.weekday_behavior = behavior;
            }
        }
    }

    /// Negates all offsets and the weekday that were added so far. Implements `ago`.
    pub fn negate(&mut self) {
        for part in [&mut self.years, &mut self.months, &mut self.days, &mut self.seconds, &mut self.microseconds] {
            *part = part.saturating_neg();
        }
        self.weekday = self.weekday.map(|weekday| if weekday == 0 { -7 } else { -weekday });
    }

    /// Applies the weekday, the offsets in days or longer units, and the day of the month to a day. An nth weekday of
    /// the month ignores the offset in days. Returns `None` if the result is outside the calendar, or the month has no
    /// nth weekday.
    pub fn apply(&self, from: Date) -> Option<Date> {
        let date = plus_days(from, self.to_weekday(from))?;
        let months = i64::from(date.year())
            .checked_add(self.years)?
            .checked_mul(12)?
            .checked_add(i64::from(date.month()) - 1)?
            .checked_add(self.months)?;
        let year = i16::try_from(months.div_euclid(12)).ok()?;
        let first = Date::new(year, i8::try_from(months.rem_euclid(12) + 1).ok()?, 1).ok()?;
        match self.of_month {
            None => plus_days(first, self.days.checked_add(i64::from(date.day()) - 1)?),
            Some(OfMonth::First) => plus_days(first, self.days),
            Some(OfMonth::Last) => plus_days(first.last_of_month(), self.days),
            Some(OfMonth::Weekday { nth, weekday }) => {
                let weekday = Weekday::from_sunday_zero_offset(i8::try_from(weekday).ok()?).ok()?;
                first.nth_weekday_of_month(if nth < 1 { -1 } else { i8::try_from(nth).ok()? }, weekday).ok()
            }
        }
    }

    /// Returns the number of days from a day to the requested weekday, or 0 if no weekday is requested.
    fn to_weekday(&self, from: Date) -> i64 {
        let Some(weekday) = self.weekday else { return 0 };
        let today = i64::from(from.weekday().to_sunday_zero_offset());
        if self.weekday_behavior == 2 {
            // A week begins on Monday.
            return (weekday + 6).rem_euclid(7) - (today + 6).rem_euclid(7);
        }
        if weekday < 0 {
            return -(7 - (weekday.abs() - today));
        }
        let days = weekday - today;
        let is_before = if self.days < 0 { days < 0 } else { days <= -self.weekday_behavior };
        if is_before { days + 7 } else { days }
    }
}

fn plus_days(date: Date, days: i64) -> Option<Date> {
    date.checked_add(jiff::Span::new().try_days(days).ok()?).ok()
}
