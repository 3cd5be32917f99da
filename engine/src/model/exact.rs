//! Serializes values to texts that represent every value exactly, including dates, decimals, infinities and NaN, which
//! JSON does not have.
//!
//! The text is JSON. A date is `{"$date": <milliseconds>}`, and a decimal is `{"$decimal": "12.30"}`. A number that is
//! not finite is written with its name, such as `{"$double": "Infinity"}`. An ordinary object whose only field has a
//! name that starts with `$` could be mistaken for such a value. The name of the field is therefore written with an
//! additional `$`.

use serde::{Serialize, Serializer};

use super::decimal;
use super::json::{NestedDeserializer, object_of, parse_with};
use super::value::{Object, Value};

const DATE: &str = "$date";
const DOUBLE: &str = "$double";
const DECIMAL: &str = "$decimal";
/// The numbers that JSON does not have, with their names.
const DOUBLES: [(&str, f64); 3] = [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

/// Serializes an object to JSON text that represents every value exactly.
pub fn write(object: &Object) -> Result<String, serde_json::Error> {
    serde_json::to_string(&ExactObject(object))
}

/// Reads an object from a text that [`write`] produced.
pub fn read(text: &[u8]) -> Result<Object, serde_json::Error> {
    let value = parse_with(text, NestedDeserializer::of_store_with(decode))?;
    object_of(value).map(std::sync::Arc::unwrap_or_clone)
}

/// Returns the value that an object in the JSON text represents. For example, `{"$date": 0}` represents a date.
fn decode(object: Object) -> Result<Value, String> {
    let mut fields = object.iter();
    let (Some((name, value)), None) = (fields.next(), fields.next()) else { return Ok(object.into()) };
    let Some(rest) = name.strip_prefix('$') else { return Ok(object.into()) };
    if rest.starts_with('$') {
        return Ok(Object::from_iter([(rest, value.clone())]).into());
    }
    let double = || DOUBLES.iter().find(|(text, _)| Some(*text) == value.as_str()).map(|(_, double)| *double);
    let exact = match &**name {
        DATE => value.as_int().map(Value::Date),
        DOUBLE => double().map(Value::Double),
        DECIMAL => value.as_str().and_then(decimal::parse).map(Value::Decimal),
        _ => None,
    };
    exact.ok_or_else(|| format!("an object with only the field '{}' does not represent a value", name.escape_debug()))
}

struct ExactValue<'v>(&'v Value);

struct ExactObject<'o>(&'o Object);

impl Serialize for ExactValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Date(ms) => one(serializer, DATE, ms),
            Value::Decimal(number) => one(serializer, DECIMAL, &number.to_string()),
            Value::Double(number) if !number.is_finite() => {
                let same = |(_, double): &&(&str, f64)| double.total_cmp(number).is_eq();
                let name = DOUBLES.iter().find(same).map_or("NaN", |(name, _)| *name);
                one(serializer, DOUBLE, name)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(ExactValue)),
            Value::Object(object) => ExactObject(object).serialize(serializer),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::String(_) => {
                self.0.serialize(serializer)
            }
        }
    }
}

impl Serialize for ExactObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = self.0.iter();
        if let (Some((name, value)), None) = (fields.next(), fields.next())
            && name.starts_with('$')
        {
            return one(serializer, &format!("${name}"), &ExactValue(value));
        }
        serializer.collect_map(self.0.iter().map(|(name, value)| (&**name, ExactValue(value))))
    }
}

fn one<S: Serializer>(serializer: S, name: &str, value: &(impl Serialize + ?Sized)) -> Result<S::Ok, S::Error> {
    serializer.collect_map([(name, value)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scalar() -> impl Strategy<Value = Value> {
        let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e300, f64::MIN_POSITIVE, 5e-324];
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_map(Value::Double),
            prop::sample::select(doubles.to_vec()).prop_map(Value::Double),
            any::<i64>().prop_map(Value::Date),
            (any::<i64>(), 0u32..=28).prop_map(|(digits, scale)| Value::Decimal(
                decimal::Decimal::from_i128_with_scale(digits.into(), scale)
            )),
            prop::sample::select(vec!["", "2024-01-02T03:04:05Z", "NaN", "$date", "\0\u{1f600}"]).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ]
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(vec!["$date", "$double", "$decimal", "$$date", "$", "$$", "a", "b", ""])
                .prop_map(str::to_owned),
            any::<String>(),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        scalar().prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((name(), inner), 0..4).prop_map(|fields| Object::from_iter(fields).into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_survives_serialization(fields in prop::collection::vec((name(), value()), 0..5)) {
            let object = Object::from_iter(fields);
            let text = write(&object).expect("a text");
            let back = read(text.as_bytes()).expect("an object");
            // Equal values may differ in type, and equal zeros in sign. The debug output shows these differences.
            prop_assert_eq!(format!("{object:?}"), format!("{back:?}"), "{}", text);
        }
    }

    #[test]
    fn texts_that_are_not_objects_with_valid_values_are_rejected() {
        for text in [r#"{"a":{"$date":"x"}}"#, r#"{"a":{"$double":"1"}}"#, r#"{"a":{"$other":1}}"#, "[]", "1", "{"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
