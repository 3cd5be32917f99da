//! The stored body of an event: JSON text, of which only the requested parts are parsed.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::aggregate::UNSET;
use crate::model::event::Event;
use crate::model::id::AggregateId;
use crate::model::json::{NestedDeserializer, object_of};
use crate::model::value::{Object, Value};
use crate::model::written;

/// The fields of an [`Event`] that its stored body contains: all fields except the aggregate id, the version, the
/// position, and the serialized text in `sent`.
#[derive(Serialize)]
#[serde(remote = "Event")]
struct EventContent {
    event_id: Arc<str>,
    aggregate_type: Arc<str>,
    event_type: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<Arc<str>>,
    payload: Arc<Object>,
    #[serde(skip_serializing_if = "is_empty")]
    metadata: Arc<Object>,
    actor: Arc<str>,
    occurred_at: i64,
    recorded_at: i64,
}

/// An event that is serialized as its body.
#[derive(Serialize)]
struct EventBody<'e>(#[serde(with = "EventContent")] &'e Event);

fn is_empty(object: &Arc<Object>) -> bool {
    object.is_empty()
}

/// The top-level payload fields to read, in addition to `$unset`. `None` reads all fields.
pub type Fields<'f> = Option<&'f BTreeSet<Arc<str>>>;

/// Serializes an event's body. The body is stored as text, because text keeps the order of the fields and is the
/// cheapest form to store.
pub fn write(event: &Event) -> crate::store::Result<String> {
    crate::store::convert::json_text(&EventBody(event))
}

/// Parses the body `text`, and returns the event with the given id, version and position. Parses only the given fields
/// of the payload. Numbers that neither a 64-bit integer nor a double represents exactly keep their digits, unless
/// `fields` is an empty set.
pub fn read(text: &str, fields: Fields, id: AggregateId, version: u64, position: u64) -> serde_json::Result<Event> {
    let mut reader = serde_json::Deserializer::from_str(text);
    // The deserializers of the values count the nesting levels.
    reader.disable_recursion_limit();
    let mut event = BodyOf { fields, id, version, position }.deserialize(&mut reader)?;
    reader.end()?;
    let reads_values = fields.is_none_or(|requested| !requested.is_empty());
    if reads_values && written::is_likely_in(text.as_bytes()) {
        let objects: BodyObjects = serde_json::from_str(text)?;
        event.payload = with_numbers(event.payload, objects.payload, |name| is_read(name, fields));
        event.metadata = with_numbers(event.metadata, objects.metadata, |_| true);
    }
    Ok(event)
}

fn is_read(name: &str, fields: Fields) -> bool {
    fields.is_none_or(|requested| requested.contains(name) || name == UNSET)
}

/// The JSON texts of the objects in a body.
#[derive(Deserialize)]
struct BodyObjects<'t> {
    #[serde(borrow)]
    payload: Option<&'t RawValue>,
    #[serde(borrow)]
    metadata: Option<&'t RawValue>,
}

fn with_numbers(object: Arc<Object>, text: Option<&RawValue>, is_read: impl Fn(&str) -> bool) -> Arc<Object> {
    match text.map(|text| text.get()).filter(|text| written::is_likely_in(text.as_bytes())) {
        Some(text) => Arc::new(Arc::unwrap_or_clone(object).with_numbers(written::numbers_of_fields(text, is_read))),
        None => object,
    }
}

struct BodyOf<'f> {
    fields: Fields<'f>,
    id: AggregateId,
    version: u64,
    position: u64,
}

