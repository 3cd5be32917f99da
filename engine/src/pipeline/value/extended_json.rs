//! Reads MongoDB's Extended JSON, which represents types that plain JSON does not have.
//!
//! A pipeline may contain such values wherever a value is allowed, in canonical or relaxed form.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>

use std::borrow::Cow;
use std::fmt::Write;

use super::error::{Error, Result};
use crate::model::date::parse_date;
use crate::model::decimal::of_number;
use crate::model::value::{Object, Value};

/// The field name of a regular expression. A pattern is not a value, so the operators that accept patterns read the
/// object themselves.
pub const REGEX: &str = "$regularExpression";

/// The field names that mark a typed value, each with a description of the allowed content.
const TYPES: [(&str, &str); 7] = [
    ("$date", "an RFC 3339 date, or milliseconds since 1970 as an integer or as {\"$numberLong\": string}"),
    ("$numberDecimal", "a string that holds a number of at most 28 digits, Infinity, -Infinity or NaN"),
    ("$numberDouble", "a string that holds a number, Infinity, -Infinity or NaN"),
    ("$numberInt", "a string that holds a 32-bit integer"),
    ("$numberLong", "a string that holds a 64-bit integer"),
    ("$oid", "a string of 24 hexadecimal digits"),
    (REGEX, "an object with exactly the strings 'pattern' and 'options'"),
];

/// Replaces all typed values in a pipeline. The error for a malformed value names the location of the value and the
/// allowed content.
pub fn read(pipeline: &Value) -> Result<Cow<'_, Value>> {
    Ok(inside(pipeline, &Location { outer: None, step: PathStep::Item(0) })?
        .map_or(Cow::Borrowed(pipeline), Cow::Owned))
}

/// Returns the pattern and the options of a `$regularExpression`.
pub fn regex(value: &Value) -> Option<(&str, &str)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let parts = object.get(REGEX)?.as_object().filter(|parts| parts.len() == 2)?;
    Some((parts.get("pattern")?.as_str()?, parts.get("options")?.as_str()?))
}

/// The location of a value within the pipeline.
struct Location<'p> {
    outer: Option<&'p Location<'p>>,
    step: PathStep<'p>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Field(&'p str),
    Item(usize),
}

impl<'p> Location<'p> {
    fn at(&'p self, step: PathStep<'p>) -> Location<'p> {
        Location { outer: Some(self), step }
    }

    fn refuse(&self, name: &str, allowed: &str) -> Error {
        let mut steps = Vec::new();
        let mut location = self;
        while let Some(outer) = location.outer {
            steps.push(location.step);
            location = outer;
        }
        let mut path = String::new();
        for step in steps.iter().rev() {
            // Writing to a string cannot fail.
            let _ = match step {
                PathStep::Field(name) => write!(path, "/{}", name.replace('~', "~0").replace('/', "~1")),
                PathStep::Item(index) => write!(path, "/{index}"),
            };
        }
        let mut error = Error::new(9, format!("malformed Extended JSON at {path}: {name} must be {allowed}"));
        // The innermost step is the first one.
        for step in &steps {
            error = match step {
                PathStep::Field(name) => error.within(*name),
                PathStep::Item(index) => error.within(index.to_string()),
            };
        }
        match steps.last() {
            Some(PathStep::Item(stage)) => error.at_stage(*stage),
            _ => error,
        }
    }
}

