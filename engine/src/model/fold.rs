//! Folds events into a state. The type's definition declares how each field is folded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::aggregate::{Aggregate, UNSET};
use super::definition::{Definition, Field, Fold};
use super::event::Event;
use super::number;
use super::object::FieldIndex;
use super::value::{Object, Value};

/// The verb of an event that deletes an aggregate.
pub const DELETED: &str = "deleted";

/// The state of a stream while its events are folded. Wide states and long lists are indexed, so that the cost of
/// folding an event without `$unset` is proportional to the event's size.
#[derive(Debug)]
pub struct StreamFold {
    after: Aggregate,
    index: FieldIndex,
    /// The index of the list items, for each field that is folded as a union.
    unions: BTreeMap<Arc<str>, ListIndex>,
}

impl From<Aggregate> for StreamFold {
    fn from(before: Aggregate) -> StreamFold {
        StreamFold { after: before, index: FieldIndex::default(), unions: BTreeMap::new() }
    }
}

impl StreamFold {
    /// Returns the state of a stream before its first event.
    pub fn new(first: &Event) -> StreamFold {
        StreamFold::from(Aggregate::before(first))
    }

    /// Folds the next event.
    pub fn fold(&mut self, event: &Event, definition: &Definition) {
        let after = &mut self.after;
        after.version = event.version;
        after.position = event.position;
        after.last_event_at = event.occurred_at;
        after.deleted = event.verb() == DELETED;
        if event.payload.is_empty() {
            return;
        }
        let state = Arc::make_mut(&mut after.state);
        for (place, (name, value)) in event.payload.iter().enumerate() {
            if &**name == UNSET {
                let names: Vec<&str> = value.as_array().unwrap_or_default().iter().filter_map(Value::as_str).collect();
                names.iter().for_each(|name| drop(self.unions.remove(*name)));
                state.remove_all(&names);
                self.index.forget();
            } else {
                let converted = |field: &Field| field.converted(value, event.payload.written_at(place));
                let incoming = definition.field(name).map_or_else(|| value.clone(), converted);
                merge_field(state, &mut self.index, &mut self.unions, name, incoming, definition);
            }
        }
    }

    /// Returns the approximate size of the state in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.after.size_bytes()
    }

    /// Returns the state after the events folded so far.
    pub fn state(&self) -> &Object {
        &self.after.state
    }

    /// Returns the aggregate after the events folded so far.
    pub fn into_aggregate(self) -> Aggregate {
        self.after
    }
}

/// Folds one field of a payload into the state. The type's definition declares how the field is folded.
fn merge_field(
    state: &mut Object,
    index: &mut FieldIndex,
    unions: &mut BTreeMap<Arc<str>, ListIndex>,
    name: &Arc<str>,
    incoming: Value,
    definition: &Definition,
) {
    let field = definition.field(name);
    let fold = field.map_or(Fold::Last, |field| field.fold);
    match (index.find(state, name).and_then(|at| state.at_mut(at)), fold) {
        // Indexes the items of a long list, because the following events will search the list as well.
        (Some(current), Fold::Union)
            if current.as_array().is_some_and(|items| items.len() >= ListIndex::MIN_INDEXED_LEN) =>
        {
            unite(current, unions.entry(name.clone()).or_default(), incoming);
        }
        (Some(current), fold) => merge(current, fold, incoming),
        (None, Fold::Min | Fold::Max) if incoming.is_null() => {}
        (None, Fold::First | Fold::Last) => index.push(state, name.clone(), incoming),
        (None, fold) => {
            let mut first = Value::Null;
            merge(&mut first, fold, incoming);
            index.push(state, name.clone(), first);
        }
    }
}

/// Folds the incoming value into the current value of a field.
fn merge(current: &mut Value, fold: Fold, incoming: Value) {
    match fold {
        Fold::Last => *current = incoming,
        Fold::First => {}
        Fold::Count => *current = Value::Int(current.as_int().unwrap_or(0).saturating_add(1)),
        Fold::Sum => *current = sum(current, &incoming),
        Fold::Min | Fold::Max if incoming.is_null() => {}
        Fold::Min if current.is_null() || *current > incoming => *current = incoming,
        Fold::Max if current.is_null() || *current < incoming => *current = incoming,
        Fold::Min | Fold::Max => {}
        Fold::Append => list(current).extend(items_of(incoming)),
        Fold::Union => unite(current, &mut ListIndex::default(), incoming),
    }
}

/// Returns the list in `current` for writing. If `current` is not a list, first replaces the value by an empty list.
fn list(current: &mut Value) -> &mut Vec<Value> {
    if current.as_array().is_none() {
        *current = Value::from(Vec::new());
    }
    match current {
        Value::Array(items) => Arc::make_mut(items),
        _ => unreachable!("other values were replaced by a list above"),
    }
}

/// Appends the incoming items that the list in `current` does not contain yet.
fn unite(current: &mut Value, members: &mut ListIndex, incoming: Value) {
    let items = list(current);
    for item in items_of(incoming) {
        if !members.contain(items, &item) {
            members.push(items, item);
        }
    }
}

