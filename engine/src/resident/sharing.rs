//! Shares equal parts of states: names, short texts, lists of short texts, and the shapes of objects.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::model::aggregate::{Aggregate, no_facts};
use crate::model::value::{Object, Shape, Value};

/// The number of slots in the table of texts. The hash of a text determines its slot. A new text replaces the earlier
/// text in the slot, so no other eviction is needed. Frequent texts are usually still in their slots. The tables of
/// lists and shapes work in the same way.
const TEXT_SLOTS: usize = 4_096;
/// The number of slots in the table of lists.
const LIST_SLOTS: usize = 1_024;
/// The number of slots in the table of shapes.
const SHAPE_SLOTS: usize = 256;
/// The maximum size of a shared text, in bytes. Longer texts are rarely equal to others.
const MAX_TEXT_BYTES: usize = 48;
/// The maximum number of items in a shared list. Longer lists are rarely equal to others.
const MAX_LIST_ITEMS: usize = 16;

/// The texts, lists and shapes that were seen recently, in one table each.
#[derive(Default)]
pub struct PartInterner {
    texts: Vec<Option<Arc<str>>>,
    lists: Vec<Option<Arc<Vec<Value>>>>,
    shapes: Vec<Option<Shape>>,
}

impl PartInterner {
    /// Replaces the parts of an aggregate with equal parts that were seen before. Aggregates with equal parts then
    /// share memory.
    pub fn share(&mut self, mut aggregate: Arc<Aggregate>) -> Arc<Aggregate> {
        if aggregate.state.shape().is_some() {
            return aggregate;
        }
        let state = Arc::new(self.object(&aggregate.state));
        let aggregate_type = self.text(&aggregate.aggregate_type);
        let project_id = aggregate.project_id.as_ref().map(|project| self.text(project));
        let shared = Arc::make_mut(&mut aggregate);
        (shared.state, shared.aggregate_type, shared.project_id) = (state, aggregate_type, project_id);
        aggregate
    }

    /// Returns an equal object of facts whose parts are replaced with equal parts that were seen before. All empty
    /// objects share the same memory.
    pub fn facts(&mut self, facts: &Arc<Object>) -> Arc<Object> {
        if facts.is_empty() {
            return no_facts();
        }
        if facts.shape().is_some() { facts.clone() } else { Arc::new(self.object(facts)) }
    }

    fn object(&mut self, object: &Object) -> Object {
        let values = object.iter().map(|(_, value)| self.value(value)).collect();
        let hash = hash(|hasher| object.keys().for_each(|name| name.hash(hasher)));
        let slot = hash % SHAPE_SLOTS;
        let known = self.shapes.get(slot).and_then(Option::as_ref);
        let shape = match known.filter(|shape| shape.iter().eq(object.keys())) {
            Some(shape) => shape.clone(),
            None => {
                let shape: Shape = object.keys().map(|name| self.text(name)).collect();
                remember(&mut self.shapes, SHAPE_SLOTS, slot, shape.clone());
                shape
            }
        };
        Object::of_shape(shape, values)
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Object(object) if object.shape().is_none() => Value::Object(Arc::new(self.object(object))),
            Value::Array(items) if items.len() <= MAX_LIST_ITEMS => self.array(items),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Decimal(_) | Value::Date(_) => {
                value.clone()
            }
            Value::Array(_) | Value::Object(_) => value.clone(),
        }
    }

    fn array(&mut self, items: &Arc<Vec<Value>>) -> Value {
        // Only lists of texts are shared, because an integer and a double can be equal but print differently.
        let texts = items.iter().all(|item| matches!(item, Value::String(text) if text.len() <= MAX_TEXT_BYTES));
        if !texts {
            return items.iter().map(|item| self.value(item)).collect::<Vec<_>>().into();
        }
        let slot = hash(|hasher| items.iter().for_each(|item| item.hash(hasher))) % LIST_SLOTS;
        if let Some(Some(known)) = self.lists.get(slot)
            && known == items
        {
            return Value::Array(known.clone());
        }
        let list: Arc<Vec<Value>> = Arc::new(items.iter().map(|item| self.value(item)).collect());
        remember(&mut self.lists, LIST_SLOTS, slot, list.clone());
        Value::Array(list)
    }

    /// Returns the text. If the text is short, the result shares the memory of an equal text seen before.
    pub fn text(&mut self, text: &Arc<str>) -> Arc<str> {
        if text.len() > MAX_TEXT_BYTES {
            return text.clone();
        }
        let slot = hash(|hasher| text.hash(hasher)) % TEXT_SLOTS;
        if let Some(Some(known)) = self.texts.get(slot)
            && known == text
        {
            return known.clone();
        }
        remember(&mut self.texts, TEXT_SLOTS, slot, text.clone());
        text.clone()
    }
}

fn remember<T: Clone>(table: &mut Vec<Option<T>>, size: usize, slot: usize, part: T) {
    if table.is_empty() {
        table.resize(size, None);
    }
    table[slot] = Some(part);
}

fn hash(write: impl FnOnce(&mut FxHasher)) -> usize {
    let mut hasher = FxHasher::default();
    write(&mut hasher);
    hasher.finish() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_equal_parts_does_not_change_objects() {
        let text = r#"{"a":"x","b":[1,1.0,"x"],"c":{"a":"x","d":[]},"t":["x","y"],"n":1.0}"#;
        let mut sharing = PartInterner::default();
        let mut objects = (0..2).map(|_| {
            let object: Object = serde_json::from_str(text).expect("a test's JSON");
            sharing.object(&object)
        });
        let (a, mut b) = (objects.next().expect("an object"), objects.next().expect("an object"));
        let list = |object: &Object| match object.get("t") {
            Some(Value::Array(items)) => Arc::as_ptr(items),
            _ => std::ptr::null(),
        };
        assert_eq!(list(&a), list(&b));
        assert_eq!(serde_json::to_string(&a).expect("JSON"), text);
        b.insert("z", 1i64);
        assert_eq!((b.len(), a.len(), b.remove("a").is_some(), b == a), (6, 5, true, false));
        assert_eq!(
            serde_json::to_string(&b).expect("JSON"),
            text.replace(r#""a":"x","b""#, r#""b""#).replace("1.0}", r#"1.0,"z":1}"#)
        );
    }
}
