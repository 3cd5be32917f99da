//! Conversions between values of the model and values of the database.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use surrealdb::types::{Datetime, Number, Object as RecordObject, RecordId, RecordIdKey, Value as Record};

use super::error::{Error, Result};
use crate::model::excerpt::excerpt_of;
use crate::model::json;
use crate::model::value::{Object, Value};

/// Returns a value as JSON text, to be stored as a string in a record.
pub fn json_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::corrupt(error.to_string()))
}

/// Parses the JSON in a string of a record.
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    json::read(text.as_bytes()).map_err(|error| Error::corrupt(error.to_string()))
}

/// Reads a record. If `read` fails, the error names the record by its id and by `kind`, such as `key`.
pub fn named<T>(kind: &str, record: &Record, read: impl FnOnce() -> Result<T>) -> Result<T> {
    read().map_err(|error| match error {
        Error::Corrupt { record: None, reason } => {
            let id = field(record, "id").or_else(|_| field(record, "key")).ok().and_then(id_text);
            let name =
                id.map_or_else(|| format!("a record ({kind})"), |id| format!("the {kind} '{}'", excerpt_of(&id)));
            Error::Corrupt { record: Some(name), reason }
        }
        named => named,
    })
}

/// Returns the id of a record as text. The parts of an id are separated by slashes.
fn id_text(id: &Record) -> Option<String> {
    let parts = |parts: &[Record]| parts.iter().filter_map(id_text).collect::<Vec<_>>().join("/");
    Some(match id {
        Record::String(text) | Record::RecordId(RecordId { key: RecordIdKey::String(text), .. }) => text.clone(),
        Record::Array(array) | Record::RecordId(RecordId { key: RecordIdKey::Array(array), .. }) => parts(array),
        Record::Number(number) => number.to_string(),
        Record::RecordId(RecordId { key: RecordIdKey::Number(number), .. }) => number.to_string(),
        _ => return None,
    })
}

/// Converts a value to a database value. Database values do not keep the order of fields.
pub fn to_record(value: &Value) -> Record {
    match value {
        Value::Null => Record::Null,
        Value::Bool(flag) => Record::Bool(*flag),
        Value::Int(number) => Record::Number(Number::Int(*number)),
        Value::Double(number) => Record::Number(Number::Float(*number)),
        Value::Decimal(number) => Record::String(number.to_string()),
        Value::Date(ms) => datetime(*ms).map_or(Record::Null, Record::Datetime),
        Value::String(text) => Record::String(text.to_string()),
        Value::Array(items) => Record::Array(items.iter().map(to_record).collect::<Vec<_>>().into()),
        Value::Object(object) => Record::Object(to_record_object(object)),
    }
}

fn datetime(ms: i64) -> Option<Datetime> {
    Datetime::from_timestamp(ms.div_euclid(1_000), (ms.rem_euclid(1_000) * 1_000_000) as u32)
}

pub fn to_record_object(object: &Object) -> RecordObject {
    fields(object.iter().map(|(name, value)| (name.to_string(), to_record(value))))
}

/// Creates a database object from its fields.
pub fn fields<K: Into<String>>(fields: impl IntoIterator<Item = (K, Record)>) -> RecordObject {
    let fields: BTreeMap<String, Record> = fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
    RecordObject::from(fields)
}

/// Returns a database object with these fields.
pub fn object<K: Into<String>>(content: impl IntoIterator<Item = (K, Record)>) -> Record {
    Record::Object(fields(content))
}

pub fn record_id(table: &str, key: impl Into<RecordIdKey>) -> Record {
    Record::RecordId(RecordId::new(table, key))
}

/// Returns the key that consists of the given parts.
pub fn key(parts: impl IntoIterator<Item = Record>) -> RecordIdKey {
    RecordIdKey::Array(parts.into_iter().collect())
}

pub fn array(items: impl IntoIterator<Item = Record>) -> Record {
    Record::Array(items.into_iter().collect())
}

