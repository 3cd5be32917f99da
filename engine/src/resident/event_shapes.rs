//! The shapes of the events seen so far: for each event type, the payload's fields and the types of their values.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use crate::model::event::Event;
use crate::model::value::{Object, Value};

/// The maximum number of fields per event type. Clients choose the names, so without a limit a client could fill the
/// memory with new names.
const MAX_FIELDS: usize = 500;
/// The maximum number of event types. Clients choose the names of event types, so without a limit a client could fill
/// the memory with new names.
const MAX_EVENT_TYPES: usize = 1_000;
/// The maximum length of a recorded field name, in bytes. Fields with longer names are ignored.
const MAX_NAME: usize = 128;
/// The maximum number of fields that are examined in one payload, not counting the ignored fields with long names. The
/// limit exceeds [`MAX_FIELDS`]. The fields of a payload that exceeds this limit therefore reach [`MAX_FIELDS`], and
/// [`ObservedSchema::has_field`] returns `true` for the fields that were not examined.
const MAX_EXAMINED_FIELDS: usize = 2_000;

type Fields = BTreeMap<String, BTreeSet<&'static str>>;

/// The shapes of the events seen so far. Recording the same event again changes nothing.
#[derive(Default)]
pub struct ObservedSchema {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    event_types: BTreeMap<String, Fields>,
    changed: bool,
}

impl Inner {
    /// Returns the event types of an aggregate type, with their fields.
    fn of_type(&self, type_name: &str) -> impl Iterator<Item = (&String, &Fields)> {
        let prefix = format!("{type_name}.");
        let from = self.event_types.range(prefix.clone()..);
        from.take_while(move |(name, _)| name.starts_with(&prefix))
    }
}

impl ObservedSchema {
    pub fn record(&self, event: &Event) {
        let mut inner = self.inner.lock();
        if !inner.event_types.contains_key(&*event.event_type) {
            if inner.event_types.len() >= MAX_EVENT_TYPES {
                return;
            }
            inner.event_types.insert(event.event_type.to_string(), Fields::new());
            inner.changed = true;
        }
        let Some(fields) = inner.event_types.get_mut(&*event.event_type) else { return };
        let mut changed = false;
        let recordable = event.payload.iter().filter(|(name, _)| name.len() <= MAX_NAME);
        for (name, value) in recordable.take(MAX_EXAMINED_FIELDS) {
            let has_capacity = fields.len() < MAX_FIELDS;
            match fields.get_mut(&**name) {
                Some(types) => changed |= types.insert(kind(value)),
                None if has_capacity => {
                    fields.insert(name.to_string(), BTreeSet::from([kind(value)]));
                    changed = true;
                }
                None => {}
            }
        }
        inner.changed |= changed;
    }

    /// Returns the shapes of a type's events: pairs of event type and `{field: [types]}`.
    pub fn of_type(&self, type_name: &str) -> Vec<(String, Object)> {
        let inner = self.inner.lock();
        inner.of_type(type_name).map(|(name, fields)| (name.clone(), to_object(fields))).collect()
    }

    /// Returns whether an event of a type may have had a field. Also returns `true` if the field may be unrecorded
    /// because of a limit.
    pub fn has_field(&self, type_name: &str, field: &str) -> bool {
        let inner = self.inner.lock();
        let is_known = |fields: &Fields| fields.contains_key(field) || fields.len() >= MAX_FIELDS;
        field.len() > MAX_NAME
            || inner.event_types.len() >= MAX_EVENT_TYPES
            || inner.of_type(type_name).any(|(_, fields)| is_known(fields))
    }

    /// Returns the fields of a type's events.
    pub fn fields(&self, type_name: &str) -> Vec<String> {
        let inner = self.inner.lock();
        let names: BTreeSet<&String> = inner.of_type(type_name).flat_map(|(_, fields)| fields.keys()).collect();
        names.into_iter().cloned().collect()
    }

    /// Returns all shapes in the form to be stored, or `None` if the shapes have not changed since the last call.
    pub fn take_changed(&self) -> Option<Object> {
        let mut inner = self.inner.lock();
        let changed = std::mem::take(&mut inner.changed);
        changed.then(|| inner.event_types.iter().map(|(name, fields)| (name.as_str(), to_object(fields))).collect())
    }

    /// Marks the shapes as changed, because the result of [`ObservedSchema::take_changed`] could not be stored.
    pub fn put_back(&self) {
        self.inner.lock().changed = true;
    }

    /// Restores stored shapes.
    pub fn restore(&self, stored: &Object) {
        let mut inner = self.inner.lock();
        for (event_type, fields) in stored.iter().take(MAX_EVENT_TYPES) {
            let known = inner.event_types.entry(event_type.to_string()).or_default();
            for (name, types) in fields.as_object().into_iter().flat_map(Object::iter).take(MAX_FIELDS) {
                let types = types.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
                let types = types.filter_map(|name| KINDS.iter().copied().find(|kind| *kind == name));
                known.entry(name.to_string()).or_default().extend(types);
            }
        }
    }
}

const KINDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Returns the name of the value's type in type definitions.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Double(_) => "number",
        Value::Decimal(_) | Value::Date(_) | Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn to_object(fields: &Fields) -> Object {
    let types = |types: &BTreeSet<&'static str>| types.iter().map(|name| Value::from(*name)).collect::<Vec<_>>();
    fields.iter().map(|(name, seen)| (name.as_str(), types(seen))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn event(verb: &str, payload: Object) -> Event {
        Event { payload: Arc::new(payload), ..Event::sample("a", &format!("note.{verb}"), 1) }
    }

    #[test]
    fn names_of_fields_and_event_types_from_clients_take_bounded_memory() {
        let observed = ObservedSchema::default();
        let wide = |from: usize| (from..from + 3_000).map(|n| (format!("f{n}"), Value::Null)).collect::<Object>();
        for round in 0..3 {
            observed.record(&event("changed", wide(round * 3_000)));
        }
        observed.record(&event("changed", Object::from_iter([("x".repeat(MAX_NAME + 1), Value::Null)])));
        for verb in 0..MAX_EVENT_TYPES + 10 {
            observed.record(&event(&format!("v{verb}"), Object::new()));
        }
        let listed = observed.of_type("note");
        assert_eq!(listed.len(), MAX_EVENT_TYPES);
        assert_eq!(listed.iter().map(|(_, fields)| fields.len()).max(), Some(MAX_FIELDS));
        // An object that a program without the limits has stored.
        let stored: Object = (0..2 * MAX_EVENT_TYPES).map(|n| (format!("note.v{n}"), Value::from(wide(0)))).collect();
        let restored = ObservedSchema::default();
        restored.restore(&stored);
        assert_eq!(restored.of_type("note").len(), MAX_EVENT_TYPES);
        assert!(restored.of_type("note").iter().all(|(_, fields)| fields.len() <= MAX_FIELDS));
    }

    #[test]
    fn fields_after_many_long_names_are_recorded() {
        let observed = ObservedSchema::default();
        let long = (0..MAX_EXAMINED_FIELDS).map(|n| (format!("{n:0>width$}", width = MAX_NAME + 1), Value::Null));
        observed.record(&event("changed", long.chain([("title".to_owned(), Value::from("a"))]).collect()));
        assert!(observed.has_field("note", "title"));
        assert!(!observed.has_field("note", "other"));
    }

    #[test]
    fn unstored_changes_are_returned_again() {
        let observed = ObservedSchema::default();
        observed.record(&event("created", Object::new()));
        assert!(observed.take_changed().is_some() && observed.take_changed().is_none());
        observed.put_back();
        assert!(observed.take_changed().is_some());
    }
}
