//! Accumulators that keep one value: extremes, the first and the last value.

use super::input::InputValue;
use super::kind::{AccumulatorKind, Extremum};
use crate::model::value::Value;
use crate::pipeline::expression::expr::Env;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{expanded_bytes, measure};

/// The value of a group, and the number of bytes that the query is charged for it.
#[derive(Debug, Default)]
pub(super) struct KeptValue {
    pub value: Option<Value>,
    bytes: usize,
}

pub(super) fn add(kind: &AccumulatorKind, kept: &mut KeptValue, input: InputValue, env: &Env) -> Result<()> {
    if let AccumulatorKind::Extreme(direction) = kind {
        let Some(value) = input.value.as_ref().filter(|value| !value.is_null()) else { return Ok(()) };
        measure(value, env.query)?;
        let is_better = kept.value.as_ref().is_none_or(|best| match direction {
            Extremum::Least => value < best,
            Extremum::Greatest => value > best,
        });
        if !is_better {
            return Ok(());
        }
    }
    let value = input.value.unwrap_or_default();
    let bytes = if input.is_built { expanded_bytes(&value, env.query)? } else { 0 };
    env.query.charge(bytes)?;
    let replaced = std::mem::replace(kept, KeptValue { value: Some(value), bytes });
    env.query.give_back(replaced.bytes);
    Ok(())
}
