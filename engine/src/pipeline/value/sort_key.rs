//! Sort keys of rows. An array contributes the item that comes first in the sort order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::error::{Error, Result};
use super::query_path::{Leaf, Path};
use crate::model::value::Value;

/// Sort paths, each with its direction.
#[derive(Debug, Clone)]
pub struct Order {
    keys: Arc<[Key]>,
    /// Whether a path contains a name that may be the index of an array item.
    has_index: bool,
}

#[derive(Debug)]
struct Key {
    path: Path,
    names: Box<[Arc<str>]>,
    descending: bool,
}

/// The values of a row at the sort paths. `None` represents an empty array and sorts before every value.
pub type SortKey = Vec<Option<Value>>;

/// A sort value whose comparison respects the direction of the sort.
#[derive(Debug, PartialEq, Eq)]
pub struct Directed {
    pub value: Option<Value>,
    pub descending: bool,
}

impl Ord for Directed {
    fn cmp(&self, other: &Directed) -> Ordering {
        direct(self.value.cmp(&other.value), self.descending)
    }
}

impl PartialOrd for Directed {
    fn partial_cmp(&self, other: &Directed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Reverses the order of two values if the sort is descending.
pub fn direct(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

/// The index of a key, and the remaining names of its path.
type Slot<'k> = (usize, &'k [Arc<str>]);

impl Order {
    /// Creates an order from pairs of a path and a flag, which is `true` for a descending order.
    pub fn new<'p>(keys: impl IntoIterator<Item = (&'p str, bool)>) -> Order {
        let key = |(text, descending): (&str, bool)| Key {
            path: Path::new(text),
            names: text.split('.').map(Arc::from).collect(),
            descending,
        };
        let keys: Arc<[Key]> = keys.into_iter().map(key).collect();
        let is_index = |name: &Arc<str>| name.bytes().all(|byte| byte.is_ascii_digit());
        let has_index = keys.iter().any(|key| key.names.iter().skip(1).any(is_index));
        Order { keys, has_index }
    }

    /// Returns the sort key of a row. Keys whose paths lead through the same array take their values from the same
    /// item.
    ///
    /// # Errors
    /// Fails if paths lead through different arrays.
    pub fn key(&self, row: &Value) -> Result<SortKey> {
        if self.has_index {
            return self.keys.iter().map(|key| key.alone(row)).collect();
        }
        let slots: Vec<Slot> = self.keys.iter().enumerate().map(|(place, key)| (place, &*key.names)).collect();
        self.read(&slots, row)
    }

    pub fn compare(&self, a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
        compare(self.keys.iter(), a, b)
    }

    fn read(&self, slots: &[Slot], value: &Value) -> Result<SortKey> {
        let mut key = Vec::with_capacity(slots.len());
        let mut through: Option<(&[Arc<str>], &[Value])> = None;
        let mut below: Vec<(usize, Slot)> = Vec::new();
        for (place, slot) in slots.iter().enumerate() {
            let (found, rest) = go(value, slot.1);
            key.push(Some(found.cloned().unwrap_or_default()));
            let Some(Value::Array(items)) = found else { continue };
            let gone = &slot.1[..slot.1.len() - rest.len()];
            match through {
                Some((known, _)) if known != gone => {
                    return Err(Error::new(2, "cannot sort with keys that are parallel arrays"));
                }
                _ => through = Some((gone, items)),
            }
            below.push((place, (slot.0, rest)));
        }
        if let Some((_, items)) = through {
            let slots: Vec<Slot> = below.iter().map(|(_, slot)| *slot).collect();
            let first = self.first(&slots, items)?;
            below.iter().zip(first).for_each(|((place, _), value)| key[*place] = value);
        }
        Ok(key)
    }

    /// Returns the sort keys of the item that sorts first in an array, one key for each slot.
    fn first(&self, slots: &[Slot], items: &[Value]) -> Result<SortKey> {
        let mut first: Option<SortKey> = None;
        for item in items {
            let key = self.read_item(slots, item)?;
            let keys = || slots.iter().map(|(place, _)| &self.keys[*place]);
            if first.as_ref().is_none_or(|first| compare(keys(), &key, first).is_lt()) {
                first = Some(key);
            }
        }
        let of_none = |(_, rest): &Slot| if rest.is_empty() { None } else { Some(Value::Null) };
        Ok(first.unwrap_or_else(|| slots.iter().map(of_none).collect()))
    }

    fn read_item(&self, slots: &[Slot], item: &Value) -> Result<SortKey> {
        let further: Vec<Slot> = slots.iter().filter(|(_, rest)| !rest.is_empty()).copied().collect();
        let mut read = match item {
            Value::Object(_) => self.read(&further, item)?,
            _ => vec![Some(Value::Null); further.len()],
        }
        .into_iter();
        let value = |(_, rest): &Slot| if rest.is_empty() { Some(item.clone()) } else { read.next().flatten() };
        Ok(slots.iter().map(value).collect())
    }
}

