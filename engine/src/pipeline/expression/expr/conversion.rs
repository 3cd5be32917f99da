//! Conversions between types.

use super::operator::Form::{Exactly, Named as ByName, Own};
use super::operator::{Arguments, Call, Named, Operator, positional};
use super::{Answer, Env, NULL, Scope, some};
use crate::model::date::format_date;
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::Value;
use crate::pipeline::value::error::{Code, Error, Result};
use crate::pipeline::value::number::whole_double;

/// Returns the table entry of an operator that converts one argument.
const fn row(
    name: &'static str,
    summary: &'static str,
    eval: fn(&Call, &Env) -> Answer,
    example: [&'static str; 3],
) -> Operator {
    Operator::new(name, "expression: any", summary, Own(parse_one), eval, example)
}

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new(
        "$convert",
        "input: any, to: string | object, onError?: any, onNull?: any",
        "Converts the value to another type.",
        ByName(&CONVERT),
        eval_convert,
        [r#"{"$convert":{"input":"$a","to":"int","onError":0}}"#, r#"{"a":"x"}"#, "0"],
    ),
    Operator::new(
        "$isNumber",
        "expression: any",
        "Returns whether the value is a number.",
        Exactly(1),
        |call, env| some(call.value(0, env)?.is_number()),
        [r#"{"$isNumber":"$a"}"#, r#"{"a":1.5}"#, "true"],
    ),
    row(
        "$toBool",
        "Converts the value to a boolean.",
        |call, env| convert_one(call, env, Target::Bool),
        [r#"{"$toBool":"$a"}"#, r#"{"a":0}"#, "false"],
    ),
    row(
        "$toDate",
        "Converts the value to a date.",
        |call, env| convert_one(call, env, Target::Date),
        [r#"{"$toDate":"$a"}"#, r#"{"a":"2024-02-01"}"#, r#""2024-02-01T00:00:00.000Z""#],
    ),
    row(
        "$toDecimal",
        "Converts the value to a double, the widest type of number.",
        |call, env| convert_one(call, env, Target::Double),
        [r#"{"$toDecimal":"$a"}"#, r#"{"a":"1.5"}"#, "1.5"],
    )
    .remark("Returns a double, because JSON has no decimal type."),
    row(
        "$toDouble",
        "Converts the value to a double.",
        |call, env| convert_one(call, env, Target::Double),
        [r#"{"$toDouble":"$a"}"#, r#"{"a":1}"#, "1.0"],
    ),
    row(
        "$toInt",
        "Converts the value to a 32-bit integer.",
        |call, env| convert_one(call, env, Target::Int),
        [r#"{"$toInt":"$a"}"#, r#"{"a":"12"}"#, "12"],
    ),
    row(
        "$toLong",
        "Converts the value to a 64-bit integer.",
        |call, env| convert_one(call, env, Target::Long),
        [r#"{"$toLong":"$a"}"#, r#"{"a":1.9}"#, "1"],
    ),
    row(
        "$toObjectId",
        "Converts the value to an object id, a string of 24 hexadecimal digits.",
        |call, env| convert_one(call, env, Target::ObjectId),
        [r#"{"$toObjectId":"$a"}"#, r#"{"a":"5ab9cbfa31c2ab715d42129e"}"#, r#""5ab9cbfa31c2ab715d42129e""#],
    ),
    row(
        "$toString",
        "Converts the value to a string.",
        |call, env| convert_one(call, env, Target::String),
        [r#"{"$toString":"$a"}"#, r#"{"a":2.5}"#, r#""2.5""#],
    ),
    Operator::new(
        "$type",
        "expression: any",
        "Returns the name of the value's type.",
        Exactly(1),
        |call, env| some(call.field(0, env)?.as_ref().map_or("missing", Value::type_name)),
        [r#"{"$type":"$a"}"#, r#"{"a":1}"#, r#""int""#],
    ),
];

#[derive(Debug, Clone, Copy)]
enum Target {
    Double,
    String,
    Object,
    Array,
    ObjectId,
    Bool,
    Date,
    Int,
    Long,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Double => "double",
            Target::String => "string",
            Target::Object => "object",
            Target::Array => "array",
            Target::ObjectId => "objectId",
            Target::Bool => "bool",
            Target::Date => "date",
            Target::Int => "int",
            Target::Long => "long",
        }
    }

    fn parse(value: &Value) -> Result<Option<Target>> {
        let named = match value {
            Value::Null => return Ok(None),
            Value::Object(object) => return Target::parse(object.get("type").unwrap_or(&Value::Bool(false))),
            Value::String(name) => match &**name {
                "double" | "decimal" => Some(Target::Double),
                "string" => Some(Target::String),
                "object" => Some(Target::Object),
                "array" => Some(Target::Array),
                "objectId" => Some(Target::ObjectId),
                "bool" => Some(Target::Bool),
                "date" => Some(Target::Date),
                "int" => Some(Target::Int),
                "long" => Some(Target::Long),
                _ => None,
            },
            number if number.is_number() => match crate::pipeline::value::number::whole(number) {
                Some(1 | 19) => Some(Target::Double),
                Some(2) => Some(Target::String),
                Some(3) => Some(Target::Object),
                Some(4) => Some(Target::Array),
                Some(7) => Some(Target::ObjectId),
                Some(8) => Some(Target::Bool),
                Some(9) => Some(Target::Date),
                Some(16) => Some(Target::Int),
                Some(18) => Some(Target::Long),
                Some(_) => None,
                None => {
                    let message = "In $convert, numeric 'to' argument is not an integer";
                    return Err(Error::new(9, message));
                }
            },
            other => {
                let found = other.type_name();
                let message = format!("$convert's 'to' argument must be a string or number, but is {found}");
                return Err(Error::new(9, message));
            }
        };
        named.map(Some).ok_or_else(|| Error::new(2, format!("Unknown type name: {}", excerpt(value).trim_matches('"'))))
    }
}

static CONVERT: Named = Named {
    not_object: 9,
    unknown: 9,
    fields: &[
        ("input", Some(9)),
        ("to", Some(9)),
        ("onError", None),
        ("onNull", None),
        ("format", None),
        ("base", None),
        ("byteOrder", None),
    ],
};

fn parse_one(spec: &Value, scope: &Scope) -> Result<Arguments> {
    let values = positional(spec, scope)?;
    match values.len() {
        1 => Ok(values.into()),
        given => Err(Error::new(50723, format!("Conversions take a single argument, {given} were passed in."))),
    }
}

fn convert_one(call: &Call, env: &Env, target: Target) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        value => convert(&value, target).map(Some),
    }
}

fn eval_convert(call: &Call, env: &Env) -> Answer {
    let target = Target::parse(&call.value(1, env)?)?;
    let value = call.value(0, env)?;
    if value.is_null() {
        return if call.has_argument(3) { call.field(3, env) } else { NULL };
    }
    let Some(target) = target else { return NULL };
    match convert(&value, target) {
        Err(Error { code: Code::Number(241), .. }) if call.has_argument(2) => call.field(2, env),
        result => result.map(Some),
    }
}

fn failure(message: String) -> Error {
    Error::new(241, format!("{message} in $convert with no onError value"))
}

/// Returns the error of [`failure`], followed by the reason.
fn failure_of(message: String, reason: impl std::fmt::Display) -> Error {
    Error::new(241, format!("{message} in $convert with no onError value: {reason}"))
}

fn unparsable(text: &str) -> Error {
    let reason = match text.chars().next() {
        None => "No digits",
        Some(first) if first.is_whitespace() => "Leading whitespace",
        Some(_) => {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { "Overflow" } else { "Did not consume whole string." }
        }
    };
    failure_of(format!("Failed to parse number '{}'", excerpt_of(text)), reason)
}

fn convert(value: &Value, target: Target) -> Result<Value> {
    let unsupported = || {
        let found = value.type_name();
        failure(format!("Unsupported conversion from {found} to {}", target.name()))
    };
    let range = || failure_of("Conversion would overflow target type".to_owned(), excerpt(value));
    Ok(match (value, target) {
        (value, Target::Bool) => Value::Bool(match value {
            Value::Bool(flag) => *flag,
            Value::Int(number) => *number != 0,
            Value::Double(number) => *number != 0.0,
            _ => true,
        }),
        (Value::Array(_), Target::Array) | (Value::Object(_), Target::Object) => value.clone(),
        (Value::Array(_) | Value::Object(_), _) => return Err(unsupported()),
        (_, Target::Array | Target::Object) => return Err(unsupported()),
        (Value::String(_), Target::String) => value.clone(),
        (value, Target::String) => to_text(value)?.into(),
        (Value::String(text), Target::ObjectId)
            if text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            value.clone()
        }
        (Value::String(text), Target::ObjectId) => {
            let reason = match text.len() {
                24 => "Invalid character found in hex string".to_owned(),
                length => format!("Invalid string length for parsing to OID, expected 24 but found {length}"),
            };
            return Err(failure_of(format!("Failed to parse objectId '{}'", excerpt_of(text)), reason));
        }
        (_, Target::ObjectId) => return Err(unsupported()),
        (Value::String(text), Target::Double) => Value::Double(parse_double(text).ok_or_else(|| unparsable(text))?),
        (Value::Bool(flag), Target::Double) => Value::Double(f64::from(u8::from(*flag))),
        (Value::Date(ms), Target::Double) => Value::Double(*ms as f64),
        (value, Target::Double) => Value::Double(value.as_f64().unwrap_or(f64::NAN)),
        (Value::String(text), Target::Date) => super::date_text::parse(text, None).map(Value::Date)?,
        (Value::Date(_), Target::Date) => value.clone(),
        (Value::Double(number), Target::Date) => Value::Date(whole_double(number.trunc()).ok_or_else(range)?),
        (Value::Int(number), Target::Date) if value.type_name() == "long" => Value::Date(*number),
        (_, Target::Date) => return Err(unsupported()),
        (Value::Date(_), Target::Int) => return Err(unsupported()),
        (Value::String(text), Target::Int) => Value::Int(text.parse::<i32>().map_err(|_| unparsable(text))?.into()),
        (Value::String(text), Target::Long) => Value::Int(text.parse().map_err(|_| unparsable(text))?),
        (value, Target::Int) => {
            let number = to_long(value).ok_or_else(range)?;
            Value::Int(i32::try_from(number).map_err(|_| range())?.into())
        }
        (value, Target::Long) => Value::Int(to_long(value).ok_or_else(range)?),
    })
}

fn to_long(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::Int(number) | Value::Date(number) => Some(*number),
        Value::Double(number) => whole_double(number.trunc()),
        _ => None,
    }
}

/// Parses a decimal number, or a hexadecimal number with the prefix `0x`.
fn parse_double(text: &str) -> Option<f64> {
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (-1.0, magnitude),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let Some(hex) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) else {
        return parse_decimal(text);
    };
    let (digits, exponent) = match hex.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (hex, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(sign * number * 2_f64.powi(exponent.saturating_sub(4 * i32::try_from(fraction.len()).ok()?)))
}

/// Parses a decimal number. Rejects numbers that a double cannot hold.
fn parse_decimal(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let has_digits = text.contains(|char: char| char.is_ascii_digit());
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_zero = !mantissa.contains(|char: char| ('1'..='9').contains(&char));
    let is_beyond = has_digits && (number.is_infinite() || (number == 0.0 && !is_zero));
    (!is_beyond).then_some(number)
}

/// Returns a scalar as text. Null becomes the empty string.
pub(super) fn to_text(value: &Value) -> Result<std::sync::Arc<str>> {
    Ok(match value {
        Value::Null => "".into(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Int(number) => number.to_string().into(),
        Value::Double(number) => double_text(*number).into(),
        Value::Date(ms) => format_date(*ms).into(),
        Value::Array(_) | Value::Object(_) => {
            let found = value.type_name();
            return Err(Error::new(16007, format!("can't convert from BSON type {found} to String")));
        }
    })
}

fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    // The format is that of C's `%g`, with all the digits that the number needs.
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    if exponent.parse().is_ok_and(|exponent: i32| (-4..16).contains(&exponent)) {
        return number.to_string();
    }
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}
