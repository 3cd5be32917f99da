//! Paths of the query language: they go through arrays, and a number is an index or a key.

use std::sync::Arc;

use super::error::Result;
use crate::model::value::Value;

/// A dotted path as queries, sort keys and joins read it.
#[derive(Debug, Clone)]
pub struct Path {
    text: Arc<str>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    name: Arc<str>,
    index: Option<usize>,
}

/// What is seen where the path ends at an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// Each element, then the array itself.
    Expanded,
    /// The array alone.
    Whole,
}

/// Is told each value at the path's end, `None` where it is missing; `true` ends the walk.
pub type Visit<'v> = dyn FnMut(Option<&Value>) -> Result<bool> + 'v;

impl Path {
    /// Reads a dotted path. Query paths have no rules: any text names a field.
    pub fn new(text: &str) -> Path {
        let parts = text
            .split('.')
            .map(|name| Part { name: name.into(), index: name.parse().ok().filter(|_| is_index(name)) })
            .collect();
        Path { text: text.into(), parts }
    }

    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Whether some value at the path's end satisfies `visit`.
    pub fn any(&self, row: &Value, leaf: Leaf, visit: &mut Visit) -> Result<bool> {
        walk(row, &self.parts, leaf, visit)
    }
}

fn is_index(name: &str) -> bool {
    name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Goes on inside an object; an array here is an object whose names are its indexes.
fn walk(value: &Value, parts: &[Part], leaf: Leaf, visit: &mut Visit) -> Result<bool> {
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

/// Goes on inside an array that is not the path's end: into every object in it, and to the element that a number names.
fn walk_items(items: &[Value], parts: &[Part], leaf: Leaf, visit: &mut Visit) -> Result<bool> {
    let Some((part, rest)) = parts.split_first() else { return Ok(false) };
    for (place, item) in items.iter().enumerate() {
        if matches!(item, Value::Object(_)) && walk(item, parts, leaf, visit)? {
            return Ok(true);
        }
        if part.index != Some(place) {
            continue;
        }
        let found = match item {
            item if rest.is_empty() => end(item, leaf, visit)?,
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
        Path::new(path).any(&row, Leaf::Expanded, visit).expect("a visit that never fails");
        seen
    }

    #[test]
    fn arrays_are_gone_through() {
        assert_eq!(seen("a", r#"{"a": [1, [2]]}"#), ["1", "[2]", "[1,[2]]"]);
        assert_eq!(seen("a.b", r#"{"a": [{"b": 1}, {"c": 2}, 3]}"#), ["1", "missing"]);
        assert_eq!(seen("a.b", r#"{"a": []}"#), [""; 0]);
        assert_eq!(seen("a.b", r#"{"a": 1}"#), ["missing"]);
    }

    #[test]
    fn a_number_is_an_index_or_a_key() {
        assert_eq!(seen("a.1", r#"{"a": [5, 6]}"#), ["6"]);
        assert_eq!(seen("a.1", r#"{"a": {"1": 7}}"#), ["7"]);
        assert_eq!(seen("a.0.b", r#"{"a": [{"b": 1}, {"b": 2}]}"#), ["missing", "1", "missing"]);
        assert_eq!(seen("a.01", r#"{"a": [5, 6]}"#), [""; 0]);
    }
}
