//! Dotted field paths, and the access to values at a path.

use std::sync::Arc;

use super::context::Context;
use super::error::{Error, Result, err};
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

    /// Returns the value at the path. If the path leads through an array, returns an array of the values in the objects
    /// of this array, and charges the query for the returned array.
    pub fn eval(&self, root: &Value, query: &Context) -> Result<Option<Value>> {
        read(&self.segments, root, query)
    }
}

/// Rejects names that MongoDB does not allow in a field path.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::new(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') {
        return err!(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    if name.contains('\0') {
        return Err(Error::new(16411, "FieldPath field names may not contain '\0'."));
    }
    Ok(())
}

fn read(segments: &[Arc<str>], value: &Value, query: &Context) -> Result<Option<Value>> {
    let Some((first, rest)) = segments.split_first() else {
        return Ok(Some(value.clone()));
    };
    match value {
        Value::Object(object) => match object.get(first) {
            Some(value) => read(rest, value, query),
            None => Ok(None),
        },
        Value::Array(items) => {
            query.tick_many(items.len())?;
            query.charge(size_of_val(items.as_slice()))?;
            let objects = items.iter().filter(|item| matches!(item, Value::Object(_)));
            let values = objects.filter_map(|item| read(segments, item, query).transpose());
            let values = values.collect::<Result<Vec<_>>>()?;
            query.give_back((items.len() - values.len()) * size_of::<Value>());
            Ok(Some(values.into()))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    /// Evaluates a path. Asserts that the evaluation builds arrays with `built` items in total.
    fn eval(path: &str, document: &str, built: i64) -> Option<String> {
        let document = json::parse(document.as_bytes()).expect("a test's document");
        let query = Context::new(0, 0, &|| 0, 1, 1 << 20);
        let read = FieldPath::parse(path).expect("a test's path").eval(&document, &query).expect("a value");
        assert_eq!(query.bytes_left.get(), (1 << 20) - 24 * built, "{path}");
        read.map(|value| crate::model::json::text(&value))
    }

    #[test]
    fn paths_map_over_arrays_and_treat_numbers_as_names() {
        assert_eq!(eval("a.b", r#"{"a":[{"b":1},2,{"c":3},{"b":4}]}"#, 2).as_deref(), Some("[1,4]"));
        assert_eq!(eval("a.b.c", r#"{"a":[{"b":[{"c":1},{"c":2}]},{"b":{"c":3}}]}"#, 4).as_deref(), Some("[[1,2],3]"));
        assert_eq!(eval("a.0", r#"{"a":[5]}"#, 0).as_deref(), Some("[]"));
        assert_eq!(eval("a.0", r#"{"a":{"0":5}}"#, 0).as_deref(), Some("5"));
        assert_eq!(eval("a.b", r#"{"a":1}"#, 0), None);
    }

    #[test]
    fn malformed_paths_are_rejected() {
        for path in ["", "a.", ".a", "a..b", "$a", "a.$b", "a\0"] {
            assert!(FieldPath::parse(path).is_err(), "{path:?}");
        }
    }
}
