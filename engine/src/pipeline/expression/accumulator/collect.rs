//! Accumulators that collect values: lists, sets and merged objects.

use std::collections::HashSet;

use rustc_hash::FxBuildHasher;

use super::kind::AccumulatorKind;
use crate::model::excerpt::excerpt;
use crate::model::object::FieldIndex;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Env;
use crate::pipeline::expression::input_value::InputValue;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::memory::{KeptBytes, built_bytes, measure, name_bytes, own_bytes};

/// Distinct values, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct DistinctValues {
    seen: HashSet<Value, FxBuildHasher>,
    items: Vec<Value>,
}

impl DistinctValues {
    /// Adds a value. Returns whether the value is new.
    pub fn insert(&mut self, value: Value) -> bool {
        let is_new = self.seen.insert(value.clone());
        if is_new {
            self.items.push(value);
        }
        is_new
    }

    pub fn into_value(self) -> Value {
        self.items.into()
    }
}

/// Returns the number of bytes that the query is charged for a value in a list. For a value in a set, the query is
/// charged twice this number. The number is the greater of two numbers: the bytes of the value that were built for the
/// query, and [`own_bytes`]. `built` is an upper limit for the bytes that were built for the query. All other bytes
/// belong to the source.
pub(super) fn weight(value: &Value, built: usize, query: &Context) -> Result<usize> {
    Ok(built_bytes(value, built, query)?.max(own_bytes(value)))
}

pub(super) fn add(
    kind: &AccumulatorKind,
    items: &mut Vec<Value>,
    input: InputValue,
    memory: &mut KeptBytes,
    env: &Env,
) -> Result<()> {
    let Some(value) = input.value else { return Ok(()) };
    memory.charge(weight(&value, input.built, env.query)?, env.query)?;
    if matches!(kind, AccumulatorKind::Push) {
        items.push(value);
    } else {
        items.extend_from_slice(array_of("$concatArrays", &value)?);
    }
    Ok(())
}

pub(super) fn add_to_set(
    kind: &AccumulatorKind,
    set: &mut DistinctValues,
    input: InputValue,
    memory: &mut KeptBytes,
    env: &Env,
) -> Result<()> {
    let Some(value) = input.value else { return Ok(()) };
    let items = match kind {
        AccumulatorKind::AddToSet => std::slice::from_ref(&value),
        _ => array_of("$setUnion", &value)?,
    };
    for item in items {
        env.query.tick()?;
        measure(item, env.query)?;
        if set.insert(item.clone()) {
            memory.charge(2 * weight(item, input.built, env.query)?, env.query)?;
        }
    }
    Ok(())
}

fn array_of<'v>(name: &str, value: &'v Value) -> Result<&'v [Value]> {
    value.as_array().ok_or_else(|| {
        let found = value.type_name();
        Error::new(14, format!("{name} requires array inputs, but input {} is of type {found}", excerpt(value)))
    })
}

/// Merged objects, and the number of bytes that the query is charged for each field.
#[derive(Debug, Default)]
pub(super) struct MergedObject {
    pub object: Object,
    index: FieldIndex,
    bytes: Vec<usize>,
}

pub(super) fn merge(merged: &mut MergedObject, input: InputValue, memory: &mut KeptBytes, env: &Env) -> Result<()> {
    let query = env.query;
    match input.value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(other)) => {
            query.tick_many(other.len())?;
            for (name, value) in other.iter() {
                let bytes = size_of::<Value>() + name_bytes(name) + built_bytes(value, input.built, query)?;
                memory.charge(bytes, query)?;
                let known = merged.index.find(&merged.object, name);
                match known.and_then(|at| merged.object.at_mut(at).zip(merged.bytes.get_mut(at))) {
                    Some((field, charged)) => {
                        *field = value.clone();
                        memory.give_back(std::mem::replace(charged, bytes), query);
                    }
                    None => {
                        merged.index.push(&mut merged.object, name.clone(), value.clone());
                        merged.bytes.push(bytes);
                    }
                }
            }
            Ok(())
        }
        Some(other) => {
            let found = other.type_name();
            err!(5_911_200, "$mergeObjects requires object inputs, but input {} is of type {found}", excerpt(&other))
        }
    }
}
