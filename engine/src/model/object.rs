//! Objects: named values in the order in which they were written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::value::Value;

/// Fields in the order in which they were written; names are unique.
#[derive(Clone)]
pub struct Object {
    fields: Fields,
}

/// What is being written holds its names; what is kept shares them with the objects of its shape.
#[derive(Clone)]
enum Fields {
    Own(Vec<(Arc<str>, Value)>),
    Shaped(Shape, Box<[Value]>),
}

/// The names of an object's fields, in order.
pub type Shape = Arc<[Arc<str>]>;

impl Object {
    pub fn new() -> Object {
        Object::default()
    }

    pub fn with_capacity(fields: usize) -> Object {
        Object { fields: Fields::Own(Vec::with_capacity(fields)) }
    }

    /// An object of a shape, a value for each of its names. It takes less room, and more time once it is written to.
    pub fn of_shape(shape: Shape, values: Vec<Value>) -> Object {
        if shape.len() != values.len() {
            return shape.iter().cloned().zip(values).collect();
        }
        Object { fields: Fields::Shaped(shape, values.into()) }
    }

    /// The shape, if the object shares it with others.
    pub fn shape(&self) -> Option<&Shape> {
        match &self.fields {
            Fields::Own(_) => None,
            Fields::Shaped(shape, _) => Some(shape),
        }
    }

    /// The fields, to be written to.
    fn own(&mut self) -> &mut Vec<(Arc<str>, Value)> {
        if let Fields::Shaped(shape, values) = &mut self.fields {
            let values = std::mem::take(values).into_vec();
            self.fields = Fields::Own(shape.iter().cloned().zip(values).collect());
        }
        match &mut self.fields {
            Fields::Own(fields) => fields,
            Fields::Shaped(..) => unreachable!("what had a shape was taken apart above"),
        }
    }

    pub fn len(&self) -> usize {
        match &self.fields {
            Fields::Own(fields) => fields.len(),
            Fields::Shaped(_, values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        match &self.fields {
            Fields::Own(fields) => fields.iter().find(|(field, _)| &**field == name).map(|(_, value)| value),
            Fields::Shaped(shape, values) => values.get(shape.iter().position(|field| **field == *name)?),
        }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        match &mut self.fields {
            Fields::Own(fields) => fields.iter_mut().find(|(field, _)| &**field == name).map(|(_, value)| value),
            Fields::Shaped(shape, values) => values.get_mut(shape.iter().position(|field| **field == *name)?),
        }
    }

    /// Where a field stands among the others.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        match &self.fields {
            Fields::Own(fields) => fields.iter().position(|(field, _)| **field == *name),
            Fields::Shaped(shape, _) => shape.iter().position(|field| **field == *name),
        }
    }

    /// The value of the field at an index.
    pub fn at_mut(&mut self, index: usize) -> Option<&mut Value> {
        match &mut self.fields {
            Fields::Own(fields) => fields.get_mut(index).map(|(_, value)| value),
            Fields::Shaped(_, values) => values.get_mut(index),
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Writes a field: in place where it stands already, else at the end. Returns what stood there.
    pub fn insert(&mut self, name: impl Into<Arc<str>> + AsRef<str>, value: impl Into<Value>) -> Option<Value> {
        if let Some(slot) = self.get_mut(name.as_ref()) {
            return Some(std::mem::replace(slot, value.into()));
        }
        self.own().push((name.into(), value.into()));
        None
    }

    /// Writes a field that is known not to stand here yet, without looking for it.
    pub fn push(&mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) {
        self.own().push((name.into(), value.into()));
    }

    /// Removes a field and keeps the order of the others.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.keys().position(|field| **field == *name)?;
        Some(self.own().remove(index).1)
    }

    /// Removes fields and keeps the order of the others.
    pub fn remove_all(&mut self, names: &[&str]) {
        let names: BTreeSet<&str> = names.iter().copied().collect();
        if self.keys().any(|name| names.contains(&**name)) {
            self.own().retain(|(name, _)| !names.contains(&**name));
        }
    }

    /// Bytes that the fields take in memory, roughly.
    pub fn size_bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + size_of::<Arc<str>>() + value.size_bytes()).sum()
    }

    pub fn iter(&self) -> Iter<'_> {
        match &self.fields {
            Fields::Own(fields) => Iter::Own(fields.iter()),
            Fields::Shaped(shape, values) => Iter::Shaped(shape.iter().zip(values.iter())),
        }
    }

    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Arc<str>, &mut Value)> {
        self.own().iter_mut().map(|(name, value)| (&*name, value))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Arc<str>> + Clone {
        self.iter().map(|(name, _)| name)
    }
}

/// Fields one after the other.
#[derive(Clone)]
pub enum Iter<'o> {
    Own(std::slice::Iter<'o, (Arc<str>, Value)>),
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
    type Item = (Arc<str>, Value);
    type IntoIter = std::vec::IntoIter<(Arc<str>, Value)>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(self.own()).into_iter()
    }
}

impl<K: Into<Arc<str>>, V: Into<Value>> FromIterator<(K, V)> for Object {
    /// Of two fields of one name the later value wins, at the earlier place.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Object {
        let mut object = Object::new();
        let mut index = FieldIndex::default();
        for (name, value) in fields {
            index.insert(&mut object, name.into(), value.into());
        }
        object
    }
}

/// Where the fields of one object stand, for whoever writes many of them: a wide object is walked a few times, and from
/// then on a tree tells where they are. It is a tree because clients choose the names, and could choose such as collide in a
/// hash table.
#[derive(Debug, Clone, Default)]
pub struct FieldIndex {
    tree: BTreeMap<Arc<str>, usize>,
    walks: u32,
}

impl FieldIndex {
    /// Narrower objects are walked always.
    const WIDE: usize = 24;
    /// How often a wide object is walked before the tree is made.
    const WALKS: u32 = 8;

    /// Where a field stands. It is asked of one object, to which nobody else adds fields meanwhile.
    pub fn find(&mut self, object: &Object, name: &str) -> Option<usize> {
        if self.tree.len() != object.len() {
            if object.len() < FieldIndex::WIDE || self.walks < FieldIndex::WALKS {
                self.walks += u32::from(object.len() >= FieldIndex::WIDE);
                return object.index_of(name);
            }
            self.tree = object.keys().cloned().zip(0..).collect();
        }
        self.tree.get(name).copied()
    }

    /// Writes a field: in place where it stands already, else at the end.
    pub fn insert(&mut self, object: &mut Object, name: Arc<str>, value: Value) {
        match self.find(object, &name).and_then(|at| object.at_mut(at)) {
            Some(slot) => *slot = value,
            None => self.push(object, name, value),
        }
    }

    /// Writes a field that is known not to stand there yet.
    pub fn push(&mut self, object: &mut Object, name: Arc<str>, value: Value) {
        if !self.tree.is_empty() {
            self.tree.insert(name.clone(), object.len());
        }
        object.push(name, value);
    }

    /// To be said once fields were removed.
    pub fn forget(&mut self) {
        self.tree.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_objects_are_made_as_narrow_ones_are() {
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

    /// Walking to each of the fields would be done for many minutes.
    #[test]
    fn many_fields_are_written_in_little_more_time_than_few() {
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
