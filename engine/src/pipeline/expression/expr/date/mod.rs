//! Dates: their operators, time zones, and the notations of dates in strings.

pub(super) mod arithmetic;
mod calendar;
mod fields;
pub(super) mod format;
mod grammar;
mod layout;
pub(super) mod parts;
mod relative;
mod scan;
pub(super) mod text;
mod zone;
