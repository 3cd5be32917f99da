//! Accumulators that keep a limited number of values: the first or last, the least or greatest, or the top or bottom
//! values.

use std::collections::VecDeque;

use super::collect;
use super::kind::{AccumulatorKind, Extremum, OrderEnd};
use crate::model::value::Value;
use crate::pipeline::expression::expr::{Env, Expr};
use crate::pipeline::expression::input_value::InputValue;
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result};
use crate::pipeline::value::memory::{KeptBytes, built_bytes, measure, measure_all};
use crate::pipeline::value::number::parse_count;
use crate::pipeline::value::sort_key::SortKey;

/// The values kept so far, at most `limit`.
#[derive(Debug)]
pub(super) struct TopValues {
    limit: usize,
    items: VecDeque<TopValue>,
}

#[derive(Debug)]
struct TopValue {
    key: SortKey,
    value: Value,
    /// The number of bytes that the query is charged for the key and the value.
    bytes: usize,
}

impl TopValues {
    /// Creates an empty collection. Its limit is the value of `count`, or 1 if there is no `count`.
    pub fn new(count: Option<&Expr>, env: &Env) -> Result<TopValues> {
        let limit = match count {
            Some(count) => group_count(&count.eval(env)?.unwrap_or_default())?,
            None => 1,
        };
        Ok(TopValues { limit, items: VecDeque::new() })
    }
}

/// Parses a count like [`parse_count`], but returns every error with the code that `$group` uses.
pub(super) fn group_count(value: &Value) -> Result<usize> {
    parse_count(value).map_err(|error| Error { code: PipelineErrorCode::Number(7_548_606), ..error })
}

/// Adds the value of the row of `env` to `bounded`, if the value belongs to the result for the rows so far. If
/// `bounded` then exceeds its limit, removes the value that no longer belongs to the result. `built` is the maximum
/// number of bytes of the row that were built for the query. All other bytes of the row belong to the source.
pub(super) fn add(
    kind: &AccumulatorKind,
    input: &Expr,
    bounded: &mut TopValues,
    built: usize,
    memory: &mut KeptBytes,
    env: &Env,
) -> Result<()> {
    let limit = bounded.limit;
    let read = || InputValue::of_row(input, built, env);
    match kind {
        AccumulatorKind::Edge(OrderEnd::Front, _) if bounded.items.len() == limit => Ok(()),
        AccumulatorKind::Edge(..) => {
            let input = read()?;
            if bounded.items.len() == limit {
                release(bounded.items.pop_front(), memory, env);
            }
            keep(bounded, bounded.items.len(), (Vec::new(), 0), input, memory, env)
        }
        AccumulatorKind::ExtremeN(direction, _) => {
            let input = read()?;
            let Some(value) = input.value.as_ref().filter(|value| !value.is_null()) else { return Ok(()) };
            measure(value, env.query)?;
            let at = bounded.items.partition_point(|kept| match direction {
                Extremum::Least => kept.value <= *value,
                Extremum::Greatest => kept.value >= *value,
            });
            if at < limit {
                keep(bounded, at, (Vec::new(), 0), input, memory, env)?;
                if bounded.items.len() > limit {
                    release(bounded.items.pop_back(), memory, env);
                }
            }
            Ok(())
        }
        AccumulatorKind::Ranked(end, sort, _) => {
            let key = sort.key(env.root)?;
            measure_all(key.iter().flatten(), env.query)?;
            let at = bounded.items.partition_point(|kept| sort.compare(&kept.key, &key).is_le());
            match end {
                OrderEnd::Front if at < limit => {
                    keep(bounded, at, (key, built), read()?, memory, env)?;
                    if bounded.items.len() > limit {
                        release(bounded.items.pop_back(), memory, env);
                    }
                }
                OrderEnd::Back if at > 0 || bounded.items.len() < limit => {
                    keep(bounded, at, (key, built), read()?, memory, env)?;
                    if bounded.items.len() > limit {
                        release(bounded.items.pop_front(), memory, env);
                    }
                }
                _ => {}
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Inserts a value with its sort key at a position. `key_built` is an upper limit for the number of bytes of each part
/// of the key that were newly built for the query.
fn keep(
    bounded: &mut TopValues,
    at: usize,
    (key, key_built): (SortKey, usize),
    input: InputValue,
    memory: &mut KeptBytes,
    env: &Env,
) -> Result<()> {
    let value = input.value.unwrap_or_default();
    let mut bytes = collect::weight(&value, input.built, env.query)? + size_of_val(key.as_slice());
    for part in key.iter().flatten() {
        bytes += built_bytes(part, key_built, env.query)?;
    }
    memory.charge(bytes, env.query)?;
    bounded.items.insert(at, TopValue { key, value, bytes });
    Ok(())
}

/// Adds the memory of an evicted value back to the query's budget.
fn release(evicted: Option<TopValue>, memory: &mut KeptBytes, env: &Env) {
    memory.give_back(evicted.map_or(0, |evicted| evicted.bytes), env.query);
}

pub(super) fn finish(kind: &AccumulatorKind, bounded: TopValues) -> Value {
    let mut values = bounded.items.into_iter().map(|kept| kept.value);
    match kind {
        AccumulatorKind::Ranked(_, _, None) => values.next().unwrap_or_default(),
        _ => values.collect::<Vec<_>>().into(),
    }
}
