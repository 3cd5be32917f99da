//! What a query's rows cost: how many bytes are held, and how deep a built value may nest.

use super::context::Context;
use super::error::{Error, Result};
use crate::model::value::Value;

/// Levels that a value built by a query may nest (MongoDB's own limit for a document).
pub const MAX_DEPTH: usize = 200;

/// Bytes of a value without what it points to.
const SLOT: usize = 24;

/// Counts a row that is kept until the query ends.
pub fn hold(row: &Value, query: &Context) -> Result<()> {
    let mut bytes = Bytes { counted: 0, query };
    bytes.add(row, MAX_DEPTH)?;
    query.charge(bytes.counted)
}

/// Counts a row that is kept and belongs to the source: only the reference is new.
pub fn hold_shared(query: &Context) -> Result<()> {
    query.charge(SLOT)
}

/// Refuses a value that nests too deeply to be worked on, or that would not fit if it were written out.
pub fn check_depth(value: &Value, query: &Context) -> Result<()> {
    match value {
        Value::Array(_) | Value::Object(_) => Bytes { counted: 0, query }.add(value, MAX_DEPTH),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Date(_) | Value::String(_) => Ok(()),
    }
}

/// Ticks for all of a value that is about to be hashed or compared, and returns how many values it is made of: none where that
/// takes no time worth counting. One that would not fit if it were written out is refused. What shares its parts may be far
/// longer than the bytes that it takes.
pub fn look(value: &Value, query: &Context) -> Result<usize> {
    match value {
        Value::Array(_) | Value::Object(_) => {
            let mut bytes = Bytes { counted: 0, query };
            bytes.add(value, MAX_DEPTH)?;
            Ok(bytes.counted / SLOT)
        }
        Value::String(text) => {
            let ticks = text.len() / 256;
            query.tick_many(ticks)?;
            Ok(ticks)
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Date(_) => Ok(0),
    }
}

/// As [`look`], at all of them.
pub fn look_at_all<'v>(values: impl IntoIterator<Item = &'v Value>, query: &Context) -> Result<usize> {
    values.into_iter().try_fold(0usize, |sum, value| Ok(sum.saturating_add(look(value, query)?)))
}

/// About how many bytes a value takes. Parts that are shared count each time: so often they would be written out, and
/// so long it would take to look at them.
struct Bytes<'q> {
    counted: usize,
    query: &'q Context<'q>,
}

impl Bytes<'_> {
    fn add(&mut self, value: &Value, levels: usize) -> Result<()> {
        self.counted = self.counted.saturating_add(SLOT);
        if self.counted > self.query.room() {
            return Err(Error::new(146, "the pipeline exceeded its memory limit"));
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Date(_) => Ok(()),
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
                // A field's name is shared between rows of one shape; its pointer is not.
                self.counted = self.counted.saturating_add(16 * object.len());
                object.iter().try_for_each(|(_, value)| self.add(value, levels))
            }
        }
    }
}

fn below(levels: usize) -> Result<usize> {
    levels.checked_sub(1).ok_or_else(|| Error::new(15, format!("exceeded maximum nested object depth: {MAX_DEPTH}")))
}
