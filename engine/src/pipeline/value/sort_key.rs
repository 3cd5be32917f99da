//! Sort keys of rows. An array contributes the item that comes first in the sort order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::error::{Error, Result, err};
use super::query_path::index;
use crate::model::value::Value;

/// Sort paths, each with its direction.
#[derive(Debug, Clone)]
pub struct SortOrder {
    keys: Arc<[SortPath]>,
    /// The number of keys that the client has named. The `_id` may follow as an additional key.
    named: usize,
}

#[derive(Debug)]
struct SortPath {
    names: Box<[Arc<str>]>,
    descending: bool,
}

/// The values of a row at the sort paths. `None` represents an empty array and sorts before every value.
pub type SortKey = Vec<Option<Value>>;

/// A sort value whose comparison respects the direction of the sort.
#[derive(Debug, PartialEq, Eq)]
pub struct SortValue {
    pub value: Option<Value>,
    pub descending: bool,
}

impl Ord for SortValue {
    fn cmp(&self, other: &SortValue) -> Ordering {
        direct(self.value.cmp(&other.value), self.descending)
    }
}

impl PartialOrd for SortValue {
    fn partial_cmp(&self, other: &SortValue) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Reverses the order of two values if the sort is descending.
pub fn direct(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

/// A key whose value is read from an object, or from the items of an array.
#[derive(Clone, Copy)]
struct KeySlot<'r> {
    /// The index of the key.
    key: usize,
    /// The remaining names of the key's path.
    names: &'r [Arc<str>],
    /// The value that the path leads to if its first remaining name is read as the index of an item. `None` if this
    /// name is not the index of an item, or if the key is not read from the items of an array.
    indexed: Option<PathValue<'r>>,
}

/// A value on a path. Either the path ends at the value, or the value is an array.
#[derive(Clone, Copy)]
struct PathValue<'r> {
    /// The value. `None` if the path leads to no value.
    value: Option<&'r Value>,
    /// The names of the path after the value.
    names: &'r [Arc<str>],
    /// Whether the path selects the value by its index in an outer array, and the value is itself an array. If the path
    /// ends at this value, the sort key is the whole array and not one of its items.
    is_item: bool,
}

/// An array through which paths lead.
#[derive(Clone, Copy)]
struct PathArray<'r> {
    array: &'r Value,
    items: &'r [Value],
}

