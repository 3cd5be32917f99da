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

/// The content of an event's record, without the event's aggregate id, version and position.
#[derive(Serialize)]
pub struct EventContent {
    pub event_id: Arc<str>,
    pub aggregate_type: Arc<str>,
    pub event_type: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Arc<str>>,
    pub payload: Arc<Object>,
    #[serde(skip_serializing_if = "is_empty")]
    pub metadata: Arc<Object>,
    pub actor: Arc<str>,
    pub occurred_at: i64,
    pub recorded_at: i64,
}

fn is_empty(object: &Arc<Object>) -> bool {
    object.is_empty()
}

/// The top-level payload fields to read, in addition to `$unset`. `None` reads all fields.
pub type Fields<'f> = Option<&'f BTreeSet<Arc<str>>>;

impl EventContent {
    /// Returns the event with this content at a place in the log.
    pub fn into_event(self, aggregate_id: AggregateId, version: u64, position: u64) -> Event {
        Event {
            event_id: self.event_id,
            aggregate_id,
            aggregate_type: self.aggregate_type,
            event_type: self.event_type,
            project_id: self.project_id,
            version,
            position,
            payload: self.payload,
            metadata: self.metadata,
            actor: self.actor,
            occurred_at: self.occurred_at,
            recorded_at: self.recorded_at,
            sent: Default::default(),
        }
    }
}

/// Serializes an event's body. The body is stored as text, because text keeps the order of the fields and is the
/// cheapest form to store.
pub fn write(event: &Event) -> crate::store::Result<String> {
    let body = EventContent {
        event_id: event.event_id.clone(),
        aggregate_type: event.aggregate_type.clone(),
        event_type: event.event_type.clone(),
        project_id: event.project_id.clone(),
        payload: event.payload.clone(),
        metadata: event.metadata.clone(),
        actor: event.actor.clone(),
        occurred_at: event.occurred_at,
        recorded_at: event.recorded_at,
    };
    crate::store::convert::json_text(&body)
}

/// Parses a body, but only the given fields of its payload. Numbers that neither a 64-bit integer nor a double
/// represents exactly keep their digits, unless `fields` is an empty set.
pub fn read(text: &str, fields: Fields) -> serde_json::Result<EventContent> {
    let mut body = read_values(text, fields)?;
    let reads_values = fields.is_none_or(|requested| !requested.is_empty());
    if reads_values && written::is_likely_in(text.as_bytes()) {
        let objects: BodyObjects = serde_json::from_str(text)?;
        body.payload = with_numbers(body.payload, objects.payload, |name| is_read(name, fields));
        body.metadata = with_numbers(body.metadata, objects.metadata, |_| true);
    }
    Ok(body)
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

fn read_values(text: &str, fields: Fields) -> serde_json::Result<EventContent> {
    let mut reader = serde_json::Deserializer::from_str(text);
    // The deserializers of the values count the nesting levels.
    reader.disable_recursion_limit();
    let body = BodyOf(fields).deserialize(&mut reader)?;
    reader.end()?;
    Ok(body)
}

struct BodyOf<'f>(Fields<'f>);

impl<'de> DeserializeSeed<'de> for BodyOf<'_> {
    type Value = EventContent;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<EventContent, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for BodyOf<'_> {
    type Value = EventContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event's body")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EventContent, A::Error> {
        let (mut event_id, mut aggregate_type, mut event_type, mut actor) = (None, None, None, None);
        let (mut project_id, mut payload, mut metadata) = (None, None, None);
        let (mut occurred_at, mut recorded_at) = (None, None);
        while let Some(name) = map.next_key::<&str>()? {
            match name {
                "event_id" => event_id = Some(map.next_value()?),
                "aggregate_type" => aggregate_type = Some(map.next_value()?),
                "event_type" => event_type = Some(map.next_value()?),
                "project_id" => project_id = map.next_value()?,
                "payload" => payload = Some(map.next_value_seed(PayloadOf(self.0))?),
                "metadata" => metadata = Some(object_of(map.next_value_seed(NestedDeserializer::of_store())?)?),
                "actor" => actor = Some(map.next_value()?),
                "occurred_at" => occurred_at = Some(map.next_value()?),
                "recorded_at" => recorded_at = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let missing = A::Error::missing_field;
        Ok(EventContent {
            event_id: event_id.ok_or_else(|| missing("event_id"))?,
            aggregate_type: aggregate_type.ok_or_else(|| missing("aggregate_type"))?,
            event_type: event_type.ok_or_else(|| missing("event_type"))?,
            project_id,
            payload: payload.ok_or_else(|| missing("payload"))?.into(),
            metadata: metadata.unwrap_or_default(),
            actor: actor.ok_or_else(|| missing("actor"))?,
            occurred_at: occurred_at.ok_or_else(|| missing("occurred_at"))?,
            recorded_at: recorded_at.ok_or_else(|| missing("recorded_at"))?,
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

    #[test]
    fn only_requested_fields_of_a_body_are_read() {
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
