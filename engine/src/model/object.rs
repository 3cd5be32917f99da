//! Objects: named values in the order in which they were written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::value::Value;
use super::written::numbers::{Numbers, WrittenForm};

/// An object: fields with unique names, in the order in which they were written.
#[derive(Clone)]
pub struct Object {
    fields: ObjectFields,
}

/// The storage of an object's fields. An object owns the names of its fields, unless the object was created with
/// [`Object::of_shape`]. Such an object shares the names with the other objects that were created with the same shape.
#[derive(Clone)]
enum ObjectFields {
    Own(OwnedFields),
    Shaped(Shape, Box<[Value]>),
}

/// The name and the value of a field.
type Field = (Arc<str>, Value);

/// Fields that are stored together with their names. For an object of an event, the original text of numbers may be
/// stored as well, see [`Numbers`].
#[derive(Clone)]
enum OwnedFields {
    Plain(Vec<Field>),
    Written(Box<(Vec<Field>, Numbers)>),
}

impl Deref for OwnedFields {
    type Target = Vec<Field>;

    fn deref(&self) -> &Self::Target {
        match self {
            OwnedFields::Plain(fields) => fields,
            OwnedFields::Written(written) => &written.0,
        }
    }
}

impl DerefMut for OwnedFields {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            OwnedFields::Plain(fields) => fields,
            OwnedFields::Written(written) => &mut written.0,
        }
    }
}

/// The names of an object's fields, in order.
pub type Shape = Arc<[Arc<str>]>;

impl Object {
    pub fn new() -> Object {
        Object::default()
    }

    pub fn with_capacity(fields: usize) -> Object {
        Object { fields: ObjectFields::Own(OwnedFields::Plain(Vec::with_capacity(fields))) }
    }

    /// Clones the object. Adds capacity for further fields, unless the object has written forms of numbers.
    pub fn clone_with_room(&self, further: usize) -> Object {
        if self.has_numbers() {
            return self.clone();
        }
        let mut object = Object::with_capacity(self.len() + further);
        self.iter().for_each(|(name, value)| object.push(name.clone(), value.clone()));
        object
    }

    /// Creates an object with the names of `shape` and one value for each name. The object takes less memory than one
    /// that owns its names, but the first write that adds or removes a field, or iterates over the fields with
    /// [`Object::iter_mut`], copies the names.
    pub fn of_shape(shape: Shape, values: Vec<Value>) -> Object {
        if shape.len() != values.len() {
            return shape.iter().cloned().zip(values).collect();
        }
        Object { fields: ObjectFields::Shaped(shape, values.into()) }
    }

    /// Returns the object's shape, or `None` if the object owns the names of its fields.
    pub fn shape(&self) -> Option<&Shape> {
        match &self.fields {
            ObjectFields::Own(_) => None,
            ObjectFields::Shaped(shape, _) => Some(shape),
        }
    }

    /// Returns the fields for writing. An object that shares the names of a shape first copies the names.
    fn own(&mut self) -> &mut Vec<Field> {
        if let ObjectFields::Shaped(shape, values) = &mut self.fields {
            let values = std::mem::take(values).into_vec();
            self.fields = ObjectFields::Own(OwnedFields::Plain(shape.iter().cloned().zip(values).collect()));
        }
        match &mut self.fields {
            ObjectFields::Own(fields) => fields,
            ObjectFields::Shaped(..) => unreachable!("shaped fields were converted to own fields above"),
        }
    }

    pub fn len(&self) -> usize {
        match &self.fields {
            ObjectFields::Own(fields) => fields.len(),
            ObjectFields::Shaped(_, values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        match &self.fields {
            ObjectFields::Own(fields) => fields.iter().find(|(field, _)| &**field == name).map(|(_, value)| value),
            ObjectFields::Shaped(shape, values) => values.get(shape.iter().position(|field| **field == *name)?),
        }
    }

    /// Returns the value of a field, or `None` if the field is missing or null.
    pub fn given(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// Returns the text of a field, or `None` if the field is missing or contains no string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let index = self.index_of(name)?;
        self.at_mut(index)
    }

    /// Returns the index of the field `name`, or `None` if the object has no such field.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        match &self.fields {
            ObjectFields::Own(fields) => fields.iter().position(|(field, _)| **field == *name),
            ObjectFields::Shaped(shape, _) => shape.iter().position(|field| **field == *name),
        }
    }

