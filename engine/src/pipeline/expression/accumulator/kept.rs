//! The values that accumulators keep, and the memory that the query is charged for them.

use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Expr};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::expanded_bytes;

/// The value of an accumulator's input for one row.
pub struct InputValue {
    pub value: Option<Value>,
    /// The maximum number of bytes of the value that were built for the query. The rest belongs to the source.
    pub built: usize,
}

impl InputValue {
    /// Creates an input whose value was built for the query, or belongs to the source.
    pub fn new(value: Option<Value>, is_built: bool) -> InputValue {
        InputValue { value, built: if is_built { usize::MAX } else { 0 } }
    }

    /// Evaluates an expression over the row of `env`. `is_built` is whether the row was built for the query.
    pub fn of_row(input: &Expr, is_built: bool, env: &Env) -> Result<InputValue> {
        let (value, evaluated) = env.query.charged(|| input.eval(env))?;
        env.query.give_back(evaluated);
        Ok(InputValue { value, built: if is_built { usize::MAX } else { evaluated } })
    }
}

/// The number of bytes that the query is charged for the values that a state keeps.
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

/// Returns the number of bytes that a kept value takes in addition to the source. At most `built` bytes of the value
/// were built for the query. Arrays always count, because paths through arrays build new arrays.
pub fn built_bytes(value: &Value, built: usize, query: &Context) -> Result<usize> {
    let arrays = array_bytes(value, query)?;
    if built == 0 { Ok(arrays) } else { Ok(expanded_bytes(value, query)?.min(built).max(arrays)) }
}

/// Returns the size of an array and of the arrays in it, without the other values that they point to.
fn array_bytes(value: &Value, query: &Context) -> Result<usize> {
    let Some(items) = value.as_array() else { return Ok(0) };
    query.tick_many(items.len())?;
    let nested = items.iter().try_fold(0, |sum, item| Ok(sum + array_bytes(item, query)?))?;
    Ok(size_of_val(items) + nested)
}
