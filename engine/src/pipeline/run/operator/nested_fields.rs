//! Reads, writes and removes nested fields for `$unwind`, `$densify` and the lookup stages. Paths lead through objects,
//! never into arrays.

use std::sync::Arc;

use crate::model::value::{Object, Value};

/// Returns the value at the path, or `None` if the object has no value there.
pub fn get<'v>(object: &'v Object, path: &[Arc<str>]) -> Option<&'v Value> {
    let (first, rest) = path.split_first()?;
    let value = object.get(first)?;
    if rest.is_empty() { Some(value) } else { get(value.as_object()?, rest) }
}

/// Sets the value at the path. A value on the path that is not an object is replaced by an object.
pub fn set(object: &mut Object, path: &[Arc<str>], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        object.insert(first.clone(), value);
        return;
    }
    match object.get_mut(first) {
        Some(Value::Object(inner)) => set(Arc::make_mut(inner), rest, value),
        _ => {
            let mut inner = Object::new();
            set(&mut inner, rest, value);
            object.insert(first.clone(), inner);
        }
    }
}

/// Sets the value at a path in a row. Returns the row. A row that is not an object stays unchanged.
pub fn with(mut row: Value, path: &[Arc<str>], value: Value) -> Value {
    if let Value::Object(object) = &mut row {
        set(Arc::make_mut(object), path, value);
    }
    row
}

/// Removes the field at the path.
pub fn remove(object: &mut Object, path: &[Arc<str>]) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        object.remove(first);
    } else if let Some(Value::Object(inner)) = object.get_mut(first) {
        remove(Arc::make_mut(inner), rest);
    }
}
