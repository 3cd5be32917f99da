//! Reads front matter in JSON. Values that cannot be converted are kept as text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::entry::{
    Block, Budget, FrontMatterEntry, MAX_DEPTH, Warning, exact_number, kept_as_text, repeated, too_deep,
};

/// Returns the entries of front matter. If the text is not valid JSON, adds a warning and returns `None`.
pub fn read(block: &Block<'_>, warnings: &mut Vec<Warning>) -> Option<Vec<FrontMatterEntry>> {
    // Front matter between two lines `;;;` may omit the braces.
    let is_bare = !block.text.trim_start().starts_with('{');
    let wrapped = is_bare.then(|| format!("{{{}}}", block.text));
    let source = wrapped.as_deref().unwrap_or(block.text);
    let members: ObjectMembers<'_> = match serde_json::from_str(source) {
        Ok(members) => members,
        Err(error) => {
            warnings.push(fault(&error, block.first_line));
            return None;
        }
    };
    let mut budget = Budget::new();
    let mut entries = Vec::new();
    for (name, raw) in members.0 {
        let line = block.first_line + lines_before(source, raw.get());
        let mut found = Vec::new();
        let value = convert(raw, 1, line, &mut budget, &mut found);
        let value = value.inspect(|_| warnings.append(&mut found)).unwrap_or_else(|reason| {
            warnings.push(kept_as_text(&name, Warning { line, reason }));
            raw.get().into()
        });
        entries.push(FrontMatterEntry { name, line, value });
    }
    Some(entries)
}

/// Returns the offset of the end of the JSON object at the beginning of a text.
pub fn end_of_object(text: &str) -> Result<usize, Warning> {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    match objects.next() {
        Some(Ok(_)) => Ok(objects.byte_offset()),
        Some(Err(error)) => Err(fault(&error, 1)),
        None => Err(Warning::new(1, "the front matter stays in the body: the text contains no JSON object")),
    }
}

fn fault(error: &serde_json::Error, first_line: usize) -> Warning {
    let line = first_line + error.line().saturating_sub(1);
    Warning::new(line, format!("the front matter stays in the body: it is not valid JSON: {}", without_place(error)))
}

/// Returns a parser's message without its line and column, which count from the beginning of the parsed part.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// Returns the number of line breaks before a part of a text.
fn lines_before(source: &str, part: &str) -> usize {
    let at = part.as_ptr().addr().saturating_sub(source.as_ptr().addr());
    source.get(..at).map_or(0, |before| before.matches('\n').count())
}

/// Converts a value. Integers outside the range of signed 64-bit integers, and fractions of which a double may lose
/// digits, become text. Fails if the value is too deep or exceeds the budget.
fn convert(
    raw: &RawValue,
    level: usize,
    line: usize,
    budget: &mut Budget,
    warnings: &mut Vec<Warning>,
) -> Result<Value, String> {
    if level > MAX_DEPTH {
        return Err(too_deep());
    }
    let text = raw.get();
    let not_json = |error: serde_json::Error| without_place(&error);
    budget.charge(1, 0)?;
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let members: ObjectMembers<'_> = serde_json::from_str(text).map_err(not_json)?;
            let mut object = Map::new();
            for (name, raw) in members.0 {
                budget.charge(1, name.len())?;
                let value = convert(raw, level + 1, line, budget, warnings)?;
                if object.contains_key(&name) {
                    warnings.push(repeated(&name, line));
                } else {
                    object.insert(name, value);
                }
            }
            Value::Object(object)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
            let items = items.into_iter().map(|item| convert(item, level + 1, line, budget, warnings));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Some(b'-' | b'0'..=b'9') => exact_number(text).map_or_else(|| number(text), Value::Number),
        _ => {
            budget.charge(0, text.len())?;
            serde_json::from_str(text).map_err(not_json)?
        }
    })
}

/// Converts a number whose text would change if the number were written as JSON again, such as `1.50`. An integer
/// becomes text: it is `-0`, or outside the range of signed 64-bit integers. A fraction of which a double may lose
/// digits becomes text as well.
fn number(text: &str) -> Value {
    let is_integer = text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    match serde_json::from_str(text) {
        Ok(number) if !is_integer && !is_rounded(text, &number) => Value::Number(number),
        _ => text.into(),
    }
}

/// Returns whether a double may have lost digits of the number that `text` spells.
fn is_rounded(text: &str, number: &Number) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_matches('0').len();
    significant > f64::DIGITS as usize || (significant > 0 && number.as_f64() == Some(0.0))
}

/// The members of an object, in order and with repeated names.
struct ObjectMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collector).map(ObjectMembers)
    }
}

struct Collector;

impl<'de> Visitor<'de> for Collector {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| members.next_entry().transpose()).collect()
    }
}
