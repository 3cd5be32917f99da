//! Reads MongoDB's Extended JSON, which represents types that plain JSON does not have.
//!
//! A pipeline may contain the typed values in `TYPES` wherever a value is allowed, in canonical or relaxed form.
//! Regular expressions are allowed only where an operator accepts a pattern. Other types of Extended JSON are not
//! supported.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>

use std::borrow::Cow;
use std::fmt::Write;
use std::str::FromStr;

use super::context::Context;
use super::conversion;
use super::error::{Error, Result};
use crate::model::date::parse_date;
use crate::model::decimal::{Decimal, of_number};
use crate::model::excerpt::excerpt_of;
use crate::model::value::{Object, Value};

/// The name of the field that marks a regular expression. [`read`] does not replace regular expressions, because a
/// pattern is not a value. The operators that accept patterns call [`regex`] instead.
pub const REGEX: &str = "$regularExpression";

/// The field names that mark a typed value, each with a description of the allowed content.
const TYPES: [(&str, &str); 7] = [
    ("$date", "an RFC 3339 date, or milliseconds since 1970 as an integer or as {\"$numberLong\": string}"),
    ("$numberDecimal", "a string that contains a number, Infinity, -Infinity or NaN"),
    ("$numberDouble", "a string that contains a number in the range of doubles, Infinity, -Infinity or NaN"),
    ("$numberInt", "a string that contains a 32-bit integer"),
    ("$numberLong", "a string that contains a 64-bit integer"),
    ("$oid", "a string of 24 hexadecimal digits"),
    (REGEX, "an object with exactly the fields 'pattern' and 'options', both of which are strings"),
];

/// Replaces all typed values in a pipeline, except regular expressions. The error for a malformed value names the
/// location of the value and the allowed content. Warns about decimals that cannot be represented exactly.
pub fn read<'p>(pipeline: &'p Value, query: &Context) -> Result<Cow<'p, Value>> {
    let root = Location { outer: None, step: PathStep::Item(0), query };
    Ok(inside(pipeline, &root)?.map_or(Cow::Borrowed(pipeline), Cow::Owned))
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
    query: &'p Context<'p>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Field(&'p str),
    Item(usize),
}

impl<'p> Location<'p> {
    fn at(&'p self, step: PathStep<'p>) -> Location<'p> {
        Location { outer: Some(self), step, query: self.query }
    }

    /// Returns the steps from the pipeline to the location. The innermost step is the first one.
    fn steps(&self) -> Vec<PathStep<'p>> {
        let mut steps = Vec::new();
        let mut location = self;
        while let Some(outer) = location.outer {
            steps.push(location.step);
            location = outer;
        }
        steps
    }

    /// Returns the location as a JSON Pointer.
    fn pointer(&self) -> String {
        let mut path = String::new();
        for step in self.steps().iter().rev() {
            // Writing to a string cannot fail.
            let _ = match step {
                PathStep::Field(name) => write!(path, "/{}", name.replace('~', "~0").replace('/', "~1")),
                PathStep::Item(index) => write!(path, "/{index}"),
            };
        }
        path
    }

    fn refuse(&self, name: &str, allowed: &str) -> Error {
        let path = self.pointer();
        let mut error = Error::new(9, format!("malformed Extended JSON at {path}: {name} must be {allowed}"));
        let steps = self.steps();
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
                let fields = object.iter();
                let read = fields.map(|(name, field)| inside(field, &location.at(PathStep::Field(name))));
                Ok(conversion::fields(object, read.collect::<Result<_>>()?))
            }
        },
        Value::Array(items) => {
            let item = |(index, item)| inside(item, &location.at(PathStep::Item(index)));
            Ok(conversion::items(items, items.iter().enumerate().map(item).collect::<Result<_>>()?))
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
        "$numberDecimal" => text.map(|text| decimal(text, location)).transpose()?.flatten(),
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

/// Parses a decimal. Returns infinities and NaN as doubles. Warns about a number that no decimal represents exactly.
/// Such a number is rounded to a decimal. The number is returned as the nearest double instead if it is written with an
/// exponent, exceeds the range of decimals, or would lose more digits by rounding than the double loses. Returns `None`
/// if the text is not a number.
fn decimal(text: &str, location: &Location) -> Result<Option<Value>> {
    /// The least mantissa of a decimal with 16 digits.
    const SIXTEEN_DIGITS: u128 = 1_000_000_000_000_000;
    if matches!(text, "Infinity" | "-Infinity" | "NaN") {
        return Ok(double(text).map(Value::Double));
    }
    if let Some(exact) = of_number(text) {
        return Ok(Some(Value::Decimal(exact)));
    }
    let Some(nearest) = number(text) else { return Ok(None) };
    let rounded = Decimal::from_str(text).ok().filter(|rounded| rounded.mantissa().unsigned_abs() >= SIXTEEN_DIGITS);
    let path = location.pointer();
    location.query.tick_bytes(path.len() + text.len())?;
    let found = if rounded.is_some() { "rounded".to_owned() } else { format!("read as the double {nearest:?}") };
    let (path, shown) = (excerpt_of(path), excerpt_of(text));
    location.query.warn(format!(
        "the $numberDecimal '{shown}' at {path} exceeds the range or the 28 digits of a decimal; the number is {found}"
    ));
    Ok(Some(rounded.map_or(Value::Double(nearest), Value::Decimal)))
}

fn double(text: &str) -> Option<f64> {
    match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => number(text).filter(|number| number.is_finite()),
    }
}