    /// Returns the value of the field at `index`, for writing.
    pub fn at_mut(&mut self, index: usize) -> Option<&mut Value> {
        match &mut self.fields {
            ObjectFields::Own(fields) => fields.get_mut(index).map(|(_, value)| value),
            ObjectFields::Shaped(_, values) => values.get_mut(index),
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Replaces the value of a field and returns the previous value. If the object has no such field, appends the field
    /// at the end.
    pub fn insert(&mut self, name: impl Into<Arc<str>> + AsRef<str>, value: impl Into<Value>) -> Option<Value> {
        if let Some(slot) = self.get_mut(name.as_ref()) {
            return Some(std::mem::replace(slot, value.into()));
        }
        self.own().push((name.into(), value.into()));
        None
    }

    /// Appends a field without checking whether the name already exists. The caller must know that the name is new.
    pub fn push(&mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) {
        self.own().push((name.into(), value.into()));
    }

    /// Appends a field like [`Object::push`], if there is a value.
    pub fn push_some(&mut self, name: impl Into<Arc<str>>, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    /// Removes a field and returns its value. The other fields keep their order. If a field was removed, drops the
    /// written forms of all numbers.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.keys().position(|field| **field == *name)?;
        self.round();
        Some(self.own().remove(index).1)
    }

    /// Removes all fields in `names`. The other fields keep their order. If a field was removed, drops the written
    /// forms of all numbers.
    pub fn remove_all(&mut self, names: &[&str]) {
        let names: BTreeSet<&str> = names.iter().copied().collect();
        if self.keys().any(|name| names.contains(&**name)) {
            self.round();
            self.own().retain(|(name, _)| !names.contains(&**name));
        }
    }

    /// Returns the approximate size of the fields in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        let fields = self.iter().map(|(name, value)| name.len() + size_of::<Arc<str>>() + value.size_bytes());
        fields.sum::<usize>() + self.numbers().map_or(0, Numbers::size_bytes)
    }

    /// Adds the written forms of numbers to the object. Removing a field drops all written forms.
    pub fn with_numbers(mut self, numbers: Numbers) -> Object {
        let fields = std::mem::take(self.own());
        Object { fields: ObjectFields::Own(OwnedFields::Written(Box::new((fields, numbers)))) }
    }

    /// Returns the written forms of the object's numbers.
    pub(super) fn numbers(&self) -> Option<&Numbers> {
        match &self.fields {
            ObjectFields::Own(OwnedFields::Written(written)) => Some(&written.1),
            _ => None,
        }
    }

    /// Returns whether the object keeps the written form of a number.
    pub fn has_numbers(&self) -> bool {
        self.numbers().is_some_and(|numbers| !numbers.is_empty())
    }

    /// Returns whether the object keeps the written form of at least one number in the value of a field. The value may
    /// be the number itself.
    pub fn is_written(&self, name: &str) -> bool {
        self.index_of(name).is_some_and(|place| !self.written_at(place).is_empty())
    }

    /// Returns the written forms of the numbers inside a field's value.
    pub fn numbers_in(&self, name: &str) -> Option<&Numbers> {
        self.numbers()?.inside(self.index_of(name)?)
    }

    /// Returns the written forms of the numbers in a field's value. `place` is the index of the field.
    pub fn written_at(&self, place: usize) -> WrittenForm<'_> {
        self.numbers().map_or_else(WrittenForm::default, |numbers| numbers.form(place))
    }

    /// Returns the object without the written forms of its numbers. Only the nearest doubles remain.
    pub fn rounded(&self) -> Object {
        let mut object = self.clone();
        object.round();
        object
    }

    fn round(&mut self) {
        if self.numbers().is_some() {
            let fields = std::mem::take(self.own());
            self.fields = ObjectFields::Own(OwnedFields::Plain(fields));
        }
    }

    pub fn iter(&self) -> Iter<'_> {
        match &self.fields {
            ObjectFields::Own(fields) => Iter::Own(fields.iter()),
            ObjectFields::Shaped(shape, values) => Iter::Shaped(shape.iter().zip(values.iter())),
        }
    }

    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Arc<str>, &mut Value)> {
        self.own().iter_mut().map(|(name, value)| (&*name, value))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Arc<str>> + Clone {
        self.iter().map(|(name, _)| name)
    }
}

/// An iterator over the fields of an object.
#[derive(Clone)]
pub enum Iter<'o> {
    Own(std::slice::Iter<'o, Field>),
    Shaped(std::iter::Zip<std::slice::Iter<'o, Arc<str>>, std::slice::Iter<'o, Value>>),
}

impl<'o> Iterator for Iter<'o> {
    type Item = (&'o Arc<str>, &'o Value);

