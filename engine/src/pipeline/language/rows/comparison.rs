//! Converts one constant that is compared with values of a known kind, and warns about a constant that equals none of
//! these values.

use super::constants::Converted;
use super::{FieldSource, ValueKind};
use crate::model::date::parse_date;
use crate::model::decimal;
use crate::model::definition::FieldType;
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::Value;
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Error;
use crate::pipeline::value::hint;
use crate::pipeline::value::known_types::ConstantMismatch;

/// MongoDB's error number for a string that is not a date.
const NO_DATE: i32 = 241;
/// The maximum number of a field's allowed values that a warning lists.
const MAX_LISTED: usize = 8;

/// The values with which a constant is compared.
#[derive(Clone, Copy)]
pub struct ComparisonTarget<'v> {
    pub kind: &'v ValueKind,
    /// The path or the expression of the values, for messages.
    pub name: &'v str,
    /// Whether the operator compares values by their order, as `$lt` does. The constant of such an operator need not be
    /// an allowed value of the field.
    pub is_order: bool,
}

impl ComparisonTarget<'_> {
    /// Converts a constant to the type of the values. Warns in most cases in which none of the values can equal the
    /// constant. One of the exceptions is a Boolean that is compared with decimals. For the kinds `Mixed` and `Any`,
    /// also warns about a string that looks like a date. For `Mixed`, also warns about a string that looks like a
    /// decimal. Fails if the values are dates and the constant is a string that is not a date.
    pub fn convert(self, constant: &Value, query: &Context) -> Converted {
        query.tick()?;
        let name = excerpt_of(self.name);
        let warning = match (self.kind, constant) {
            (ValueKind::Date, Value::String(text)) => {
                return parse_date(text).map(|ms| Some(Value::Date(ms))).ok_or_else(|| no_date(&name, constant));
            }
            (ValueKind::Date, number) if number.is_number() => {
                let number = excerpt(number);
                format!("'{name}' is a date and never equals a number: write {{\"$date\": {number}}}")
            }
            (ValueKind::Date, Value::Bool(_)) => of_another_type(&name, FieldType::Date, constant),
            (ValueKind::Project, Value::String(text)) => {
                let id = query.projects.and_then(|id_of| id_of(text));
                return Ok(id.map(Value::String));
            }
            (ValueKind::Decimal, Value::String(_) | Value::Double(_)) => match decimal::decimal_of(constant, None) {
                Some(number) => return Ok(Some(Value::Decimal(number))),
                None if constant.is_number() => return Ok(None),
                None => format!(
                    "'{name}' is a decimal, and {} is not: decimals are texts such as \"12.30\", or numbers",
                    excerpt(constant)
                ),
            },
            (ValueKind::Mixed | ValueKind::Any, Value::String(text)) if parse_date(text).is_some() => {
                let text = excerpt(constant);
                format!(
                    "'{name}' may be a date here, and {text} is compared as a text: write {{\"$date\": {text}}} to \
                     compare dates"
                )
            }
            (ValueKind::Mixed, Value::String(text)) if decimal::parse(text).is_some() => {
                let text = excerpt(constant);
                format!(
                    "'{name}' may be a decimal here, and {text} is compared as a text: write {{\"$numberDecimal\": \
                     {text}}} to compare numbers"
                )
            }
            (ValueKind::Number, Value::String(_) | Value::Bool(_)) => {
                of_another_type(&name, FieldType::Number, constant)
            }
            (ValueKind::Field(source), Value::String(_) | Value::Bool(_)) => {
                return self.refused(source, constant, query);
            }
            (ValueKind::Field(source), number) if number.is_number() => return self.refused(source, constant, query),
            _ => return Ok(None),
        };
        query.warn(warning);
        Ok(None)
    }

    /// Warns if the type of the field excludes the constant. Also warns if the allowed values of the field exclude the
    /// constant, unless the comparison is by order.
    fn refused(self, source: &FieldSource, constant: &Value, query: &Context) -> Converted {
        let FieldSource { types, path, form } = source;
        let name = excerpt_of(self.name);
        match query.types.as_ref().and_then(|known| known.refusal(types, path, constant, *form)) {
            Some(ConstantMismatch::Type(field_type)) => query.warn(of_another_type(&name, field_type, constant)),
            Some(ConstantMismatch::Values(allowed)) if !self.is_order => {
                query.warn(not_among(&name, allowed, constant))
            }
            _ => {}
        }
        Ok(None)
    }
}

fn no_date(name: &str, constant: &Value) -> Error {
    let text = excerpt(constant);
    Error::new(NO_DATE, format!("'{name}' is a date, and {text} is not"))
        .with_hint("dates are RFC 3339 strings such as \"2026-12-01T00:00:00Z\" or \"2026-12-01\"")
}

/// Returns the warning about a constant that is compared with values of another type. `name` names the values, and
/// `field_type` is the type of the values.
fn of_another_type(name: &str, field_type: FieldType, constant: &Value) -> String {
    let text = constant.as_str().unwrap_or_default();
    let suggestion = match field_type {
        FieldType::Number | FieldType::Integer if text.parse::<f64>().is_ok_and(f64::is_finite) => {
            Some(text.to_owned())
        }
        FieldType::Boolean if matches!(text, "true" | "false") => Some(text.to_owned()),
        FieldType::String if constant.is_number() => Some(format!("\"{}\"", excerpt(constant))),
        _ => None,
    };
    let hint = suggestion.map(|suggestion| format!(": write {}", excerpt_of(suggestion))).unwrap_or_default();
    let kind = match field_type {
        FieldType::String => "a text",
        FieldType::Number => "a number",
        FieldType::Integer => "an integer",
        FieldType::Decimal => "a decimal",
        FieldType::Boolean => "true or false",
        FieldType::Date => "a date",
        FieldType::Object => "an object",
        FieldType::Array => "an array",
        FieldType::Reference => "the id of an aggregate",
    };
    format!("'{name}' is {kind} and never equals {}{hint}", excerpt(constant))
}

/// Returns the warning about a constant that is not among the values that a type allows.
fn not_among(name: &str, allowed: &[Value], constant: &Value) -> String {
    let listed: Vec<String> = allowed.iter().take(MAX_LISTED).map(excerpt).collect();
    let others = if allowed.len() > MAX_LISTED { ", …" } else { "" };
    let nearest = hint::nearest(constant.as_str().unwrap_or_default(), allowed.iter().filter_map(Value::as_str));
    let hint = nearest.map(|nearest| format!("; did you mean \"{}\"?", excerpt_of(nearest))).unwrap_or_default();
    format!("'{name}' is never {}, only {}{others}{hint}", excerpt(constant), listed.join(", "))
}
