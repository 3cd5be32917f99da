//! The units of date arithmetic, and the addition of units in UTC.

use jiff::Span;
use strum::EnumString;

use crate::model::date::{civil, ms_of};
use crate::pipeline::value::error::{Error, Result};

pub(super) fn overflow() -> Error {
    Error::new(5_166_406, "the date is outside the supported years -9999 to 9999")
}

/// A unit of date arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    pub fn parse(name: &str) -> Option<Unit> {
        name.parse().ok()
    }

    /// Returns the number of months in the unit, if the unit consists of months.
    pub fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }

    /// Returns the number of days in the unit, if the unit consists of days.
    pub fn days(self) -> Option<i64> {
        match self {
            Unit::Week => Some(7),
            Unit::Day => Some(1),
            _ => None,
        }
    }

    /// Returns the number of milliseconds in the unit, which must be shorter than a day.
    pub fn milliseconds(self) -> i64 {
        match self {
            Unit::Hour => 3_600_000,
            Unit::Minute => 60_000,
            Unit::Second => 1000,
            _ => 1,
        }
    }

    /// Returns the number of milliseconds in the unit, or `None` for units of varying length, such as months.
    pub fn fixed_milliseconds(self) -> Option<i64> {
        match (self.months(), self.days()) {
            (Some(_), _) => None,
            (None, Some(days)) => Some(days * 86_400_000),
            (None, None) => Some(self.milliseconds()),
        }
    }
}

/// Adds an amount of a unit to an instant, in UTC. If the target month does not have the day, the result is on the last
/// day of the month.
pub fn add_units(ms: i64, unit: Unit, amount: i64) -> Result<i64> {
    let Some(months) = unit.months() else {
        let by = unit.fixed_milliseconds().and_then(|length| amount.checked_mul(length));
        let moved = by.and_then(|by| ms.checked_add(by)).ok_or_else(overflow)?;
        return civil(moved).map(|_| moved).ok_or_else(overflow);
    };
    let span =
        amount.checked_mul(months).and_then(|months| Span::new().try_months(months).ok()).ok_or_else(overflow)?;
    let moved = civil(ms).ok_or_else(overflow)?.checked_add(span).map_err(|_| overflow())?;
    Ok(ms_of(moved))
}