pub fn texts(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Record {
    array(texts.into_iter().map(|item| text(item.as_ref())))
}

pub fn text(text: &str) -> Record {
    Record::String(text.to_owned())
}

pub fn optional_text(text: Option<&str>) -> Record {
    text.map_or(Record::None, |text| Record::String(text.to_owned()))
}

pub fn integer(number: impl TryInto<i64>) -> Record {
    Record::Number(Number::Int(number.try_into().unwrap_or(i64::MAX)))
}

/// Returns the rows of a result. `NONE` has no rows, and a single record is one row.
pub fn list(record: Option<&Record>) -> Result<impl Iterator<Item = &Record>> {
    let rows: &[Record] = match record {
        None | Some(Record::None | Record::Null) => &[],
        Some(Record::Array(rows)) => rows,
        Some(single) => std::slice::from_ref(single),
    };
    Ok(rows.iter())
}

/// Returns whether the first of several results has a row.
pub fn has_rows(results: &[Record]) -> Result<bool> {
    Ok(list(results.first())?.next().is_some())
}

/// Returns the first record that has the field `name`, among the results of several statements.
pub fn find_with<'a>(results: &'a [Record], name: &str) -> Option<&'a Record> {
    results.iter().find_map(|result| list(Some(result)).ok()?.find(|record| field(record, name).is_ok()))
}

pub fn text_of(record: &Record) -> Option<Arc<str>> {
    match record {
        Record::String(text) => Some(text.as_str().into()),
        _ => None,
    }
}

pub fn field<'a>(record: &'a Record, name: &str) -> Result<&'a Record> {
    match record {
        Record::Object(object) => {
            object.get(name).ok_or_else(|| Error::corrupt(format!("the field '{name}' is missing")))
        }
        _ => Err(Error::corrupt(format!("expected an object with the field '{name}'"))),
    }
}

pub fn int(record: &Record) -> Result<i64> {
    match record {
        Record::Number(Number::Int(number)) => Ok(*number),
        _ => Err(Error::corrupt("expected an integer")),
    }
}

/// Returns the count in the result of a statement, or 0 if the result is not a number.
pub fn count_in(result: Option<&Record>) -> Result<u64> {
    match result {
        Some(record @ Record::Number(_)) => Ok(int(record)?.max(0) as u64),
        _ => Ok(0),
    }
}

pub fn int_field(record: &Record, name: &str) -> Result<i64> {
    int(field(record, name)?).map_err(|_| Error::corrupt(format!("the field '{name}' is not an integer")))
}

pub fn unsigned_field(record: &Record, name: &str) -> Result<u64> {
    u64::try_from(int_field(record, name)?).map_err(|_| Error::corrupt(format!("the field '{name}' is negative")))
}

pub fn text_field<'a>(record: &'a Record, name: &str) -> Result<&'a str> {
    match field(record, name)? {
        Record::String(text) => Ok(text),
        _ => Err(Error::corrupt(format!("the field '{name}' is not a string"))),
    }
}

pub fn float_field(record: &Record, name: &str) -> Result<f64> {
    match field(record, name)? {
        Record::Number(Number::Float(number)) => Ok(*number),
        Record::Number(Number::Int(number)) => Ok(*number as f64),
        _ => Err(Error::corrupt(format!("the field '{name}' is not a number"))),
    }
}

/// Returns a string field, or `None` if the field is missing or not a string.
pub fn optional_text_field(record: &Record, name: &str) -> Option<Arc<str>> {
    text_field(record, name).ok().map(Arc::from)
}

pub fn optional_int_field(record: &Record, name: &str) -> Option<i64> {
    int_field(record, name).ok()
}

pub fn bool_field(record: &Record, name: &str) -> bool {
    matches!(field(record, name), Ok(Record::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_about_an_unreadable_record_names_the_record() {
        let message = |id: Record| {
            let record = Record::Object(fields([("id", id)]));
            let read = named("edge", &record, || int_field(&record, "weight"));
            read.expect_err("an error").to_string()
        };
        let parts = vec![integer(3), text("a"), text("cites")];
        assert_eq!(
            message(record_id("edge", RecordIdKey::Array(parts.into()))),
            "the edge '3/a/cites' cannot be read: the field 'weight' is missing"
        );
        assert_eq!(message(text("x")), "the edge 'x' cannot be read: the field 'weight' is missing");
        assert_eq!(message(Record::None), "a record (edge) cannot be read: the field 'weight' is missing");
        let inner = named("edge", &Record::None, || named("key", &Record::None, || int(&Record::None)));
        assert_eq!(inner.expect_err("an error").to_string(), "a record (key) cannot be read: expected an integer");
    }
}