/// Returns the value with all typed values inside it replaced, or `None` if there are no typed values to replace.
fn inside(value: &Value, location: &Location) -> Result<Option<Value>> {
    match value {
        Value::Object(object) => match typed(object, location)? {
            Some(typed) => Ok(typed),
            None => {
                let field = |(name, field)| inside(field, &location.at(PathStep::Field(name)));
                let read: Vec<Option<Value>> =
                    object.iter().map(|(name, value)| field((name, value))).collect::<Result<_>>()?;
                Ok(read.iter().any(Option::is_some).then(|| {
                    let mut fields = Object::with_capacity(object.len());
                    for ((name, value), read) in object.iter().zip(read) {
                        fields.push(name.clone(), read.unwrap_or_else(|| value.clone()));
                    }
                    fields.into()
                }))
            }
        },
        Value::Array(items) => {
            let item = |(index, item)| inside(item, &location.at(PathStep::Item(index)));
            let read: Vec<Option<Value>> = items.iter().enumerate().map(item).collect::<Result<_>>()?;
            Ok(read.iter().any(Option::is_some).then(|| {
                let read = items.iter().zip(read).map(|(item, read)| read.unwrap_or_else(|| item.clone()));
                read.collect::<Vec<_>>().into()
            }))
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::String(_) => Ok(None),
    }
}

/// Returns the typed value that an object represents. Returns `None` for an ordinary object, and `Some(None)` for a
/// typed value that needs no replacement.
fn typed(object: &Object, location: &Location) -> Result<Option<Option<Value>>> {
    let known = object.iter().find_map(|(name, value)| {
        let (name, allowed) = TYPES.iter().find(|(known, _)| *known == &**name)?;
        Some((*name, *allowed, value))
    });
    let Some((name, allowed, value)) = known else { return Ok(None) };
    if object.len() != 1 {
        return Err(location.refuse(name, &format!("{allowed}, and the only field of its object")));
    }
    let text = value.as_str();
    let read = match name {
        "$date" => date(value).map(Value::Date),
        "$numberDouble" => text.and_then(double).map(Value::Double),
        "$numberDecimal" => text.and_then(decimal),
        "$numberInt" => text.and_then(|text| text.parse::<i32>().ok()).map(|number| Value::Int(number.into())),
        "$numberLong" => text.and_then(|text| text.parse().ok()).map(Value::Int),
        "$oid" => text
            .filter(|text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .map(|_| value.clone()),
        _ => {
            let whole = Value::from(object.clone());
            return match regex(&whole) {
                Some(_) => Ok(Some(None)),
                None => Err(location.refuse(name, allowed)),
            };
        }
    };
    read.map(|read| Some(Some(read))).ok_or_else(|| location.refuse(name, allowed))
}

fn date(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => parse_date(text),
        Value::Int(ms) => Some(*ms),
        Value::Object(number) if number.len() == 1 => number.get("$numberLong")?.as_str()?.parse().ok(),
        _ => None,
    }
}

/// Parses a decimal. Returns infinities and NaN as doubles.
fn decimal(text: &str) -> Option<Value> {
    match text {
        "Infinity" | "-Infinity" | "NaN" => double(text).map(Value::Double),
        _ => of_number(text).map(Value::Decimal),
    }
}

fn double(text: &str) -> Option<f64> {
    match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if text.contains(|char: char| char.is_ascii_alphabetic() && !matches!(char, 'e' | 'E')) => None,
        _ => text.parse::<f64>().ok().filter(|number| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    fn found(text: &str) -> Result<String> {
        read(&json::parse(text.as_bytes()).expect("JSON")).map(|value| format!("{value:?}"))
    }

    #[test]
    fn extended_json_values_are_parsed_at_any_depth() {
        for (text, expected) in [
            (r#"[{"a":{"$numberLong":"-9223372036854775808"}}]"#, r#"[{"a": Int(-9223372036854775808)}]"#),
            (r#"[{"a":[{"$numberInt":"7"},{"$numberDouble":"1e3"}]}]"#, r#"[{"a": [Int(7), Double(1000.0)]}]"#),
            (r#"[{"$numberDouble":"-Infinity"},{"$numberDouble":"NaN"}]"#, "[Double(-inf), Double(NaN)]"),
            (r#"[{"$numberDecimal":"2.50"}]"#, "[Decimal(2.50)]"),
            (
                r#"[{"$date":{"$numberLong":"5"}},{"$date":6},{"$date":"1970-01-01T00:00:00.007Z"}]"#,
                "[Date(5), Date(6), Date(7)]",
            ),
            (r#"[{"$oid":"5ab9cbfa31c2ab715d42129e"}]"#, r#"[String("5ab9cbfa31c2ab715d42129e")]"#),
        ] {
            let found = found(text).expect("read").replace("Object(", "").replace("Array(", "").replace("})", "}");
            assert_eq!(found.replace("])", "]"), expected, "{text}");
        }
        let plain =
            json::parse(br#"[{"$match":{"a":{"$regularExpression":{"pattern":"x","options":"i"}}}}]"#).expect("JSON");
        assert!(matches!(read(&plain), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn malformed_values_are_rejected_with_their_path() {
        for (text, location, allowed) in [
            (r#"[{},{"$match":{"a":{"$numberInt":"2147483648"}}}]"#, "/1/$match/a", "32-bit"),
            (r#"[{"$match":{"a/b":[1,{"$numberLong":5}]}}]"#, "/0/$match/a~1b/1", "64-bit"),
            (r#"[{"a":{"$numberDouble":"inf"}}]"#, "/0/a", "Infinity"),
            (r#"[{"a":{"$numberDouble":"1e999"}}]"#, "/0/a", "Infinity"),
            (r#"[{"a":{"$oid":"5ab9"}}]"#, "/0/a", "24 hexadecimal"),
            (r#"[{"a":{"$date":"yesterday"}}]"#, "/0/a", "RFC 3339"),
            (r#"[{"a":{"$regularExpression":{"pattern":"x"}}}]"#, "/0/a", "'pattern' and 'options'"),
            (r#"[{"a":{"$numberInt":"1","b":2}}]"#, "/0/a", "the only field"),
        ] {
            let error = found(text).expect_err(text);
            assert!(error.message.contains(&format!(" at {location}: ")) && error.message.contains(allowed), "{error}");
            assert_eq!(error.stage, location[1..2].parse().ok(), "{text}");
        }
    }
}
