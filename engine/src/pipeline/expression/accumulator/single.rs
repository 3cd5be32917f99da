//! Accumulators that keep one value: extremes, the first and the last value.

use super::kind::{AccumulatorKind, Extremum};
use crate::model::value::Value;
use crate::pipeline::expression::expr::Env;
use crate::pipeline::expression::input_value::InputValue;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::{KeptBytes, measure};

/// The value of a group, and the number of bytes that the query is charged for the value.
#[derive(Debug, Default)]
pub(super) struct SingleValue {
    pub value: Option<Value>,
    bytes: usize,
}

pub(super) fn add(
    kind: &AccumulatorKind,
    kept: &mut SingleValue,
    input: InputValue,
    memory: &mut KeptBytes,
    env: &Env,
) -> Result<()> {
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
    let bytes = input.built_bytes(env.query)?;
    memory.charge(bytes, env.query)?;
    let replaced = std::mem::replace(kept, SingleValue { value: Some(input.value.unwrap_or_default()), bytes });
    memory.give_back(replaced.bytes, env.query);
    Ok(())
}