impl<'de> DeserializeSeed<'de> for BodyOf<'_> {
    type Value = Event;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Event, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for BodyOf<'_> {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event's body")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let (mut event_id, mut aggregate_type, mut event_type, mut actor) = (None, None, None, None);
        let (mut project_id, mut payload, mut metadata) = (None, None, None);
        let (mut occurred_at, mut recorded_at) = (None, None);
        while let Some(name) = map.next_key::<&str>()? {
            match name {
                "event_id" => event_id = Some(map.next_value()?),
                "aggregate_type" => aggregate_type = Some(map.next_value()?),
                "event_type" => event_type = Some(map.next_value()?),
                "project_id" => project_id = map.next_value()?,
                "payload" => payload = Some(map.next_value_seed(PayloadOf(self.fields))?),
                "metadata" => metadata = Some(object_of(map.next_value_seed(NestedDeserializer::of_store())?)?),
                "actor" => actor = Some(map.next_value()?),
                "occurred_at" => occurred_at = Some(map.next_value()?),
                "recorded_at" => recorded_at = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let missing = A::Error::missing_field;
        Ok(Event {
            event_id: event_id.ok_or_else(|| missing("event_id"))?,
            aggregate_id: self.id,
            aggregate_type: aggregate_type.ok_or_else(|| missing("aggregate_type"))?,
            event_type: event_type.ok_or_else(|| missing("event_type"))?,
            project_id,
            version: self.version,
            position: self.position,
            payload: payload.ok_or_else(|| missing("payload"))?.into(),
            metadata: metadata.unwrap_or_default(),
            actor: actor.ok_or_else(|| missing("actor"))?,
            occurred_at: occurred_at.ok_or_else(|| missing("occurred_at"))?,
            recorded_at: recorded_at.ok_or_else(|| missing("recorded_at"))?,
            sent: Default::default(),
        })
    }
}

struct PayloadOf<'f>(Fields<'f>);

impl<'de> DeserializeSeed<'de> for PayloadOf<'_> {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PayloadOf<'_> {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event's payload")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut fields: Vec<(Arc<str>, Value)> = Vec::new();
        while let Some(name) = map.next_key::<Arc<str>>()? {
            // The value of a field that was not requested is skipped and not copied, because it may be most of the
            // event.
            if is_read(&name, self.0) {
                fields.push((name, map.next_value_seed(NestedDeserializer::of_store())?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(fields.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    fn read(text: &str, fields: Fields) -> serde_json::Result<Event> {
        super::read(text, fields, AggregateId::from(Arc::from("a")), 1, 1)
    }

    #[test]
    fn only_the_requested_fields_and_the_unset_list_of_a_payload_are_read() {
        let text = r#"{"event_id":"e","aggregate_type":"note","event_type":"note.created","payload":{"a":1,"\u0062":"x\ny","$unset":["c"]},"actor":"system","occurred_at":1,"recorded_at":2}"#;
        let payload = |fields: Fields| json::text(&*read(text, fields).expect("a body").payload);
        assert_eq!(payload(None), r#"{"a":1,"b":"x\ny","$unset":["c"]}"#);
        assert_eq!(payload(Some(&BTreeSet::from(["b".into()]))), r#"{"b":"x\ny","$unset":["c"]}"#);
        assert_eq!(payload(Some(&BTreeSet::new())), r#"{"$unset":["c"]}"#);
        assert!(read("{}", None).is_err());
    }

    #[test]
    fn the_numbers_of_requested_fields_are_read_as_written() {
        let text = r#"{"event_id":"e","aggregate_type":"note","event_type":"note.created","payload":{"a":18446744073709551616,"b":0.2000000000000000000000000001,"c":[1,12345678901234567890]},"actor":"system","occurred_at":1,"recorded_at":2}"#;
        let payload = |fields: &[&str]| {
            let fields: BTreeSet<Arc<str>> = fields.iter().map(|name| Arc::from(*name)).collect();
            json::text(&*read(text, Some(&fields)).expect("a body").payload)
        };
        assert_eq!(payload(&["b"]), r#"{"b":0.2000000000000000000000000001}"#);
        assert_eq!(payload(&["c", "a"]), r#"{"a":18446744073709551616,"c":[1,12345678901234567890]}"#);
        assert_eq!(payload(&[]), "{}");
    }

    #[test]
    fn stored_bodies_may_nest_deeper_than_requests() {
        let nested = format!("{}1{}", r#"{"a":"#.repeat(190), "}".repeat(190));
        let text = format!(
            r#"{{"event_id":"e","aggregate_type":"note","event_type":"note.created","payload":{{"deep":{nested}}},"metadata":{nested},"actor":"system","occurred_at":1,"recorded_at":2}}"#
        );
        let body = read(&text, None).expect("a body");
        assert_eq!(json::text(body.payload.get("deep").expect("the field")), nested);
        assert_eq!(json::text(&Value::from(Object::clone(&body.metadata))), nested);
    }
}
