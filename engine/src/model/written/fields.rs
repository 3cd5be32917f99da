//! Changes of an object that keep the written forms of its numbers: merging objects, copying, removing or sorting
//! fields, and replacing a value at a place.

use std::collections::HashMap;
use std::sync::Arc;

use super::numbers::{NumberPlaces, Numbers, WrittenNumber, inside};
use crate::model::value::{Object, Value};

/// The fields of an object, each with the written forms of its numbers.
pub struct WrittenFields(Vec<(Arc<str>, Value, Option<WrittenNumber>)>);

impl WrittenFields {
    pub fn of(object: &Object) -> WrittenFields {
        WrittenFields::with(object, object.numbers())
    }

    fn with(object: &Object, numbers: Option<&Numbers>) -> WrittenFields {
        let mut numbers = NumberPlaces::new(numbers);
        let field = |(place, (name, value)): (usize, (&Arc<str>, &Value))| {
            (name.clone(), value.clone(), numbers.next(place).cloned())
        };
        WrittenFields(object.iter().enumerate().map(field).collect())
    }

    /// Returns the object with its fields and the written forms of their numbers.
    pub fn into_object(self) -> Object {
        let (object, numbers) = self.split();
        match numbers {
            Some(numbers) => object.with_numbers(numbers),
            None => object,
        }
    }

    fn split(self) -> (Object, Option<Numbers>) {
        let mut numbers = Vec::new();
        let mut object = Object::with_capacity(self.0.len());
        for (place, (name, value, number)) in self.0.into_iter().enumerate() {
            numbers.extend(number.map(|number| (place, number)));
            object.push(name, value);
        }
        (object, (!numbers.is_empty()).then_some(Numbers(numbers)))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(field, ..)| **field == *name)
    }

    /// Copies the value of a field from another object. Does nothing if one of the two objects lacks the field.
    pub fn copy(&mut self, name: &str, from: &Object) {
        let Some(slot) = self.position(name).and_then(|index| self.0.get_mut(index)) else { return };
        let Some(place) = from.index_of(name) else { return };
        slot.1 = from.get(name).cloned().unwrap_or_default();
        slot.2 = from.numbers().and_then(|numbers| numbers.at(place)).cloned();
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(field, ..)| **field != *name);
    }

    /// Sorts the fields by a key of their names. Fields with the same key keep their order.
    pub fn sort_by_key<K: Ord>(&mut self, key: impl Fn(&str) -> K) {
        self.0.sort_by_key(|(name, ..)| key(name));
    }

    /// Merges another object into the fields, as a JSON merge patch (RFC 7396).
    pub fn merge(self, patch: &Object) -> WrittenFields {
        self.merge_with(patch, patch.numbers())
    }

    fn merge_with(self, patch: &Object, numbers: Option<&Numbers>) -> WrittenFields {
        let mut slots: Vec<Option<_>> = self.0.into_iter().map(Some).collect();
        let mut places: HashMap<Arc<str>, usize> = HashMap::with_capacity(slots.len());
        for (place, slot) in slots.iter().enumerate() {
            places.extend(slot.iter().map(|(name, ..)| (name.clone(), place)));
        }
        let mut numbers = NumberPlaces::new(numbers);
        for (place, (name, value)) in patch.iter().enumerate() {
            let number = numbers.next(place);
            let before = places.get(name).and_then(|place| slots.get_mut(*place)).and_then(Option::take);
            let after = match value {
                Value::Null => {
                    places.remove(name);
                    continue;
                }
                Value::Object(patch) => {
                    let below = match &before {
                        Some((_, Value::Object(before), number)) => {
                            WrittenFields::with(before, inside(number.as_ref()))
                        }
                        _ => WrittenFields(Vec::new()),
                    };
                    let (object, numbers) = below.merge_with(patch, inside(number)).split();
                    (name.clone(), object.into(), numbers.map(WrittenNumber::Inside))
                }
                other => (name.clone(), other.clone(), number.cloned()),
            };
            match places.get(name).and_then(|place| slots.get_mut(*place)) {
                Some(slot) => *slot = Some(after),
                None => {
                    places.insert(name.clone(), slots.len());
                    slots.push(Some(after));
                }
            }
        }
        WrittenFields(slots.into_iter().flatten().collect())
    }
}

/// Returns a copy of an object with `new` in place of the value at a path. The path consists of the indexes of fields
/// and items. The copy keeps the written forms of the numbers outside the replaced value. If `new` is an object, the
/// copy also keeps the written forms of the numbers in `new`. If the object has no value at the path, the copy equals
/// the object. Returns `None` if the path is empty and `new` is not an object.
pub fn replaced_at(object: &Object, path: &[usize], new: &Value) -> Option<Object> {
    match replaced((&object.clone().into(), object.numbers()), path, new) {
        (Value::Object(object), number) => Some(match number {
            Some(numbers) => object.rounded().with_numbers(numbers),
            None => object.rounded(),
        }),
        _ => None,
    }
}

