//! Generates random events: fields of every type and of changing types, nested fields, missing fields, and deleted
//! aggregates.

use std::sync::Arc;

use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::value::{Object, Value};
use proptest::prelude::*;

/// The types of the events.
pub const TYPES: [&str; 2] = [
    r#"{"type_name": "thing", "fields": [{"name": "d", "type": "date"}, {"name": "c", "type": "decimal"}]}"#,
    r#"{"type_name": "other"}"#,
];
const IDS: usize = 12;

/// Generates a text for fields and filters.
pub fn text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["", "a", "b", "c", "é", "10", "null"]).prop_map(Value::from)
}

/// Generates a number, sometimes near the limits of exact conversion between integers and doubles.
pub fn number() -> impl Strategy<Value = Value> {
    let exact = 1i64 << 53;
    prop_oneof![
        6 => (-3i64..6).prop_map(Value::Int),
        1 => prop::sample::select(vec![i64::MAX, i64::MIN, exact, exact + 1, -exact - 1, i64::MAX - 1]).prop_map(Value::Int),
        2 => prop::sample::select(vec![0.5, -0.0, 1.0, 2.0, 3.5, 9_007_199_254_740_992.0, 1e300, 9.3e18])
            .prop_map(Value::Double),
    ]
}

/// Generates a value that is neither a list nor an object.
pub fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => number(),
        3 => text(),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Null),
    ]
}

/// Generates a value of any type with a few levels.
pub fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(vec!["x", "y", "0"]), inner), 0..3)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<Object>())),
        ]
    })
}

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::vec(text(), 0..4).prop_map(Value::from)
}

fn date() -> impl Strategy<Value = Value> {
    (1u32..28).prop_map(|day| Value::from(format!("2025-02-{day:02}T00:00:00.000Z")))
}

/// Generates a decimal as text. Some of the texts have equal values.
pub fn decimal() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["0.10", "0.1", "2", "2.00", "-3.50", "9007199254740993"]).prop_map(Value::from)
}

/// Generates a date as text. Some states have these dates.
pub fn date_text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["2025-02-10", "2025-02-20T02:00:00+02:00", "2025-02"]).prop_map(Value::from)
}

/// Generates a field and its value in an event.
fn field() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        3 => (Just("n"), (-3i64..6).prop_map(Value::Int)),
        3 => (Just("m"), number()),
        3 => (Just("s"), text()),
        3 => (Just("t"), texts()),
        2 => (prop::sample::select(vec!["a", "b"]), value()),
        1 => (prop::sample::select(vec!["n", "s", "t"]), value()),
        1 => (Just("d"), date()),
        2 => (Just("c"), prop_oneof![decimal(), (-1i64..3).prop_map(Value::Int)]),
        1 => (Just("$unset"), prop::sample::select(vec!["n", "s", "t", "a"]).prop_map(|name| Value::from(vec![name.into()]))),
    ]
}

/// Generates an event of one of a few aggregates.
pub fn event() -> impl Strategy<Value = NewEvent> {
    let verb = prop_oneof![12 => Just("changed"), 1 => Just("deleted")];
    (0..IDS, prop::collection::vec(field(), 0..6), verb).prop_map(|(number, fields, verb)| {
        // Derives the type from the number of the aggregate, because an aggregate has one type.
        let aggregate_type = if number % 4 == 3 { "other" } else { "thing" };
        let payload: Object = fields.into_iter().map(|(name, value)| (Arc::<str>::from(name), value)).collect();
        NewEvent {
            aggregate_id: format!("i{number}"),
            aggregate_type: aggregate_type.into(),
            event_type: format!("{aggregate_type}.{verb}"),
            payload,
            restore: true,
            expected: StreamExpectation::Any,
            ..NewEvent::default()
        }
    })
}

/// Returns an event that sets the values of an aggregate for a round.
pub fn numbered(number: usize, round: usize) -> NewEvent {
    let changed = number + round * 31;
    let x = match changed % 5 {
        0 => Value::Null,
        1 => Value::Int((changed % 40) as i64),
        2 => Value::Double(changed as f64 / 4.0),
        _ => Value::Int((changed % 11) as i64),
    };
    let tags: Vec<Value> = (0..changed % 4).map(|tag| Value::from(format!("t-{}", (changed + tag) % 13))).collect();
    let mut payload = Object::from_iter([
        ("k", Value::from(format!("k-{}", changed % 6))),
        ("n", Value::Int((changed * 7_919 % 5_003) as i64)),
        ("s", Value::from(format!("s-{changed}"))),
        ("t", tags.into()),
    ]);
    if !changed.is_multiple_of(7) {
        payload.push("x", x);
    }
    NewEvent {
        aggregate_id: format!("i{number}"),
        aggregate_type: "other".into(),
        event_type: "other.changed".into(),
        payload,
        ..NewEvent::default()
    }
}
