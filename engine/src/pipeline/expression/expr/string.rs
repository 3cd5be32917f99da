//! String operators.

use std::sync::Arc;

use super::array::bound;
use super::conversion::to_text;
use super::operator::ArgumentForm::{AnyNumber, Between, Exactly, Named as ByName};
use super::operator::{ExprOperator, NamedArguments, OperatorCall, name_table};
use super::{Answer, Env, NULL, some};
use crate::model::excerpt::excerpt;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, Result, err};
use crate::pipeline::value::number::{whole, whole_i32};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Concatenates the strings.
    "$concat"("string...") [r#"{"$concat":["$a","-b"]}"#, r#"{"a":"a"}"#, r#""a-b""#]:
        AnyNumber, concat;
    /// Returns the byte index of the first occurrence of `part`, or -1.
    "$indexOfBytes"("string, part: string, start?: integer, end?: integer")
        [r#"{"$indexOfBytes":["é-b","b"]}"#, "{}", "3"]: Between(2, 4), index_of_bytes;
    /// Returns the code point index of the first occurrence of `part`, or -1.
    "$indexOfCP"("string, part: string, start?: integer, end?: integer") [r#"{"$indexOfCP":["é-b","b"]}"#, "{}", "2"]:
        Between(2, 4), index_of_cp;
    /// Replaces every occurrence of a substring.
    "$replaceAll"("input: string, find: string, replacement: string")
        [r#"{"$replaceAll":{"input":"a-b-c","find":"-","replacement":"+"}}"#, "{}", r#""a+b+c""#]:
        ByName(&REPLACE), |call, env| replace(call, env, usize::MAX);
    /// Replaces the first occurrence of a substring.
    "$replaceOne"("input: string, find: string, replacement: string")
        [r#"{"$replaceOne":{"input":"a-b-c","find":"-","replacement":"+"}}"#, "{}", r#""a+b-c""#]:
        ByName(&REPLACE), |call, env| replace(call, env, 1);
    /// Splits the string at a delimiter.
    "$split"("string, delimiter: string") [r#"{"$split":["$a",","]}"#, r#"{"a":"x,y"}"#, r#"["x","y"]"#]:
        Exactly(2), split;
    /// Returns the length of the string in bytes of UTF-8.
    "$strLenBytes"("string") [r#"{"$strLenBytes":"é"}"#, "{}", "2"]:
        Exactly(1), |call, env| length(call, env, 34473, str::len);
    /// Returns the length of the string in code points.
    "$strLenCP"("string") [r#"{"$strLenCP":"é"}"#, "{}", "1"]:
        Exactly(1), |call, env| length(call, env, 34471, |text| text.chars().count());
    /// Returns -1, 0 or 1 if the left string is less than, equal to or greater than the right, ignoring ASCII case.
    "$strcasecmp"("left: string, right: string") [r#"{"$strcasecmp":["Ab","aB"]}"#, "{}", "0"]:
        Exactly(2), compare_ignoring_case;
    /// Returns a substring by its position in bytes, as `$substrBytes` does.
    "$substr"("string, start: integer, length: integer") [r#"{"$substr":["abc",1,1]}"#, "{}", r#""b""#]:
        Exactly(3), substr_bytes;
    /// Returns a substring by its position in bytes; a negative length extends to the end.
    "$substrBytes"("string, start: integer, length: integer") [r#"{"$substrBytes":["abc",1,-1]}"#, "{}", r#""bc""#]:
        Exactly(3), substr_bytes;
    /// Returns a substring by its position in code points.
    "$substrCP"("string, start: integer, length: integer") [r#"{"$substrCP":["éab",1,1]}"#, "{}", r#""a""#]:
        Exactly(3), substr_cp;
    /// Converts the ASCII letters of the string to lower case.
    "$toLower"("expression: any") [r#"{"$toLower":"AB"}"#, "{}", r#""ab""#]:
        Exactly(1), |call, env| change_case(call, env, str::to_ascii_lowercase);
    /// Converts the ASCII letters of the string to upper case.
    "$toUpper"("expression: any") [r#"{"$toUpper":"ab"}"#, "{}", r#""AB""#]:
        Exactly(1), |call, env| change_case(call, env, str::to_ascii_uppercase);
};

/// Returns a string, number or date as text. Null becomes the empty string. Rejects values of all other types.
fn coerce(value: &Value) -> Result<Arc<str>> {
    match value {
        Value::Bool(_) => Err(Error::new(16007, "can't convert from BSON type bool to String")),
        value => to_text(value),
    }
}

fn concat(call: &OperatorCall, env: &Env) -> Answer {
    let mut text = String::new();
    for index in 0..call.len() {
        match call.value(index, env)? {
            Value::Null => return NULL,
            Value::String(part) => {
                env.query.charge(part.len())?;
                text.push_str(&part);
            }
            other => return err!(16702, "$concat only supports strings, not {}", other.type_name()),
        }
    }
    some(text)
}

/// The string, the substring to find, and the start and the end of the search. The unit of start and end depends on the
/// operator.
type Search = (Arc<str>, Arc<str>, usize, usize);

fn search(call: &OperatorCall, env: &Env) -> Result<Option<Search>> {
    let name = call.name();
    let complaint = format_args!("{name} requires a string as the first argument, found:");
    let Some(text) = call.text(0, 40091, complaint, env)? else { return Ok(None) };
    let part = match call.value(1, env)? {
        Value::String(part) => part,
        other => return err!(40092, "{name} requires a string as the second argument, found: {}", other.type_name()),
    };
    let start = bound(call, 2, "starting", 40096, whole, env)?.unwrap_or(0);
    let end = bound(call, 3, "ending", 40096, whole, env)?.unwrap_or(usize::MAX);
    Ok(Some((text, part, start, end)))
}

fn index_of_bytes(call: &OperatorCall, env: &Env) -> Answer {
    let Some((text, part, start, end)) = search(call, env)? else { return NULL };
    // A match begins and ends at character boundaries, even if the bounds lie inside characters.
    let from = text.ceil_char_boundary(start);
    let to = text.floor_char_boundary(end);
    let window = if start <= text.len() { text.get(from..to) } else { None };
    let found = window.and_then(|window| window.find(&*part));
    some(found.map_or(-1, |place| (from + place) as i64))
}

fn index_of_cp(call: &OperatorCall, env: &Env) -> Answer {
    let Some((text, part, start, end)) = search(call, env)? else { return NULL };
    let len = text.chars().count();
    if start > len || start > end {
        return some(-1);
    }
    let from = byte_of(&text, start);
    let window = &text[from..byte_of(&text, end.min(len))];
    some(window.find(&*part).map_or(-1, |place| (start + window[..place].chars().count()) as i64))
}

/// Returns the byte offset of a code point, or the length of the string if there are fewer code points.
fn byte_of(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(byte, _)| byte)
}

static REPLACE: NamedArguments = NamedArguments {
    not_object: 51751,
    unknown: 51750,
    fields: &[("input", Some(51749)), ("find", Some(51748)), ("replacement", Some(51747))],
};

fn replace(call: &OperatorCall, env: &Env, times: usize) -> Answer {
    let values = [call.value(0, env)?, call.value(1, env)?, call.value(2, env)?];
    for ((value, argument), code) in values.iter().zip(["input", "find", "replacement"]).zip([51746, 51745, 51744]) {
        if !matches!(value, Value::String(_) | Value::Null) {
            let (name, found) = (call.name(), value.type_name());
            let message =
                format!("{name} requires that '{argument}' be a string, found: {} of type {found}", excerpt(value));
            return Err(Error::new(code, message));
        }
    }
    let [Value::String(input), Value::String(find), Value::String(replacement)] = &values else { return NULL };
    let found = input.matches(&**find).take(times).count();
    env.query.charge(input.len().saturating_add(found.saturating_mul(replacement.len())))?;
    some(input.replacen(&**find, replacement, times))
}

fn split(call: &OperatorCall, env: &Env) -> Answer {
    call.of_pair(env, |text, delimiter| {
        let (text, delimiter) = (split_text(text, "first", 40085)?, split_text(delimiter, "second", 40086)?);
        if delimiter.is_empty() {
            return Err(Error::new(40087, "$split requires a non-empty separator"));
        }
        let parts = text.matches(delimiter).count() + 1;
        env.query.charge(text.len() + parts * 40)?;
        some(text.split(delimiter).map(Value::from).collect::<Vec<_>>())
    })
}

fn split_text<'v>(value: &'v Value, which: &str, code: i32) -> Result<&'v str> {
    value.as_str().ok_or_else(|| {
        let needed = format!("an expression that evaluates to a string as a {which} argument");
        Error::new(code, format!("$split requires {needed}, found: {}", value.type_name()))
    })
}

fn length(call: &OperatorCall, env: &Env, code: i32, count: fn(&str) -> usize) -> Answer {
    match call.field(0, env)? {
        Some(Value::String(text)) => some(count(&text) as i64),
        other => {
            let (name, found) = (call.name(), other.as_ref().map_or("missing", Value::type_name));
            err!(code, "{name} requires a string argument, found: {found}")
        }
    }
}

fn compare_ignoring_case(call: &OperatorCall, env: &Env) -> Answer {
    let left = coerce(&call.value(0, env)?)?.to_ascii_uppercase();
    let right = coerce(&call.value(1, env)?)?.to_ascii_uppercase();
    some(left.cmp(&right) as i64)
}

fn substr_bytes(call: &OperatorCall, env: &Env) -> Answer {
    let text = coerce(&call.value(0, env)?)?;
    let (start, length) = (call.value(1, env)?, call.value(2, env)?);
    let name = call.name();
    let Some(start) = start.as_f64() else {
        return err!(16034, "{name}:  starting index must be a numeric type (is BSON type {})", start.type_name());
    };
    let Some(length) = length.as_f64() else {
        return err!(16035, "{name}:  length must be a numeric type (is BSON type {})", length.type_name());
    };
    if start <= -1.0 {
        return err!(50752, "{name}:  starting index must be non-negative (got: {start})");
    }
    let start = start as usize;
    if start >= text.len() {
        return some("");
    }
    let end = if length < 0.0 { text.len() } else { text.len().min(start.saturating_add(length as usize)) };
    if !text.is_char_boundary(start) {
        return err!(28656, "{name}:  Invalid range, starting index is a UTF-8 continuation byte.");
    }
    if !text.is_char_boundary(end) {
        return err!(28657, "{name}:  Invalid range, ending index is in the middle of a UTF-8 character.");
    }
    env.query.charge(end - start)?;
    some(&text[start..end])
}

fn substr_cp(call: &OperatorCall, env: &Env) -> Answer {
    let text = coerce(&call.value(0, env)?)?;
    let start = code_points(&call.value(1, env)?, "starting index", [34450, 34451, 34455])?;
    let length = code_points(&call.value(2, env)?, "length", [34452, 34453, 34454])?;
    env.query.charge(text.len().min(length.saturating_mul(4)))?;
    some(text.chars().skip(start).take(length).collect::<String>())
}

/// Parses an argument of `$substrCP`. `codes` contains the error codes for a value that is not a number, a number that
/// is not a 32-bit integer, and a negative number, in this order.
fn code_points(value: &Value, what: &str, codes: [i32; 3]) -> Result<usize> {
    if !value.is_number() {
        return err!(codes[0], "$substrCP: {what} must be a numeric type (is BSON type {})", value.type_name());
    }
    let Some(number) = whole_i32(value) else {
        return err!(
            codes[1],
            "$substrCP: {what} cannot be represented as a 32-bit integral value: {}",
            excerpt(value)
        );
    };
    usize::try_from(number)
        .map_err(|_| Error::new(codes[2], format!("$substrCP: {what} must be a nonnegative integer.")))
}

fn change_case(call: &OperatorCall, env: &Env, change: fn(&str) -> String) -> Answer {
    let text = coerce(&call.value(0, env)?)?;
    env.query.charge(text.len())?;
    some(change(&text))
}
