//! Conversion between values and JSON text. Keeps the order of fields and the exact values of signed 64-bit integers.
//! Dates are written as RFC 3339 strings, and decimals as strings.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::date::format_date;
use super::value::{Object, Value};
use super::written;

/// The maximum nesting depth of the JSON text in a request. MongoDB has the same limit for documents that clients
/// store.
pub const MAX_DEPTH: usize = 180;
/// The maximum nesting depth of a stored JSON text.
///
/// Stored texts nest deeper than the requests they came from, because folds and envelopes add levels. A reader of the
/// store must accept everything that any writer was allowed to write. This limit is therefore far above [`MAX_DEPTH`],
/// and only keeps a damaged text from exhausting the stack.
pub const MAX_STORED_DEPTH: usize = 256;

/// Parses the JSON text of a request, at most [`MAX_DEPTH`] levels deep. The error contains the line and the column.
pub fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    parse_with(text, NestedDeserializer::of_request())
}

/// Parses a stored JSON text, at most [`MAX_STORED_DEPTH`] levels deep.
pub fn parse_stored(text: &[u8]) -> Result<Value, serde_json::Error> {
    parse_with(text, NestedDeserializer::of_store())
}

pub(super) fn parse_with<'t, S: DeserializeSeed<'t>>(text: &'t [u8], seed: S) -> Result<S::Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    // The deserializers of values count the levels and allow more than the parser's built-in limit.
    reader.disable_recursion_limit();
    let value = seed.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Deserializes an object inside a stored record, as a function for `#[serde(deserialize_with)]`.
pub fn stored_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Object>, D::Error> {
    object_of(NestedDeserializer::of_store().deserialize(deserializer)?)
}

/// Returns the object in a value. The error names the type of any other value.
pub fn object_of<E: serde::de::Error>(value: Value) -> Result<Arc<Object>, E> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(E::custom(format_args!("expected an object, found {}", other.type_name()))),
    }
}

/// Parses a record that contains values of any structure.
///
/// Such values may nest deeper than the parser's built-in limit. Their deserializer, [`NestedDeserializer`], counts the
/// levels instead.
pub fn read<'t, T: serde::Deserialize<'t>>(text: &'t [u8]) -> Result<T, serde_json::Error> {
    parse_with(text, PhantomData::<T>)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(number) => serializer.serialize_i64(*number),
            // serde_json writes null for NaN and infinities, which JSON does not have.
            Value::Double(number) => serializer.serialize_f64(*number),
            Value::Decimal(number) => serializer.collect_str(number),
            Value::Date(ms) => serializer.serialize_str(&format_date(*ms)),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => serializer.collect_seq(items.iter()),
            Value::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(numbers) = self.numbers() {
            return written::serialize(self, numbers, serializer);
        }
        serializer.collect_map(self.iter().map(|(name, value)| (&**name, value)))
    }
}

/// Returns the complete value as compact JSON. Error messages must use an [`excerpt`](super::excerpt::excerpt) instead,
/// because the text of a value may be far longer than the value in memory. `Value` does not implement `Display` for the
/// same reason.
pub fn text(value: &impl Serialize) -> String {
    // Serializing a value or an object cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl<'de> serde::Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        NestedDeserializer::of_request().deserialize(deserializer)
    }
}

impl<'de> serde::Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        object_of(Value::deserialize(deserializer)?).map(Arc::unwrap_or_clone)
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(flag) => Value::Bool(flag),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::from(text),
            serde_json::Value::Array(items) => items.into_iter().collect(),
            serde_json::Value::Object(fields) => fields.into_iter().collect::<Object>().into(),
        }
    }
}

/// The deserializer of a value. The value may nest `levels_left` more levels, out of at most `max_levels`.
#[derive(Clone, Copy)]
pub struct NestedDeserializer {
    levels_left: usize,
    max_levels: usize,
    /// The function that converts each object after the object was read.
    convert: fn(Object) -> Result<Value, String>,
}

impl NestedDeserializer {
    fn of_request() -> NestedDeserializer {
        NestedDeserializer { levels_left: MAX_DEPTH, max_levels: MAX_DEPTH, convert: |object| Ok(object.into()) }
    }

    pub fn of_store() -> NestedDeserializer {
        NestedDeserializer {
            levels_left: MAX_STORED_DEPTH,
            max_levels: MAX_STORED_DEPTH,
            ..NestedDeserializer::of_request()
        }
    }

    /// Returns a deserializer for stored values in which some objects represent values of another type. `convert`
    /// converts these objects.
    pub(super) fn of_store_with(convert: fn(Object) -> Result<Value, String>) -> NestedDeserializer {
        NestedDeserializer { convert, ..NestedDeserializer::of_store() }
    }

    fn deeper<E: serde::de::Error>(self) -> Result<NestedDeserializer, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(NestedDeserializer { levels_left, ..self }),
            None => Err(E::custom(format_args!("nested more than {} levels deep", self.max_levels))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for NestedDeserializer {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NestedDeserializer {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Double(number as f64), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Double(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut fields: Vec<(Arc<str>, Value)> = Vec::new();
        while let Some(name) = map.next_key::<Arc<str>>()? {
            fields.push((name, map.next_value_seed(inner)?));
        }
        (self.convert)(fields.into_iter().collect()).map_err(A::Error::custom)
    }
}