fn replaced((value, numbers): (&Value, Option<&Numbers>), path: &[usize], new: &Value) -> (Value, Option<Numbers>) {
    let Some((place, rest)) = path.split_first() else {
        return match new {
            Value::Object(object) => (object.rounded().into(), object.numbers().cloned()),
            other => (other.clone(), None),
        };
    };
    let below = |value: &Value, number: Option<&WrittenNumber>| {
        let (value, numbers) = replaced((value, inside(number)), rest, new);
        (value, numbers.map(WrittenNumber::Inside))
    };
    match value {
        Value::Object(object) => {
            let mut fields = WrittenFields::with(object, numbers);
            if let Some((_, value, number)) = fields.0.get_mut(*place) {
                (*value, *number) = below(value, number.as_ref());
            }
            let (object, numbers) = fields.split();
            (object.into(), numbers)
        }
        Value::Array(items) => {
            let mut items = items.to_vec();
            let mut kept: Vec<(usize, WrittenNumber)> = numbers.map(|numbers| numbers.0.clone()).unwrap_or_default();
            if let Some(item) = items.get_mut(*place) {
                let index = kept.iter().position(|(at, _)| at == place);
                let (value, number) = below(item, index.and_then(|index| kept.get(index)).map(|(_, number)| number));
                *item = value;
                kept.retain(|(at, _)| at != place);
                kept.extend(number.map(|number| (*place, number)));
                kept.sort_unstable_by_key(|(at, _)| *at);
            }
            (items.into(), (!kept.is_empty()).then_some(Numbers(kept)))
        }
        other => (other.clone(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use crate::model::json;

    fn object(text: &str) -> Object {
        read(text).expect("an object")
    }

    #[test]
    fn a_merge_keeps_the_numbers_of_both_objects_as_written() {
        let cases = [
            (r#"{"id":18446744073709551616,"a":1}"#, r#"{"a":2}"#, r#"{"id":18446744073709551616,"a":2}"#),
            (r#"{"a":1,"id":18446744073709551616}"#, r#"{"a":null}"#, r#"{"id":18446744073709551616}"#),
            (r#"{"id":18446744073709551616}"#, r#"{"id":18446744073709551617}"#, r#"{"id":18446744073709551617}"#),
            (r#"{"id":18446744073709551616}"#, r#"{"id":1.8446744073709552e19}"#, r#"{"id":1.8446744073709552e+19}"#),
            (
                r#"{"in":{"x":[18446744073709551616],"y":1}}"#,
                r#"{"in":{"y":18446744073709551617,"z":{"deep":null,"n":-9223372036854775809}}}"#,
                r#"{"in":{"x":[18446744073709551616],"y":18446744073709551617,"z":{"n":-9223372036854775809}}}"#,
            ),
            (r#"{"a":[18446744073709551616]}"#, r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
        ];
        for (target, patch, expected) in cases {
            let merged = WrittenFields::of(&object(target)).merge(&object(patch)).into_object();
            assert_eq!(json::text(&merged), expected, "{target} {patch}");
        }
    }

    #[test]
    fn replacing_one_value_keeps_all_numbers_as_written() {
        let before = object(r#"{"id":18446744073709551616,"in":[{"a":"x","n":18446744073709551617},"x"]}"#);
        let after = |path: &[usize], new: Value| replaced_at(&before, path, &new).map(|after| json::text(&after));
        let expected = r#"{"id":18446744073709551616,"in":[{"a":"y","n":18446744073709551617},"x"]}"#;
        assert_eq!(after(&[1, 0, 0], "y".into()).as_deref(), Some(expected));
        let new = Value::from(object(r#"{"b":18446744073709551618}"#));
        let expected = r#"{"id":18446744073709551616,"in":[{"b":18446744073709551618},"x"]}"#;
        assert_eq!(after(&[1, 0], new.clone()).as_deref(), Some(expected));
        assert_eq!(after(&[], new).as_deref(), Some(r#"{"b":18446744073709551618}"#));
        assert_eq!(after(&[], "y".into()), None);
    }

    #[test]
    fn numbers_stay_as_written_when_fields_are_copied_or_removed() {
        let mut fields = WrittenFields::of(&object(r#"{"a":1,"b":18446744073709551616,"c":2}"#));
        fields.copy("a", &object(r#"{"x":1,"a":18446744073709551617}"#));
        fields.remove("c");
        assert_eq!(json::text(&fields.into_object()), r#"{"a":18446744073709551617,"b":18446744073709551616}"#);
    }
}
