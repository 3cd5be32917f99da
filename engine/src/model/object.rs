//! Objects: named values in the order in which they were written.

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

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Writes a field: in place where it stands already, else at the end. Answers what stood there.
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
        let place = self.keys().position(|field| **field == *name)?;
        Some(self.own().remove(place).1)
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
        /// From here on a hash table finds a repeated name faster than a walk.
        const MANY: usize = 24;
        let mut object = Object::new();
        let mut places: rustc_hash::FxHashMap<Arc<str>, usize> = Default::default();
        for (name, value) in fields {
            let name: Arc<str> = name.into();
            if object.len() < MANY {
                object.insert(name, value);
                continue;
            }
            if places.is_empty() {
                places = object.keys().cloned().zip(0..).collect();
            }
            match places.get(&name) {
                Some(&place) => object.own()[place].1 = value.into(),
                None => {
                    places.insert(name.clone(), object.len());
                    object.push(name, value);
                }
            }
        }
        object
    }
}
