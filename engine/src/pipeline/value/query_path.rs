//! Paths of the query language, which lead through arrays and treat a number as an index or a key.

use std::sync::Arc;

use super::error::Result;
use crate::model::value::Value;

/// A dotted path of a query, a sort key or a join.
#[derive(Debug, Clone)]
pub struct QueryPath {
    text: Arc<str>,
    parts: Vec<PathPart>,
}

#[derive(Debug, Clone)]
struct PathPart {
    name: Arc<str>,
    index: Option<usize>,
}

/// The values to visit where a path ends at an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// Visits each element, then the array.
    Expanded,
    /// Visits only the array.
    Whole,
}

/// A function that receives each value at the end of a path, or `None` where the value is missing. Returns `true` to
/// stop the search.
pub type Visit<'v> = dyn FnMut(Option<&Value>) -> Result<bool> + 'v;

impl QueryPath {
    /// Parses a dotted path. Query paths have no naming rules: any text is a field name.
    pub fn new(text: &str) -> QueryPath {
        let parts = text.split('.').map(|name| PathPart { name: name.into(), index: index(name) }).collect();
        QueryPath { text: text.into(), parts }
    }

    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Calls `visit` with the values at the end of the path until a call returns `true`. Returns whether a call
    /// returned `true`.
    pub fn any(&self, row: &Value, leaf: Leaf, visit: &mut Visit) -> Result<bool> {
        walk(row, &self.parts, leaf, visit)
    }
}

/// Returns the array index that a name denotes. Returns `None` unless the name is a number without leading zeros.
pub(super) fn index(name: &str) -> Option<usize> {
    let is_index = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
    name.parse().ok().filter(|_| is_index)
}

/// Follows the path `parts` from a value. If the value is an array, follows the path only into the element whose index
/// is the first part. Returns whether a call of `visit` returned `true`.
fn walk(value: &Value, parts: &[PathPart], leaf: Leaf, visit: &mut Visit) -> Result<bool> {
    let Some((part, rest)) = parts.split_first() else { return visit(Some(value)) };
    let field = match value {
        Value::Object(object) => object.get(&part.name),
        Value::Array(items) => part.index.and_then(|index| items.get(index)),
        _ => None,
    };
    match field {
        None => visit(None),
        Some(field) if rest.is_empty() => end(field, leaf, visit),
        Some(Value::Array(items)) => walk_items(items, rest, leaf, visit),
        Some(field) => walk(field, rest, leaf, visit),
    }
}

/// Follows the path `parts` from each object in an array. If the first part is the index of an element, also follows the
/// remaining parts from that element. Returns whether a call of `visit` returned `true`.
fn walk_items(items: &[Value], parts: &[PathPart], leaf: Leaf, visit: &mut Visit) -> Result<bool> {
    let Some((part, rest)) = parts.split_first() else { return Ok(false) };
    for (place, item) in items.iter().enumerate() {
        if matches!(item, Value::Object(_)) && walk(item, parts, leaf, visit)? {
            return Ok(true);
        }
        if part.index != Some(place) {
            continue;
        }
        let found = match item {
            // An inner array at an index is one value, whose items are not visited.
            item if rest.is_empty() => visit(Some(item))?,
            Value::Object(_) => walk(item, rest, leaf, visit)?,
            Value::Array(inner) => walk_items(inner, rest, leaf, visit)?,
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn end(value: &Value, leaf: Leaf, visit: &mut Visit) -> Result<bool> {
    if let (Value::Array(items), Leaf::Expanded) = (value, leaf) {
        for item in items.iter() {
            if visit(Some(item))? {
                return Ok(true);
            }
        }
    }
    visit(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    fn seen(path: &str, row: &str) -> Vec<String> {
        let row = json::parse(row.as_bytes()).expect("a test's JSON");
        let mut seen = Vec::new();
        let visit = &mut |value: Option<&Value>| {
            seen.push(value.map_or_else(|| "missing".to_owned(), crate::model::json::text));
            Ok(false)
        };
        QueryPath::new(path).any(&row, Leaf::Expanded, visit).expect("a visit that never fails");
        seen
    }

    #[test]
    fn query_paths_descend_into_arrays() {
        assert_eq!(seen("a", r#"{"a": [1, [2]]}"#), ["1", "[2]", "[1,[2]]"]);
        assert_eq!(seen("a.b", r#"{"a": [{"b": 1}, {"c": 2}, 3]}"#), ["1", "missing"]);
        assert_eq!(seen("a.b", r#"{"a": []}"#), [""; 0]);
        assert_eq!(seen("a.b", r#"{"a": 1}"#), ["missing"]);
    }

    #[test]
    fn numbers_in_query_paths_are_indexes_or_keys() {
        assert_eq!(seen("a.1", r#"{"a": [5, 6]}"#), ["6"]);
        assert_eq!(seen("a.1", r#"{"a": {"1": 7}}"#), ["7"]);
        assert_eq!(seen("a.0", r#"{"a": [[1, 2], 3]}"#), ["[1,2]"]);
        assert_eq!(seen("a.0", r#"{"a": {"0": [1, 2]}}"#), ["1", "2", "[1,2]"]);
        assert_eq!(seen("a.0.b", r#"{"a": [{"b": 1}, {"b": 2}]}"#), ["missing", "1", "missing"]);
        assert_eq!(seen("a.01", r#"{"a": [5, 6]}"#), [""; 0]);
    }
}
