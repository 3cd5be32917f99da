//! Dates: their operators, time zones, and the forms in which texts contain dates.

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
