//! The type names in `$type` and `bsonType`, and the type numbers in `$type`.

use crate::model::decimal;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::whole_double;

/// MongoDB's type names with their numbers.
const TYPES: [(&str, i64); 21] = [
    ("double", 1),
    ("string", 2),
    ("object", 3),
    ("array", 4),
    ("binData", 5),
    ("undefined", 6),
    ("objectId", 7),
    ("bool", 8),
    ("date", 9),
    ("null", 10),
    ("regex", 11),
    ("dbPointer", 12),
    ("javascript", 13),
    ("symbol", 14),
    ("javascriptWithScope", 15),
    ("int", 16),
    ("timestamp", 17),
    ("long", 18),
    ("decimal", 19),
    ("minKey", -1),
    ("maxKey", 127),
];

/// A set of types. The name `number` denotes all types of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeSet {
    names: Vec<&'static str>,
    any_number: bool,
}

impl TypeSet {
    /// Parses the types denoted by a name, a number, or an array of both.
    pub fn parse(spec: &Value) -> Result<TypeSet> {
        let mut types = TypeSet::default();
        match spec {
            Value::Array(items) if items.is_empty() => {
                return Err(Error::new(9, "$type must match at least one type"));
            }
            Value::Array(items) => items.iter().try_for_each(|item| types.add(item))?,
            one => types.add(one)?,
        }
        Ok(types)
    }

    fn add(&mut self, spec: &Value) -> Result<()> {
        match spec {
            Value::String(name) => self.add_name(name),
            Value::Int(code) => self.add_code(*code),
            Value::Double(code) => match whole_double(*code) {
                Some(code) => self.add_code(code),
                None => err!(2, "Invalid numerical type code: {code}"),
            },
            Value::Decimal(code) => match decimal::whole(*code) {
                Some(code) => self.add_code(code),
                None => err!(2, "Invalid numerical type code: {code}"),
            },
            Value::Null | Value::Bool(_) | Value::Date(_) | Value::Array(_) | Value::Object(_) => {
                Err(Error::new(14, "type must be represented as a number or a string"))
            }
        }
    }

    /// Adds a type by its MongoDB name.
    pub fn add_name(&mut self, name: &str) -> Result<()> {
        if name == "number" {
            self.any_number = true;
            return Ok(());
        }
        let (known, _) = TYPES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let error = Error::new(2, format!("Unknown type name alias: {name}"));
            error.suggesting(name, TYPES.iter().map(|(known, _)| *known))
        })?;
        // A client may repeat a type any number of times, so the set stores each type once.
        if !self.names.contains(known) {
            self.names.push(known);
        }
        Ok(())
    }

    fn add_code(&mut self, code: i64) -> Result<()> {
        if code == 0 {
            return Err(Error::new(2, "Invalid numerical type code: 0. Instead use {$exists:false}."));
        }
        let (known, _) = TYPES
            .iter()
            .find(|(_, known)| *known == code)
            .ok_or_else(|| Error::new(2, format!("Invalid numerical type code: {code}")))?;
        // A client may repeat a type any number of times, so the set stores each type once.
        if !self.names.contains(known) {
            self.names.push(known);
        }
        Ok(())
    }

    pub fn contains(&self, value: &Value) -> bool {
        (self.any_number && value.is_number()) || self.names.contains(&value.type_name())
    }
}