impl SortOrder {
    /// Creates an order from pairs of a path and a flag, which is `true` for a descending order.
    pub fn new<'p>(keys: impl IntoIterator<Item = (&'p str, bool)>) -> SortOrder {
        let key =
            |(text, descending): (&str, bool)| SortPath { names: text.split('.').map(Arc::from).collect(), descending };
        let keys: Arc<[SortPath]> = keys.into_iter().map(key).collect();
        SortOrder { named: keys.len(), keys }
    }

    /// Creates an order like [`SortOrder::new`] in which rows with equal keys are in the order of their `_id`.
    pub fn then_by_id<'p>(keys: impl IntoIterator<Item = (&'p str, bool)>) -> SortOrder {
        let keys: Vec<(&str, bool)> = keys.into_iter().collect();
        let named = keys.len();
        let id = (!keys.iter().any(|(path, _)| *path == "_id")).then_some(("_id", false));
        SortOrder { named, ..SortOrder::new(keys.into_iter().chain(id)) }
    }

    /// Returns, for each value of a sort key, whether the order is descending.
    pub fn directions(&self) -> impl Iterator<Item = bool> {
        self.keys.iter().map(|key| key.descending)
    }

    /// Returns the sort key of a row. Keys whose paths lead through the same array take their values from the same
    /// item. A name in a path may be the index of an item.
    ///
    /// # Errors
    /// Fails if paths lead to or through different arrays. Also fails if a name in a path is both the index of an item
    /// and the name of a field in an item.
    pub fn key(&self, row: &Value) -> Result<SortKey> {
        let numbered = self.keys.iter().enumerate();
        let slots: Vec<KeySlot> =
            numbered.map(|(key, known)| KeySlot { key, names: &known.names, indexed: None }).collect();
        let (named, id) = slots.split_at(self.named);
        let mut key = self.read(named, row)?;
        // The client has not named the `_id`, so an array in the `_id` must not conflict with an array at a named key.
        key.extend(self.read(id, row)?);
        Ok(key)
    }

    pub fn compare(&self, a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
        compare(self.keys.iter(), a, b)
    }

    /// Returns the sort values that the slots have in a row or in an item of an array. In each slot, at least one name
    /// of the path must remain.
    fn read<'r>(&self, slots: &[KeySlot<'r>], value: &'r Value) -> Result<SortKey> {
        let mut key = Vec::with_capacity(slots.len());
        let mut through: Option<PathArray> = None;
        let mut below: Vec<(usize, KeySlot, bool)> = Vec::new();
        for (place, slot) in slots.iter().enumerate() {
            let found = slot.find(value)?;
            key.push(Some(found.value.cloned().unwrap_or_default()));
            let Some(array @ Value::Array(items)) = found.value else { continue };
            if through.is_some_and(|known| !std::ptr::eq(known.array, array)) {
                return Err(Error::new(2, "cannot sort with keys that are parallel arrays"));
            }
            through = Some(PathArray { array, items });
            let indexed = found.names.split_first().and_then(|(name, rest)| indexed(items, name, rest));
            below.push((place, KeySlot { key: slot.key, names: found.names, indexed }, found.is_item));
        }
        let Some(through) = through else { return Ok(key) };
        let slots: Vec<(KeySlot, bool)> = below.iter().map(|(_, slot, is_item)| (*slot, *is_item)).collect();
        let first = self.first(&slots, through)?;
        below.iter().zip(first).for_each(|((place, ..), value)| key[*place] = value);
        Ok(key)
    }

    /// Returns the sort key of the item that sorts first in an array. The key has one value for each slot. For an empty
    /// array, the value of a slot is `None` if the path ends at the array, and null otherwise. The flag next to each
    /// slot is [`PathValue::is_item`] of the array.
    fn first<'r>(&self, slots: &[(KeySlot<'r>, bool)], through: PathArray<'r>) -> Result<SortKey> {
        let mut first: Option<SortKey> = None;
        for item in through.items {
            let key = self.read_item(slots, item, through.array)?;
            let keys = || slots.iter().map(|(slot, _)| &self.keys[slot.key]);
            if first.as_ref().is_none_or(|first| compare(keys(), &key, first).is_lt()) {
                first = Some(key);
            }
        }
        let of_none = |(slot, _): &(KeySlot, bool)| if slot.names.is_empty() { None } else { Some(Value::Null) };
        Ok(first.unwrap_or_else(|| slots.iter().map(of_none).collect()))
    }

    fn read_item<'r>(&self, slots: &[(KeySlot<'r>, bool)], item: &'r Value, array: &Value) -> Result<SortKey> {
        let further: Vec<KeySlot> = slots.iter().map(|(slot, _)| *slot).filter(|slot| !slot.names.is_empty()).collect();
        let mut read = self.read(&further, item)?.into_iter();
        let value = |(slot, is_item): &(KeySlot, bool)| match (slot.names.is_empty(), is_item) {
            (true, true) => Some(array.clone()),
            (true, false) => Some(item.clone()),
            (false, _) => read.next().flatten(),
        };
        Ok(slots.iter().map(value).collect())
    }
}