    fn next(&mut self) -> Option<(&'o Arc<str>, &'o Value)> {
        match self {
            Iter::Own(fields) => fields.next().map(|(name, value)| (name, value)),
            Iter::Shaped(fields) => fields.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Iter::Own(fields) => fields.size_hint(),
            Iter::Shaped(fields) => fields.size_hint(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl Default for Object {
    fn default() -> Object {
        Object::with_capacity(0)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Object {}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl IntoIterator for Object {
    type Item = Field;
    type IntoIter = std::vec::IntoIter<Field>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(self.own()).into_iter()
    }
}

impl<K: Into<Arc<str>>, V: Into<Value>> FromIterator<(K, V)> for Object {
    /// Collects fields into an object. If a name occurs several times, the object gets the last value at the first
    /// position.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Object {
        let mut object = Object::new();
        let mut index = FieldIndex::default();
        for (name, value) in fields {
            index.insert(&mut object, name.into(), value.into());
        }
        object
    }
}

/// An index of the fields of one object, for code that writes many fields. A wide object is searched linearly a few
/// times before a tree of its fields is built. The index is a tree and not a hash table because clients choose the
/// names and could choose names whose hashes collide.
#[derive(Debug, Clone, Default)]
pub struct FieldIndex {
    tree: BTreeMap<Arc<str>, usize>,
    walks: u32,
}

impl FieldIndex {
    /// The minimum number of fields of an object that is indexed. Smaller objects are always searched linearly.
    const MIN_INDEXED_FIELDS: usize = 24;
    /// The number of linear searches in a wide object before the tree is built.
    const MAX_LINEAR_SEARCHES: u32 = 8;

    /// Returns the index of the field `name`. All calls must pass the same object, and fields may be added to the
    /// object only through this `FieldIndex`.
    pub fn find(&mut self, object: &Object, name: &str) -> Option<usize> {
        if self.tree.len() != object.len() {
            if object.len() < FieldIndex::MIN_INDEXED_FIELDS || self.walks < FieldIndex::MAX_LINEAR_SEARCHES {
                self.walks += u32::from(object.len() >= FieldIndex::MIN_INDEXED_FIELDS);
                return object.index_of(name);
            }
            self.tree = object.keys().cloned().zip(0..).collect();
        }
        self.tree.get(name).copied()
    }

    /// Replaces the value of a field, or appends the field at the end if the object has no such field.
    pub fn insert(&mut self, object: &mut Object, name: Arc<str>, value: Value) {
        match self.find(object, &name).and_then(|at| object.at_mut(at)) {
            Some(slot) => *slot = value,
            None => self.push(object, name, value),
        }
    }

    /// Appends a field without checking whether the name already exists. The caller must know that the name is new to
    /// the object.
    pub fn push(&mut self, object: &mut Object, name: Arc<str>, value: Value) {
        if !self.tree.is_empty() {
            self.tree.insert(name.clone(), object.len());
        }
        object.push(name, value);
    }

    /// Clears the index. Must be called after fields were removed from the object.
    pub fn forget(&mut self) {
        self.tree.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_if_values_are_replaced_or_fields_are_removed() {
        for width in [1, 23, 24, 25, 40, 200] {
            let fields = |round: i64| (0..width).map(move |number| (format!("f{number}"), Value::Int(number * round)));
            let object: Object = fields(1).chain(fields(2)).collect();
            let expected: Vec<(String, Value)> = fields(2).collect();
            let found: Vec<(String, Value)> =
                object.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
            assert_eq!(found, expected, "{width}");
            let mut less = object.clone();
            less.remove_all(&["f0", "f3", "none"]);
            let kept = expected.iter().filter(|(name, _)| name != "f0" && name != "f3");
            assert!(less.keys().map(|name| &**name).eq(kept.map(|(name, _)| &**name)), "{width}");
        }
    }

    /// With a linear search for each field, this test would take many minutes.
    #[test]
    fn writing_and_removing_fields_takes_linear_time() {
        let fields = |round: i64| (0..300_000).map(move |number| (format!("f{number}"), Value::Int(number + round)));
        let object: Object = fields(0).chain(fields(1)).collect();
        assert_eq!(object.len(), 300_000);
        assert_eq!(object.iter().last().and_then(|(_, value)| value.as_int()), Some(300_000));
        let names: Vec<String> = fields(0).map(|(name, _)| name).filter(|name| !name.ends_with('7')).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut less = object;
        less.remove_all(&names);
        assert_eq!(less.len(), 30_000);
    }
}
