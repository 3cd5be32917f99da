//! Accumulators that collect values: lists, sets and merged objects.

use std::collections::HashSet;

use rustc_hash::FxBuildHasher;

use super::input::InputValue;
use super::kind::AccumulatorKind;
use crate::model::excerpt::excerpt;
use crate::model::object::FieldIndex;
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::Env;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::{Error, Result};
use crate::pipeline::value::memory::{self, expanded_bytes, measure};

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

/// Returns the number of bytes that the query is charged for a value in a list or set. Unless the value was built for
/// the query, the result is the minimum number of bytes that the value occupies.
pub(super) fn weight(value: &Value, is_built: bool, query: &Context) -> Result<usize> {
    if is_built {
        return expanded_bytes(value, query);
    }
    let shared = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => size_of_val(items.as_slice()),
        Value::Object(object) => object.len() * 48,
        _ => 0,
    };
    Ok(size_of::<Value>() + shared)
}

pub(super) fn add(kind: &AccumulatorKind, items: &mut Vec<Value>, input: InputValue, env: &Env) -> Result<()> {
    let Some(value) = input.value else { return Ok(()) };
    let bytes = weight(&value, input.is_built, env.query)?;
    if matches!(kind, AccumulatorKind::Push) {
        env.query.charge(bytes)?;
        items.push(value);
        return Ok(());
    }
    let array = array_of("$concatArrays", &value)?;
    env.query.charge(bytes)?;
    items.extend_from_slice(array);
    Ok(())
}

pub(super) fn add_to_set(kind: &AccumulatorKind, set: &mut DistinctValues, input: InputValue, env: &Env) -> Result<()> {
    let Some(value) = input.value else { return Ok(()) };
    if matches!(kind, AccumulatorKind::AddToSet) {
        measure(&value, env.query)?;
        let bytes = weight(&value, input.is_built, env.query)?;
        if set.insert(value) {
            env.query.charge(2 * bytes)?;
        }
        return Ok(());
    }
    for item in array_of("$setUnion", &value)? {
        env.query.tick()?;
        measure(item, env.query)?;
        if set.insert(item.clone()) {
            env.query.charge(2 * weight(item, input.is_built, env.query)?)?;
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

pub(super) fn merge(object: &mut Object, index: &mut FieldIndex, input: InputValue, env: &Env) -> Result<()> {
    match input.value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(other)) => {
            for (_, value) in other.iter().filter(|_| input.is_built) {
                memory::hold(value, env.query)?;
            }
            env.query.charge(other.len() * 48)?;
            for (name, value) in other.iter() {
                index.insert(object, name.clone(), value.clone());
            }
            Ok(())
        }
        Some(other) => {
            let found = other.type_name();
            let message =
                format!("$mergeObjects requires object inputs, but input {} is of type {found}", excerpt(&other));
            Err(Error::new(5_911_200, message))
        }
    }
}