/// Parses a number that is written in digits. Returns an infinity for a number beyond the range of doubles, and `None`
/// for words such as `NaN`.
fn number(text: &str) -> Option<f64> {
    let is_word = text.contains(|char: char| char.is_ascii_alphabetic() && !matches!(char, 'e' | 'E'));
    if is_word { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;

    /// Returns the value that is read from a text, and the warnings.
    fn read_text(text: &str) -> Result<(String, Vec<String>)> {
        let query = Context::new(0, 0, &|| 0, 1, 1 << 20);
        let pipeline = json::parse(text.as_bytes()).expect("JSON");
        let value = format!("{:?}", read(&pipeline, &query)?);
        Ok((value, query.take_warnings()))
    }

    fn found(text: &str) -> Result<String> {
        read_text(text).map(|(value, _)| value)
    }

    #[test]
    fn decimals_beyond_the_supported_range_or_precision_cause_a_warning() {
        for (text, value, warned) in [
            ("1.000000000000000000000000000000001", "Decimal(1.0000000000000000000000000000)", "is rounded"),
            ("1E-34", "Double(1e-34)", "is read as the double 1e-34"),
            ("-9.9E+6144", "Double(-inf)", "is read as the double -inf"),
            ("79228162514264337593543950336", "Double(7.922816251426434e28)", "is read as the double"),
            ("0.00000000000000000000000000000123", "Double(1.23e-30)", "is read as the double"),
        ] {
            let (found, warnings) =
                read_text(&format!(r#"[{{"a":{{"$numberDecimal":"{text}"}}}}]"#)).expect("a number");
            assert!(found.contains(value), "{found}");
            assert!(matches!(&*warnings, [warning] if warning.contains(" at /0/a ") && warning.contains(warned)));
        }
        assert!(found(r#"[{"a":{"$numberDecimal":"1.2.3"}}]"#).is_err());
    }

    #[test]
    fn extended_json_values_are_parsed_at_any_depth_except_regular_expressions() {
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
            let found = found(text).expect("a value").replace("Object(", "").replace("Array(", "").replace("})", "}");
            assert_eq!(found.replace("])", "]"), expected, "{text}");
        }
        let plain =
            json::parse(br#"[{"$match":{"a":{"$regularExpression":{"pattern":"x","options":"i"}}}}]"#).expect("JSON");
        let query = Context::new(0, 0, &|| 0, 1, 1 << 20);
        assert!(matches!(read(&plain, &query), Ok(Cow::Borrowed(_))));
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
