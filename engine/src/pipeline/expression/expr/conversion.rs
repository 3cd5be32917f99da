//! Conversions between types.

use std::sync::Arc;

use strum::{EnumString, FromRepr, IntoStaticStr};

use super::number_text::{double_text, parse_double};
use super::operator::ArgumentForm::{Exactly, Named as ByName, Own};
use super::operator::{ExprOperator, NamedArguments, OperatorArguments, OperatorCall, name_table, positional};
use super::{Answer, Env, Expr, NULL, ParseScope, some};
use crate::model::date::format_date;
use crate::model::decimal::{self, Decimal};
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::json;
use crate::model::number;
use crate::model::value::Value;
use crate::pipeline::value::error::{Error, PipelineErrorCode, Result, err};
use crate::pipeline::value::number::{whole, whole_double, whole_i32};

pub(super) static OPERATORS: &[ExprOperator] = name_table! { ExprOperator::new:
    /// Converts the value to another type.
    "$convert"("input: any, to: string | object, onError?: any, onNull?: any, base?: integer")
        [r#"{"$convert":{"input":"$a","to":"int","onError":0}}"#, r#"{"a":"x"}"#, "0"]:
        ByName(&CONVERT), eval_convert;
    /// Returns whether the value is a number.
    "$isNumber"("expression: any") [r#"{"$isNumber":"$a"}"#, r#"{"a":1.5}"#, "true"]:
        Exactly(1), |call, env| some(call.value(0, env)?.is_number());
    /// Parses a JSON text that contains an array.
    "$toArray"("expression: any") [r#"{"$toArray":"$a"}"#, r#"{"a":"[1,\"x\"]"}"#, r#"[1,"x"]"#]
        .remark("Arrays are returned unchanged. `$toObject` does the same for objects; `$convert` supports both."):
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Array);
    /// Converts the value to a boolean.
    "$toBool"("expression: any") [r#"{"$toBool":"$a"}"#, r#"{"a":0}"#, "false"]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Bool);
    /// Converts the value to a date.
    "$toDate"("expression: any") [r#"{"$toDate":"$a"}"#, r#"{"a":"2024-02-01"}"#, r#""2024-02-01T00:00:00.000Z""#]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Date);
    /// Converts the value to an exact decimal number.
    "$toDecimal"("expression: any") [r#"{"$toDecimal":"$a"}"#, r#"{"a":"12.30"}"#, r#""12.30""#]
        .remark(
            "A decimal has up to 28 digits, is a text in JSON, and compares like a number. A double becomes the \
             decimal with its shortest text; infinities and NaN stay doubles."
        ):
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Decimal);
    /// Converts the value to a double.
    "$toDouble"("expression: any") [r#"{"$toDouble":"$a"}"#, r#"{"a":1}"#, "1.0"]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Double);
    /// Converts the value to a 32-bit integer.
    "$toInt"("expression: any") [r#"{"$toInt":"$a"}"#, r#"{"a":"12"}"#, "12"]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Int);
    /// Converts the value to a 64-bit integer.
    "$toLong"("expression: any") [r#"{"$toLong":"$a"}"#, r#"{"a":1.9}"#, "1"]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Long);
    /// Parses a JSON text that contains an object.
    "$toObject"("expression: any") [r#"{"$toObject":"$a"}"#, r#"{"a":"{\"x\":1}"}"#, r#"{"x":1}"#]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::Object);
    /// Converts the value to an object id, a string of 24 hexadecimal digits.
    "$toObjectId"("expression: any")
        [r#"{"$toObjectId":"$a"}"#, r#"{"a":"5ab9cbfa31c2ab715d42129e"}"#, r#""5ab9cbfa31c2ab715d42129e""#]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::ObjectId);
    /// Converts the value to a string.
    "$toString"("expression: any") [r#"{"$toString":"$a"}"#, r#"{"a":2.5}"#, r#""2.5""#]:
        Own(parse_one), |call, env| convert_one(call, env, ConversionTarget::String);
    /// Returns the name of the value's type.
    "$type"("expression: any") [r#"{"$type":"$a"}"#, r#"{"a":1}"#, r#""int""#]:
        Exactly(1), |call, env| some(call.field(0, env)?.as_ref().map_or("missing", Value::type_name));
};

/// The type to which a conversion converts, with MongoDB's name and number.
#[derive(Debug, Clone, Copy, EnumString, FromRepr, IntoStaticStr)]
#[strum(serialize_all = "camelCase")]
#[repr(i64)]
enum ConversionTarget {
    Double = 1,
    Decimal = 19,
    String = 2,
    Object = 3,
    Array = 4,
    ObjectId = 7,
    Bool = 8,
    Date = 9,
    Int = 16,
    Long = 18,
}

impl ConversionTarget {
    fn name(self) -> &'static str {
        self.into()
    }

    fn parse(value: &Value) -> Result<Option<ConversionTarget>> {
        let named = match value {
            Value::Null => return Ok(None),
            Value::Object(object) => return ConversionTarget::parse(object.get("type").unwrap_or(&Value::Bool(false))),
            Value::String(name) => name.parse().ok(),
            number if number.is_number() => match whole(number) {
                Some(number) => ConversionTarget::from_repr(number),
                None => return err!(9, "In $convert, numeric 'to' argument is not an integer"),
            },
            other => {
                return err!(9, "$convert's 'to' argument must be a string or number, but is {}", other.type_name());
            }
        };
        named.map(Some).ok_or_else(|| Error::new(2, format!("Unknown type name: {}", excerpt(value).trim_matches('"'))))
    }
}

static CONVERT: NamedArguments = NamedArguments {
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

fn parse_one(spec: &Value, scope: &ParseScope) -> Result<OperatorArguments> {
    let values = positional(spec, scope)?;
    match values.len() {
        1 => Ok(values.into()),
        given => err!(50723, "Conversions take a single argument, {given} were passed in."),
    }
}

fn convert_one(call: &OperatorCall, env: &Env, target: ConversionTarget) -> Answer {
    match call.value(0, env)? {
        Value::Null => NULL,
        value => convert(&value, target, env).map(Some),
    }
}

fn eval_convert(call: &OperatorCall, env: &Env) -> Answer {
    let target = ConversionTarget::parse(&call.value(1, env)?)?;
    let value = call.value(0, env)?;
    if value.is_null() {
        return if call.has_argument(3) { call.field(3, env) } else { NULL };
    }
    let Some(target) = target else { return NULL };
    let converted = match parse_base(&call.value(5, env)?)? {
        Some(base) => convert_in_base(&value, target, base, env),
        None => convert(&value, target, env),
    };
    match converted {
        Err(Error { code: PipelineErrorCode::Number(241), .. }) if call.has_argument(2) => call.field(2, env),
        result => result.map(Some),
    }
}

/// Parses the `base` argument of `$convert`: 2, 8, 10 or 16. Returns `None` for null.
fn parse_base(value: &Value) -> Result<Option<u32>> {
    match whole_i32(value) {
        _ if value.is_null() => Ok(None),
        None => Err(Error::new(3_501_300, "In $convert, 'base' argument is not an integer")),
        Some(base @ (2 | 8 | 10 | 16)) => Ok(Some(base.unsigned_abs())),
        Some(_) => Err(Error::new(3_501_301, "In $convert, 'base' argument is not a valid base")),
    }
}

/// Converts a value. In a conversion between a string and a number, the string contains the number in base `base`. All
/// other conversions ignore `base`.
fn convert_in_base(value: &Value, target: ConversionTarget, base: u32, env: &Env) -> Result<Value> {
    use ConversionTarget::{Decimal, Double, Int, Long};
    match (value, target) {
        (Value::String(text), Int | Long | Double | Decimal) => {
            let Ok(number) = i64::from_str_radix(text, base) else {
                let message = format!("Failed to parse number '{}'", excerpt_of(text));
                return Err(failure_of(message, format!("expected a 64-bit integer in base {base}")));
            };
            convert(&Value::Int(number), target, env)
        }
        (number, ConversionTarget::String) if number.is_number() => {
            let Some(number) = whole(number) else {
                return Err(failure("Base conversion is only supported for 64-bit integers".to_owned()));
            };
            Ok(digits(number, base).into())
        }
        _ => convert(value, target, env),
    }
}

/// Returns an integer as text in the given base.
fn digits(number: i64, base: u32) -> String {
    let (sign, magnitude) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    match base {
        2 => format!("{sign}{magnitude:b}"),
        8 => format!("{sign}{magnitude:o}"),
        16 => format!("{sign}{magnitude:X}"),
        _ => number.to_string(),
    }
}

fn failure(message: String) -> Error {
    Error::new(241, format!("{message} in $convert with no onError value"))
}

/// Returns the error of [`failure`] with the reason at the end of the message.
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

/// Returns the error for a text that cannot be converted to a number. If the text contains a number, the reason is
/// `limit`.
fn unparsable_or(text: &str, limit: &str) -> Error {
    match text.parse::<f64>() {
        Ok(_) => failure_of(format!("Failed to parse number '{}'", excerpt_of(text)), limit),
        Err(_) => unparsable(text),
    }
}

fn convert(value: &Value, target: ConversionTarget, env: &Env) -> Result<Value> {
    let unsupported = || {
        let found = value.type_name();
        failure(format!("Unsupported conversion from {found} to {}", target.name()))
    };
    let range = || failure_of("Conversion would overflow target type".to_owned(), excerpt(value));
    Ok(match (value, target) {
        (value, ConversionTarget::Bool) => Value::Bool(Expr::truthy(Some(value))),
        (Value::Array(_), ConversionTarget::Array) | (Value::Object(_), ConversionTarget::Object) => value.clone(),
        (Value::Array(_) | Value::Object(_), _) => return Err(unsupported()),
        (Value::String(text), ConversionTarget::Array | ConversionTarget::Object) => from_json(text, target, env)?,
        (_, ConversionTarget::Array | ConversionTarget::Object) => return Err(unsupported()),
        (Value::String(_), ConversionTarget::String) => value.clone(),
        (value, ConversionTarget::String) => {
            let text = to_text(value)?;
            env.query.charge(text.len())?;
            text.into()
        }
        (Value::String(text), ConversionTarget::ObjectId)
            if text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            value.clone()
        }
        (Value::String(text), ConversionTarget::ObjectId) => {
            let reason = match text.len() {
                24 => "Invalid character found in hex string".to_owned(),
                length => format!("Invalid string length for parsing to OID, expected 24 but found {length}"),
            };
            return Err(failure_of(format!("Failed to parse objectId '{}'", excerpt_of(text)), reason));
        }
        (_, ConversionTarget::ObjectId) => return Err(unsupported()),
        (Value::String(text), ConversionTarget::Double) => {
            let error = || unparsable_or(text, "the number is outside the range of a double");
            Value::Double(parse_double(text).ok_or_else(error)?)
        }
        (Value::Bool(flag), ConversionTarget::Double) => Value::Double(f64::from(u8::from(*flag))),
        (Value::Date(ms), ConversionTarget::Double) => Value::Double(*ms as f64),
        (value, ConversionTarget::Double) => Value::Double(value.as_f64().unwrap_or(f64::NAN)),
        (value, ConversionTarget::Decimal) => to_decimal(value).ok_or_else(|| match value {
            Value::String(text) => unparsable_or(text, "the number exceeds the range or the 28 digits of a decimal"),
            _ => range(),
        })?,
        (Value::String(text), ConversionTarget::Date) => super::date::text::parse(text, None).map(Value::Date)?,
        (Value::Date(_), ConversionTarget::Date) => value.clone(),
        (Value::Double(number), ConversionTarget::Date) => Value::Date(whole_double(number.trunc()).ok_or_else(range)?),
        (Value::Decimal(number), ConversionTarget::Date) => {
            Value::Date(decimal::whole(number.trunc()).ok_or_else(range)?)
        }
        (Value::Int(number), ConversionTarget::Date) if value.type_name() == "long" => Value::Date(*number),
        (_, ConversionTarget::Date) => return Err(unsupported()),
        (Value::Date(_), ConversionTarget::Int) => return Err(unsupported()),
        (Value::String(text), ConversionTarget::Int) => {
            Value::Int(text.parse::<i32>().map_err(|_| unparsable(text))?.into())
        }
        (Value::String(text), ConversionTarget::Long) => Value::Int(text.parse().map_err(|_| unparsable(text))?),
        (value, ConversionTarget::Int) => {
            let number = to_long(value).ok_or_else(range)?;
            Value::Int(i32::try_from(number).map_err(|_| range())?.into())
        }
        (value, ConversionTarget::Long) => Value::Int(to_long(value).ok_or_else(range)?),
    })
}

/// Parses a JSON text that contains an array or an object, as `target` requires.
fn from_json(text: &str, target: ConversionTarget, env: &Env) -> Result<Value> {
    // Each of these characters precedes at most one value, so the number of characters limits the number of values
    // inside the outermost value.
    let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    env.query.tick_bytes(text.len())?;
    env.query.charge(text.len().saturating_add(values.saturating_mul(size_of::<(Arc<str>, Value)>())))?;
    let what = || format!("Failed to parse the JSON text '{}'", excerpt_of(text));
    match (json::parse(text.as_bytes()), target) {
        (Ok(parsed @ Value::Array(_)), ConversionTarget::Array)
        | (Ok(parsed @ Value::Object(_)), ConversionTarget::Object) => Ok(parsed),
        (Ok(other), _) => {
            let reason = format!("the text contains a value of type {}, expected {}", other.type_name(), target.name());
            Err(failure_of(what(), reason))
        }
        (Err(error), _) => Err(failure_of(what(), error)),
    }
}

/// Converts a value to a decimal, or to a double if the value denotes an infinity or NaN. Returns `None` if neither
/// conversion is possible.
fn to_decimal(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Bool(flag) => Value::Decimal(Decimal::from(i64::from(*flag))),
        Value::Date(ms) => Value::Decimal(Decimal::from(*ms)),
        Value::String(text) => match (decimal::of_number(text), parse_double(text)) {
            (Some(number), _) => Value::Decimal(number),
            (None, Some(number)) if !number.is_finite() => Value::Double(number),
            (None, _) => return None,
        },
        Value::Double(number) if !number.is_finite() => value.clone(),
        number => Value::Decimal(number::to_decimal(number)?),
    })
}

fn to_long(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::Int(number) | Value::Date(number) => Some(*number),
        Value::Double(number) => whole_double(number.trunc()),
        Value::Decimal(number) => decimal::whole(number.trunc()),
        _ => None,
    }
}

/// Returns a scalar as text. Null becomes the empty string.
pub(super) fn to_text(value: &Value) -> Result<Arc<str>> {
    Ok(match value {
        Value::Null => "".into(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Int(number) => number.to_string().into(),
        Value::Double(number) => double_text(*number).into(),
        Value::Decimal(number) => number.to_string().into(),
        Value::Date(ms) => format_date(*ms).into(),
        Value::Array(_) | Value::Object(_) => {
            return err!(16007, "can't convert from BSON type {} to String", value.type_name());
        }
    })
}
