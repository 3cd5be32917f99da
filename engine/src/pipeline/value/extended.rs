//! Dates written as MongoDB's Extended JSON writes them, which a pipeline may hold wherever a value can stand.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>

use std::borrow::Cow;

use crate::model::date::parse_date;
use crate::model::value::{Object, Value};

/// The value with every `{"$date": …}` in it read, of an RFC 3339 text or of milliseconds since 1970. What is no date
/// stays as it is.
pub fn with_dates(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Object(object) => match date(object) {
            Some(ms) => Cow::Owned(Value::Date(ms)),
            None if object.iter().any(|(_, field)| has_date(field)) => {
                let fields = object.iter().map(|(name, field)| (name.clone(), with_dates(field).into_owned()));
                Cow::Owned(fields.collect::<Object>().into())
            }
            None => Cow::Borrowed(value),
        },
        Value::Array(items) if items.iter().any(has_date) => {
            Cow::Owned(items.iter().map(|item| with_dates(item).into_owned()).collect::<Vec<_>>().into())
        }
        _ => Cow::Borrowed(value),
    }
}

fn has_date(value: &Value) -> bool {
    match value {
        Value::Object(object) => date(object).is_some() || object.iter().any(|(_, field)| has_date(field)),
        Value::Array(items) => items.iter().any(has_date),
        _ => false,
    }
}

fn date(object: &Object) -> Option<i64> {
    if object.len() != 1 {
        return None;
    }
    match object.get("$date")? {
        Value::String(text) => parse_date(text),
        Value::Int(ms) => Some(*ms),
        Value::Object(number) if number.len() == 1 => number.get("$numberLong")?.as_str()?.parse().ok(),
        _ => None,
    }
}
