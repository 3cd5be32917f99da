//! The shapes of the events seen so far: per event type, the payload's fields and the types of their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::model::event::Event;
use crate::model::value::{Object, Value};

/// Fields remembered per event type; a payload that invents names without end does not fill the memory.
const MAX_FIELDS: usize = 500;

type Fields = BTreeMap<String, BTreeSet<&'static str>>;

/// What was seen. Seeing an event twice changes nothing.
#[derive(Default)]
pub struct ObservedSchema {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    event_types: BTreeMap<String, Fields>,
    changed: bool,
}

impl ObservedSchema {
    pub fn note(&self, event: &Event) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !inner.event_types.contains_key(&*event.event_type) {
            inner.event_types.insert(event.event_type.to_string(), Fields::new());
            inner.changed = true;
        }
        let Some(fields) = inner.event_types.get_mut(&*event.event_type) else { return };
        let mut changed = false;
        for (name, value) in event.payload.iter() {
            let room = fields.len() < MAX_FIELDS;
            match fields.get_mut(&**name) {
                Some(types) => changed |= types.insert(kind(value)),
                None if room => {
                    fields.insert(name.to_string(), BTreeSet::from([kind(value)]));
                    changed = true;
                }
                None => {}
            }
        }
        inner.changed |= changed;
    }

    /// What was seen of a type's events: event type to `{field: [types]}`.
    pub fn of_type(&self, type_name: &str) -> Vec<(String, Object)> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let of_type = |event_type: &&String| event_type.split_once('.').is_some_and(|(name, _)| name == type_name);
        let names = inner.event_types.keys().filter(of_type);
        names.map(|name| (name.clone(), inner.event_types.get(name).map(to_object).unwrap_or_default())).collect()
    }

    /// Everything, to be stored, if it changed since this was last asked.
    pub fn take_changed(&self) -> Option<Object> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = std::mem::take(&mut inner.changed);
        changed.then(|| inner.event_types.iter().map(|(name, fields)| (name.as_str(), to_object(fields))).collect())
    }

    /// Takes in what was stored.
    pub fn restore(&self, stored: &Object) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for (event_type, fields) in stored.iter() {
            let known = inner.event_types.entry(event_type.to_string()).or_default();
            for (name, types) in fields.as_object().into_iter().flat_map(Object::iter) {
                let types = types.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
                let types = types.filter_map(|name| KINDS.iter().copied().find(|kind| *kind == name));
                known.entry(name.to_string()).or_default().extend(types);
            }
        }
    }
}

const KINDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// The value's type in the words of type definitions.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Double(_) => "number",
        Value::Date(_) | Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn to_object(fields: &Fields) -> Object {
    let types = |types: &BTreeSet<&'static str>| types.iter().map(|name| Value::from(*name)).collect::<Vec<_>>();
    fields.iter().map(|(name, seen)| (name.as_str(), types(seen))).collect()
}
