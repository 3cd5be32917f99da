//! Measures the size and the nesting depth of values, and charges queries for kept rows.

use std::sync::Arc;

use super::context::Context;
use super::error::{Error, Result};
use crate::model::value::Value;

/// The maximum number of levels in a value that a query builds. Equals the default of MongoDB's `maxBSONDepth`.
pub const MAX_DEPTH: usize = 200;

/// The number of bytes of each field name that are not charged to the query. If a name is longer, only the remaining
/// bytes are charged.
const MAX_SHARED_NAME: usize = 64;

/// The size of a value in bytes, without the data that the value points to.
const VALUE_BYTES: usize = 24;

/// Charges the query for a row that is kept until the query ends.
pub fn hold(row: &Value, query: &Context) -> Result<()> {
    query.charge(expanded_bytes(row, query)?)
}

/// Returns the approximate expanded size of a value in bytes (see [`measure`]). Rejects the same values as [`measure`].
pub fn expanded_bytes(value: &Value, query: &Context) -> Result<usize> {
    let mut bytes = Bytes { counted: 0, query };
    bytes.add(value, MAX_DEPTH)?;
    Ok(bytes.counted)
}

/// Charges the query for a row that a source has built and that is kept until the query ends. The values of the row's
/// fields belong to the source and are not charged.
pub fn hold_shared(row: &Value, query: &Context) -> Result<()> {
    query.charge(own_bytes(row))
}

/// Returns the number of bytes that a value takes without the values that it refers to.
pub fn own_bytes(value: &Value) -> usize {
    let data = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => size_of_val(items.as_slice()),
        Value::Object(object) => object.len() * size_of::<(Arc<str>, Value)>(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Decimal(_) | Value::Date(_) => 0,
    };
    VALUE_BYTES + data
}

/// Returns the number of bytes that the name of a field takes in an object: the pointer to the name, and the bytes
/// after the first `MAX_SHARED_NAME` bytes of the name. The first bytes do not count, because rows with the same fields
/// share the names. The later bytes count, because a long name may be computed for one row.
pub fn name_bytes(name: &Arc<str>) -> usize {
    size_of::<Arc<str>>() + name.len().saturating_sub(MAX_SHARED_NAME)
}

/// Returns the approximate number of bytes that a query needs to keep a value. Bytes that belong to the source of the
/// rows do not count. `built` is the maximum number of bytes of the value that were built for the query.
pub fn built_bytes(value: &Value, built: usize, query: &Context) -> Result<usize> {
    if built == 0 { Ok(0) } else { Ok(expanded_bytes(value, query)?.min(built)) }
}

/// The number of bytes that the query is charged for values that a function keeps.
#[derive(Debug, Default)]
pub struct KeptBytes(pub usize);

impl KeptBytes {
    pub fn charge(&mut self, bytes: usize, query: &Context) -> Result<()> {
        self.0 += bytes;
        query.charge(bytes)
    }

    pub fn give_back(&mut self, bytes: usize, query: &Context) {
        self.0 = self.0.saturating_sub(bytes);
        query.give_back(bytes);
    }
}

/// Rejects a value that is nested too deeply, or whose expanded size (see [`measure`]) exceeds the query's remaining
/// memory.
pub fn check_depth(value: &Value, query: &Context) -> Result<()> {
    let has_levels = matches!(value, Value::Array(_) | Value::Object(_));
    if has_levels { Bytes { counted: 0, query }.add(value, MAX_DEPTH) } else { Ok(()) }
}

/// Counts the work of hashing or comparing a value. For an array or object, returns the approximate number of visited
/// values. For a string, returns the number of whole blocks of 256 bytes. For any other value, returns 0, because the
/// work takes negligible time.
///
/// Rejects an array or object that is nested too deeply, or whose expanded size would exceed the query's remaining
/// memory. The expanded size counts a shared part once for each occurrence, so it may far exceed the memory that the
/// value occupies.
pub fn measure(value: &Value, query: &Context) -> Result<usize> {
    match value {
        Value::Array(_) | Value::Object(_) => Ok(expanded_bytes(value, query)? / VALUE_BYTES),
        Value::String(text) => {
            let ticks = text.len() / 256;
            query.tick_many(ticks)?;
            Ok(ticks)
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Decimal(_) | Value::Date(_) => Ok(0),
    }
}

/// Calls [`measure`] on each value and returns the sum.
pub fn measure_all<'v>(values: impl IntoIterator<Item = &'v Value>, query: &Context) -> Result<usize> {
    values.into_iter().try_fold(0usize, |sum, value| Ok(sum.saturating_add(measure(value, query)?)))
}

/// A counter for the approximate expanded size of a value, in bytes. A shared part counts once for each occurrence,
/// because comparing or writing the value visits each occurrence.
struct Bytes<'q> {
    counted: usize,
    query: &'q Context<'q>,
}

impl Bytes<'_> {
    fn add(&mut self, value: &Value, levels: usize) -> Result<()> {
        self.counted = self.counted.saturating_add(VALUE_BYTES);
        if self.counted > self.query.remaining_bytes() {
            return Err(self.query.out_of_memory());
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Decimal(_) | Value::Date(_) => {
                Ok(())
            }
            Value::String(text) => {
                self.counted = self.counted.saturating_add(text.len());
                Ok(())
            }
            Value::Array(items) => {
                let levels = below(levels)?;
                self.query.tick_many(items.len())?;
                items.iter().try_for_each(|item| self.add(item, levels))
            }
            Value::Object(object) => {
                let levels = below(levels)?;
                self.query.tick_many(object.len())?;
                object.iter().try_for_each(|(name, value)| {
                    self.counted = self.counted.saturating_add(name_bytes(name));
                    self.add(value, levels)
                })
            }
        }
    }
}

fn below(levels: usize) -> Result<usize> {
    levels.checked_sub(1).ok_or_else(|| Error::new(15, format!("exceeded maximum nested object depth: {MAX_DEPTH}")))
}
