//! Dotted field paths, and the access to values at a path.

use std::sync::Arc;

use super::context::Context;
use super::error::{Error, Result};
use crate::model::value::Value;

/// The maximum number of segments of a path.
const MAX_SEGMENTS: usize = 200;

/// A path such as `a.b.c`. A path without segments denotes the whole value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath {
    segments: Arc<[Arc<str>]>,
}

impl FieldPath {
    /// Parses a path such as `a.b.c`.
    pub fn parse(text: &str) -> Result<FieldPath> {
        if text.is_empty() {
            return Err(Error::new(40352, "FieldPath cannot be constructed with empty string"));
        }
        if text.ends_with('.') {
            return Err(Error::new(40353, "FieldPath must not end with a '.'."));
        }
        let segments: Vec<Arc<str>> =
            text.split('.').map(|name| check_name(name).map(|()| name.into())).collect::<Result<_>>()?;
        if segments.len() > MAX_SEGMENTS {
            return Err(Error::new(15, "FieldPath is too long"));
        }
        Ok(FieldPath { segments: segments.into() })
    }

    /// Returns the path of the whole value.
    pub fn root() -> FieldPath {
        FieldPath { segments: Arc::new([]) }
    }

    pub fn segments(&self) -> &[Arc<str>] {
        &self.segments
    }

    /// Returns the value at the path. For an array of objects, returns the array of the values in each object.
    pub fn eval(&self, root: &Value) -> Option<Value> {
        read(&self.segments, root, &mut 0)
    }

    /// Returns the value at the path, as [`eval`](FieldPath::eval) does. Charges the query for the arrays that a path
    /// through arrays builds.
    pub fn eval_charged(&self, root: &Value, query: &Context) -> Result<Option<Value>> {
        let mut items = 0;
        let value = read(&self.segments, root, &mut items);
        if items > 0 {
            query.tick_many(items)?;
            query.charge(items * size_of::<Value>())?;
        }
        Ok(value)
    }
}

/// Rejects names that MongoDB does not allow in a field path.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::new(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') {
        return Err(Error::new(
            16410,
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        ));
    }
    if name.contains('\0') {
        return Err(Error::new(16411, "FieldPath field names may not contain '\0'."));
    }
    Ok(())
}

/// Returns the value at a path. Adds the number of items in the arrays that the path builds to `items_built`.
fn read(segments: &[Arc<str>], value: &Value, items_built: &mut usize) -> Option<Value> {
    let Some((first, rest)) = segments.split_first() else {
        return Some(value.clone());
    };
    match value {
        Value::Object(object) => read(rest, object.get(first)?, items_built),
        Value::Array(items) => {
            let objects = items.iter().filter(|item| matches!(item, Value::Object(_)));
            let values: Vec<_> = objects.filter_map(|item| read(segments, item, items_built)).collect();
            *items_built += values.len();
            Some(values.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    fn eval(path: &str, document: &str) -> Option<String> {
        let document = json::parse(document.as_bytes()).expect("a test's document");
        FieldPath::parse(path).expect("a test's path").eval(&document).map(|value| crate::model::json::text(&value))
    }

    #[test]
    fn paths_map_over_arrays_and_treat_numbers_as_names() {
        assert_eq!(eval("a.b", r#"{"a":[{"b":1},2,{"c":3},{"b":4}]}"#).as_deref(), Some("[1,4]"));
        assert_eq!(eval("a.0", r#"{"a":[5]}"#).as_deref(), Some("[]"));
        assert_eq!(eval("a.0", r#"{"a":{"0":5}}"#).as_deref(), Some("5"));
        assert_eq!(eval("a.b", r#"{"a":1}"#), None);
    }

    #[test]
    fn malformed_paths_are_rejected() {
        for path in ["", "a.", ".a", "a..b", "$a", "a.$b", "a\0"] {
            assert!(FieldPath::parse(path).is_err(), "{path:?}");
        }
    }
}