/// An index of the items of one list. A long list is searched linearly a few times before a tree of its items is built.
#[derive(Debug, Default)]
struct ListIndex {
    tree: BTreeSet<Value>,
    walks: u32,
}

impl ListIndex {
    /// The minimum length of a list that is indexed. Shorter lists are always searched linearly.
    const MIN_INDEXED_LEN: usize = 24;
    /// The number of linear searches in a long list before the tree is built.
    const MAX_LINEAR_SEARCHES: u32 = 8;

    fn contain(&mut self, items: &[Value], item: &Value) -> bool {
        if self.tree.is_empty() {
            if items.len() < ListIndex::MIN_INDEXED_LEN || self.walks < ListIndex::MAX_LINEAR_SEARCHES {
                self.walks += u32::from(items.len() >= ListIndex::MIN_INDEXED_LEN);
                return items.contains(item);
            }
            self.tree = items.iter().cloned().collect();
        }
        self.tree.contains(item)
    }

    fn push(&mut self, items: &mut Vec<Value>, item: Value) {
        if !self.tree.is_empty() {
            self.tree.insert(item.clone());
        }
        items.push(item);
    }
}

/// Returns the items that a payload's value adds to a list: the items of an array, no items for null, and the value
/// itself for any other value.
fn items_of(incoming: Value) -> Vec<Value> {
    match incoming {
        Value::Array(items) => Arc::unwrap_or_clone(items),
        Value::Null => Vec::new(),
        other => vec![other],
    }
}

/// Returns the sum of two values. A value that is not a number counts as 0.
fn sum(current: &Value, incoming: &Value) -> Value {
    match (current.is_number(), incoming.is_number()) {
        (true, true) => number::add(current, incoming),
        (true, false) => current.clone(),
        (false, true) => incoming.clone(),
        (false, false) => Value::Int(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::definition::FieldType;

    fn definition() -> Definition {
        let fields = [("u", Fold::Union), ("a", Fold::Append), ("s", Fold::Sum), ("f", Fold::First)];
        let fields = fields.map(|(name, fold)| Field { fold, ..Field::new(name, FieldType::Array) });
        Definition::new("thing", "", Vec::new(), fields.to_vec())
    }

    fn event(version: u64, payload: Object) -> Event {
        Event { payload: Arc::new(payload), ..Event::sample("a", "thing.changed", version) }
    }

    fn ints(range: impl Iterator<Item = i64>) -> Value {
        range.map(Value::Int).collect::<Vec<_>>().into()
    }

    #[test]
    fn folding_a_stream_equals_folding_its_events_one_by_one() {
        let definition = definition();
        let events: Vec<Event> = (0..60)
            .map(|number| {
                let mut payload = Object::from_iter([
                    ("u", ints(number % 7..number % 40)),
                    ("a", Value::Int(number)),
                    ("s", Value::Int(number)),
                    ("f", Value::Int(number)),
                ]);
                (0..number).for_each(|field| payload.push(format!("x{field}"), number));
                if number % 13 == 12 {
                    payload.push(UNSET, vec!["u".into(), "x3".into(), "x5".into()]);
                    payload.push("x3", "again");
                }
                event(number as u64 + 1, payload)
            })
            .collect();
        let mut before: Option<Aggregate> = None;
        for event in &events {
            before = Some(Aggregate::fold(before.as_ref(), event, &definition));
        }
        let all = Aggregate::fold_all(&events, &definition);
        assert_eq!(all, before);
        let state = all.expect("a state").state;
        assert_eq!(state.get("f"), Some(&Value::Int(0)));
        assert_eq!(state.get("s"), Some(&Value::Int((0..60).sum())));
        assert_eq!(state.get("a"), Some(&ints(0..60)));
    }

    /// If each field and item were compared with all others, this test would take many minutes.
    #[test]
    fn wide_payloads_and_long_unions_fold_in_linear_time() {
        const MANY: i64 = 200_000;
        let definition = definition();
        let mut payload: Object = (0..MANY).map(|field| (format!("x{field}"), field)).collect();
        payload.push("u", ints(0..MANY));
        let mut events = vec![event(1, payload.clone()), event(2, payload)];
        // Folding many small events must be as fast as folding a large one.
        for number in 0..30_000 {
            let payload =
                Object::from_iter([("u", Value::Int(MANY + number)), ("a", Value::Int(number)), ("s", Value::Int(1))]);
            events.push(event(number as u64 + 3, payload));
        }
        let state = Aggregate::fold_all(&events, &definition).expect("a state").state;
        assert_eq!(state.len(), MANY as usize + 3);
        assert_eq!(state.get("u"), Some(&ints(0..MANY + 30_000)));
        assert_eq!(state.get("a"), Some(&ints(0..30_000)));
        assert_eq!(state.get("s"), Some(&Value::Int(30_000)));
    }
}