/// Compares two rows by some of the keys. `a` and `b` hold one value for each of these keys.
fn compare<'k>(keys: impl Iterator<Item = &'k Key>, a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
    let mut orders = a.iter().zip(b).zip(keys).map(|((a, b), key)| key.direct(a.cmp(b)));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl Key {
    fn direct(&self, order: Ordering) -> Ordering {
        direct(order, self.descending)
    }

    /// Returns the first of the values at the path in the order of this key, regardless of the other keys. `None`
    /// represents an empty array.
    fn alone(&self, row: &Value) -> Result<Option<Value>> {
        let mut first: Option<Option<Value>> = None;
        let mut take = |value: Option<Value>| {
            if first.as_ref().is_none_or(|first| self.direct(value.cmp(first)).is_lt()) {
                first = Some(value);
            }
        };
        self.path.any(row, Leaf::Whole, &mut |value| {
            match value {
                None => take(Some(Value::Null)),
                Some(Value::Array(items)) if items.is_empty() => take(None),
                Some(Value::Array(items)) => items.iter().for_each(|item| take(Some(item.clone()))),
                Some(value) => take(Some(value.clone())),
            }
            Ok(false)
        })?;
        Ok(first.unwrap_or(Some(Value::Null)))
    }
}

/// Follows names through objects. Stops at an array and returns the names that remain.
fn go<'v, 'n>(mut value: &'v Value, mut names: &'n [Arc<str>]) -> (Option<&'v Value>, &'n [Arc<str>]) {
    while let (Value::Object(object), Some((first, rest))) = (value, names.split_first()) {
        match object.get(first) {
            Some(inner) => (value, names) = (inner, rest),
            None => return (None, names),
        }
    }
    let is_there = names.is_empty() || matches!(value, Value::Array(_));
    (is_there.then_some(value), names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    fn key(keys: &[(&str, bool)], row: &str) -> Result<Vec<String>> {
        let row = json::parse(row.as_bytes()).expect("a test's JSON");
        let key = Order::new(keys.iter().copied()).key(&row)?;
        Ok(key.iter().map(|value| value.as_ref().map_or_else(|| "none".to_owned(), json::text)).collect())
    }

    #[test]
    fn arrays_sort_by_their_lowest_or_highest_item() {
        let alone = |row: &str, descending: bool| key(&[("a.b", descending)], row).expect("a key").remove(0);
        assert_eq!(alone(r#"{"a": {"b": [3, 1, 2]}}"#, false), "1");
        assert_eq!(alone(r#"{"a": [{"b": 3}, {"b": [9, 1]}]}"#, true), "9");
        assert_eq!(alone(r#"{"a": [{"b": 3}, {}]}"#, false), "null");
        assert_eq!(alone(r#"{"a": [{"b": 3}, 1]}"#, false), "null");
        assert_eq!(alone(r#"{"a": {"b": []}}"#, false), "none");
        assert_eq!(alone(r#"{"a": []}"#, false), "null");
        assert_eq!(alone(r#"{"a": 1}"#, false), "null");
        assert_eq!(key(&[("a.1", false)], r#"{"a": [5, 4]}"#).expect("a key"), ["4"]);
    }

    #[test]
    fn keys_through_one_array_use_the_same_item() {
        let row = r#"{"a": [{"b": 1, "c": 9}, {"b": 2, "c": 0}], "d": 7}"#;
        assert_eq!(key(&[("a.b", false), ("a.c", false)], row).expect("a key"), ["1", "9"]);
        assert_eq!(key(&[("a.c", false), ("d", false), ("a.b", true)], row).expect("a key"), ["0", "7", "2"]);
        let nested = r#"{"a": [{"b": [{"c": 2, "d": 1}, {"c": 1, "d": 5}]}, {"b": []}]}"#;
        assert_eq!(key(&[("a.b.c", true), ("a.b.d", false)], nested).expect("a key"), ["2", "1"]);
    }

    #[test]
    fn keys_through_different_arrays_are_rejected() {
        for row in [r#"{"a": [1, 2], "b": [3]}"#, r#"{"a": [1], "b": []}"#] {
            assert_eq!(
                key(&[("a", false), ("b", false)], row).expect_err("parallel").message,
                "cannot sort with keys that are parallel arrays"
            );
        }
        assert_eq!(key(&[("a", false), ("b", false)], r#"{"a": [1, 2], "b": 3}"#).expect("a key"), ["1", "3"]);
    }
}
