//! Accumulators that keep one value: extremes, the first and the last value.

use super::kind::{AccumulatorKind, Extremum};
use crate::model::value::Value;
use crate::pipeline::expression::expr::Env;
use crate::pipeline::value::error::Result;
use crate::pipeline::value::memory::measure;

pub(super) fn add(kind: &AccumulatorKind, one: &mut Option<Value>, value: Option<Value>, env: &Env) -> Result<()> {
    match kind {
        AccumulatorKind::Extreme(direction) => {
            let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(()) };
            measure(&value, env.query)?;
            let is_better = one.as_ref().is_none_or(|best| match direction {
                Extremum::Least => value < *best,
                Extremum::Greatest => value > *best,
            });
            if is_better {
                *one = Some(value);
            }
        }
        _ => *one = Some(value.unwrap_or_default()),
    }
    Ok(())
}