impl<'r> KeySlot<'r> {
    /// Follows the path from a value, which is a row or an item of an array.
    fn find(&self, value: &'r Value) -> Result<PathValue<'r>> {
        let first =
            self.names.first().filter(|name| matches!(value, Value::Object(object) if object.get(name).is_some()));
        match (first, self.indexed) {
            (Some(name), Some(_)) => {
                let message = "Ambiguous field name found in array (do not use numeric field names in embedded elements \
                               in an array)";
                err!(16746, "{message}, field: '{name}'")
            }
            (Some(_), None) => Ok(go(value, self.names)),
            (None, Some(found)) => Ok(found),
            (None, None) => Ok(PathValue { value: None, names: self.names, is_item: false }),
        }
    }
}

/// Follows a path from an array if the first name of the path is the index of an item.
fn indexed<'r>(items: &'r [Value], name: &str, rest: &'r [Arc<str>]) -> Option<PathValue<'r>> {
    let item = items.get(index(name)?)?;
    match item {
        Value::Array(_) => Some(PathValue { value: Some(item), names: rest, is_item: true }),
        _ => Some(go(item, rest)),
    }
}

/// Compares two rows by some of the keys. `a` and `b` contain one value for each of these keys.
fn compare<'k>(keys: impl Iterator<Item = &'k SortPath>, a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
    let mut orders = a.iter().zip(b).zip(keys).map(|((a, b), key)| direct(a.cmp(b), key.descending));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Follows names through objects. Stops at an array.
fn go<'r>(mut value: &'r Value, mut names: &'r [Arc<str>]) -> PathValue<'r> {
    while let (Value::Object(object), Some((first, rest))) = (value, names.split_first()) {
        match object.get(first) {
            Some(inner) => (value, names) = (inner, rest),
            None => return PathValue { value: None, names, is_item: false },
        }
    }
    let is_there = names.is_empty() || matches!(value, Value::Array(_));
    PathValue { value: is_there.then_some(value), names, is_item: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;
    use crate::pipeline::value::error::PipelineErrorCode;

    fn key(keys: &[(&str, bool)], row: &str) -> Result<Vec<String>> {
        read(&SortOrder::new(keys.iter().copied()), row)
    }

    fn read(order: &SortOrder, row: &str) -> Result<Vec<String>> {
        let row = json::parse(row.as_bytes()).expect("a test's JSON");
        let key = order.key(&row)?;
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
    fn a_number_in_a_sort_path_may_be_the_index_of_an_item() {
        let alone = |path: &str, row: &str| key(&[(path, false)], row).expect("a key").remove(0);
        assert_eq!(alone("a.0.b", r#"{"a": [{"b": 3}, {"b": 1}]}"#), "3");
        assert_eq!(alone("a.1.b", r#"{"a": [{"b": 3}, {"b": [5, 2]}]}"#), "2");
        assert_eq!(alone("a.0.b", r#"{"a": [1, {"b": 1}]}"#), "null");
        assert_eq!(alone("a.7", r#"{"a": [1]}"#), "null");
        assert_eq!(alone("a.0.1", r#"{"a": [[4, 3], [9, 9]]}"#), "3");
        assert_eq!(alone("a.0", r#"{"a": {"0": 6}}"#), "6");
        assert_eq!(alone("a.0", r#"{"a": [{"b": 1}]}"#), r#"{"b":1}"#);
        // An inner list is one value.
        assert_eq!(alone("m.0", r#"{"m": [[3, 1], [2]]}"#), "[3,1]");
        let both = [("a.0.b", false), ("a.c", true)];
        assert_eq!(key(&both, r#"{"a": [{"b": 1, "c": 2}, {"b": 0, "c": 3}]}"#).expect("a key"), ["1", "3"]);
    }

    #[test]
    fn a_number_in_a_sort_path_that_is_both_an_index_and_a_field_is_rejected() {
        let error = key(&[("a.0", false)], r#"{"a": [{"0": 1}]}"#).expect_err("an ambiguous path");
        assert_eq!(error.code, PipelineErrorCode::Number(16746));
        assert!(error.message.ends_with("field: '0'"), "{error:?}");
        assert_eq!(key(&[("a.1", false)], r#"{"a": [{"1": 5}]}"#).expect("a key"), ["5"]);
    }

    #[test]
    fn sort_keys_through_one_array_use_the_same_item() {
        let row = r#"{"a": [{"b": 1, "c": 9}, {"b": 2, "c": 0}], "d": 7}"#;
        assert_eq!(key(&[("a.b", false), ("a.c", false)], row).expect("a key"), ["1", "9"]);
        assert_eq!(key(&[("a.c", false), ("d", false), ("a.b", true)], row).expect("a key"), ["0", "7", "2"]);
        let nested = r#"{"a": [{"b": [{"c": 2, "d": 1}, {"c": 1, "d": 5}]}, {"b": []}]}"#;
        assert_eq!(key(&[("a.b.c", true), ("a.b.d", false)], nested).expect("a key"), ["2", "1"]);
    }

    #[test]
    fn sort_keys_through_different_arrays_are_rejected() {
        for row in [r#"{"a": [1, 2], "b": [3]}"#, r#"{"a": [1], "b": []}"#, r#"{"a": 1, "b": [3], "c": [{"d": 1}]}"#] {
            assert_eq!(
                key(&[("a", false), ("b", false), ("c.0.d", false)], row).expect_err("parallel arrays").message,
                "cannot sort with keys that are parallel arrays"
            );
        }
        let nested = r#"{"a": [{"x": [1], "y": [1]}]}"#;
        assert!(key(&[("a.0.x", false), ("a.y", false)], nested).is_err());
        assert_eq!(key(&[("a", false), ("b", false)], r#"{"a": [1, 2], "b": 3}"#).expect("a key"), ["1", "3"]);
    }

    #[test]
    fn a_sort_by_two_arrays_is_rejected_only_if_the_client_named_both() {
        let row = r#"{"_id": [4, 3], "tags": ["y", "x"]}"#;
        let order = SortOrder::then_by_id([("tags", true)]);
        assert_eq!(read(&order, row).expect("a key"), [r#""y""#, "3"]);
        assert_eq!(order.directions().collect::<Vec<_>>(), [true, false]);
        let named = SortOrder::then_by_id([("tags", false), ("_id", false)]);
        assert!(read(&named, row).is_err());
        assert_eq!(named.directions().count(), 2);
    }
}
