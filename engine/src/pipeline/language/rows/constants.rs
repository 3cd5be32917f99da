//! Converts the constants that a stage compares with dates, decimals and ids of projects, and warns about constants that
//! equal no value.
//!
//! A client writes a date or a decimal as a string, and may write the slug of a project for its id. Only the types of the
//! compared fields show what a string represents. The conversion changes the specification of a stage before the stage is parsed, so
//! every way of execution sees the same constants.

use std::sync::Arc;

use super::{Kind, Rows};
use crate::model::date::parse_date;
use crate::model::decimal;
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::error::Result;

/// The expressions that compare their two arguments.
const COMPARISONS: [&str; 7] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp"];
/// The accumulators of numbers, which ignore strings.
const OF_NUMBERS: [&str; 4] = ["$sum", "$avg", "$stdDevPop", "$stdDevSamp"];
/// The accumulators that accept values of every type.
const OF_VALUES: [&str; 6] = ["$min", "$max", "$first", "$last", "$push", "$addToSet"];

/// A value after the conversion, or `None` if the conversion does not change the value.
type Converted = Result<Option<Value>>;

/// Converts the constants in the specification of a stage. A `$match` is converted by [`filter`].
pub fn of_stage(name: &str, spec: &Value, rows: &Rows, query: &Context) -> Converted {
    match (name, spec) {
        (
            "$project" | "$set" | "$addFields" | "$replaceRoot" | "$replaceWith" | "$sortByCount" | "$bucketAuto"
            | "$setWindowFields" | "$fill",
            _,
        ) => expression(spec, rows, query),
        ("$group", Value::Object(group)) => {
            if let Some(Value::String(text)) = group.get("_id") {
                warn_of_field("the key of $group", text, rows, query);
            }
            expression(spec, rows, query)
        }
        ("$bucket", Value::Object(bucket)) => {
            let path = bucket.get("groupBy").and_then(path);
            fields(bucket, |name, value| match (name, value, path) {
                ("boundaries", Value::Array(items), Some(path)) => {
                    each(items, |item| constant(path, item, rows, query))
                }
                ("default", _, _) => Ok(None),
                _ => expression(value, rows, query),
            })
        }
        ("$lookup", Value::Object(lookup)) => fields(lookup, |name, value| match name {
            "let" => expression(value, rows, query),
            _ => Ok(None),
        }),
        _ => Ok(None),
    }
}

/// Converts the constants of a filter.
pub fn filter(spec: &Value, rows: &Rows, query: &Context) -> Converted {
    below(spec, "", rows, query)
}

/// Converts the constants of a filter over the objects at a path; the empty path denotes the whole row.
fn below(spec: &Value, above: &str, rows: &Rows, query: &Context) -> Converted {
    let Value::Object(object) = spec else { return Ok(None) };
    fields(object, |name, value| {
        query.tick()?;
        match (name, value) {
            ("$and" | "$or" | "$nor", Value::Array(filters)) => {
                each(filters, |filter| below(filter, above, rows, query))
            }
            ("$expr", _) => expression(value, rows, query),
            _ if name.starts_with('$') => Ok(None),
            _ if above.is_empty() => of_field(name, value, rows, query),
            _ => of_field(&format!("{above}.{name}"), value, rows, query),
        }
    })
}

/// Converts the condition of one field: a value, or an object of operators.
fn of_field(path: &str, condition: &Value, rows: &Rows, query: &Context) -> Converted {
    let operators = match condition {
        Value::Object(object) if object.keys().next().is_some_and(|name| name.starts_with('$')) => object,
        _ => return compared(path, condition, rows, query),
    };
    fields(operators, |name, value| match (name, value) {
        ("$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte", _) => compared(path, value, rows, query),
        ("$in" | "$nin" | "$all", Value::Array(items)) => each(items, |item| match item {
            Value::Object(_) => of_field(path, item, rows, query),
            _ => compared(path, item, rows, query),
        }),
        ("$not", Value::Object(_)) => of_field(path, value, rows, query),
        ("$elemMatch", Value::Object(inner)) => match inner.keys().next().map(|name| &**name) {
            Some("$and" | "$or" | "$nor") => below(value, path, rows, query),
            Some(name) if name.starts_with('$') => of_field(path, value, rows, query),
            _ => below(value, path, rows, query),
        },
        ("$regex", Value::String(_)) => {
            if matches!(rows.kind(path, query), Kind::Date) {
                let path = excerpt_of(path);
                query.warn(format!("'{path}' is a date, which no pattern matches: compare it with $gte and $lt"));
            }
            Ok(None)
        }
        _ => Ok(None),
    })
}

/// Converts a constant that a filter compares with the values at a path, and warns if it is of another type.
fn compared(path: &str, value: &Value, rows: &Rows, query: &Context) -> Converted {
    if value.is_number() && matches!(rows.kind(path, query), Kind::Date) {
        let (path, number) = (excerpt_of(path), excerpt(value));
        query.warn(format!("'{path}' is a date, which no number equals: write {{\"$date\": {number}}}"));
    }
    match value {
        // Objects and arrays are compared as a whole, and so are the dates and decimals in them.
        Value::Object(object) => fields(object, |name, inner| {
            query.tick_many(1 + path.len() / 64)?;
            match name.starts_with('$') {
                true => Ok(None),
                false => compared(&format!("{path}.{name}"), inner, rows, query),
            }
        }),
        Value::Array(items) => each(items, |item| compared(path, item, rows, query)),
        _ => constant(path, value, rows, query),
    }
}

/// Converts a string or a number that is compared with the values at a path.
fn constant(path: &str, value: &Value, rows: &Rows, query: &Context) -> Converted {
    if !matches!(value, Value::String(_) | Value::Double(_)) {
        return Ok(None);
    }
    query.tick()?;
    let shown = || (excerpt_of(path), excerpt(value));
    let warning = match (rows.kind(path, query), value) {
        (Kind::Date, Value::String(text)) => match parse_date(text) {
            Some(ms) => return Ok(Some(Value::Date(ms))),
            None => {
                let (path, text) = shown();
                format!(
                    "'{path}' is a date, and {text} is none: dates are RFC 3339 texts such as \
                     \"2026-12-01T00:00:00Z\" or \"2026-12-01\""
                )
            }
        },
        (Kind::Project, Value::String(text)) => {
            let id = query.projects.and_then(|id_of| id_of(text));
            return Ok(id.map(Value::String));
        }
        (Kind::Decimal, _) => match decimal::decimal_of(value, None) {
            Some(number) => return Ok(Some(Value::Decimal(number))),
            None if value.is_number() => return Ok(None),
            None => {
                let (path, text) = shown();
                format!("'{path}' is a decimal, and {text} is none: decimals are texts such as \"12.30\", or numbers")
            }
        },
        (Kind::Mixed | Kind::Any, Value::String(text)) if parse_date(text).is_some() => {
            let (path, text) = shown();
            format!(
                "'{path}' may be a date here, and {text} is compared as a text: write {{\"$date\": {text}}} to compare \
                 dates"
            )
        }
        (Kind::Mixed, Value::String(text)) if decimal::parse(text).is_some() => {
            let (path, text) = shown();
            format!(
                "'{path}' may be a decimal here, and {text} is compared as a text: write {{\"$numberDecimal\": {text}}} \
                 to compare numbers"
            )
        }
        _ => return Ok(None),
    };
    query.warn(warning);
    Ok(None)
}

/// Converts the constants in an expression, and in an object or array of expressions.
fn expression(spec: &Value, rows: &Rows, query: &Context) -> Converted {
    match spec {
        Value::Array(items) => each(items, |item| expression(item, rows, query)),
        Value::Object(object) => {
            query.tick()?;
            fields(object, |name, argument| call(name, argument, rows, query))
        }
        _ => Ok(None),
    }
}

/// Converts the arguments of an operator, or the value of a field.
fn call(name: &str, argument: &Value, rows: &Rows, query: &Context) -> Converted {
    match argument {
        _ if name == "$literal" => Ok(None),
        // A `$let` that binds `CURRENT` makes plain paths begin at another value than the row.
        _ if name == "$let" && argument.get("vars").and_then(|vars| vars.get("CURRENT")).is_some() => Ok(None),
        Value::Array(pair) if COMPARISONS.contains(&name) && pair.len() == 2 => {
            let side = |own: &Value, other: &Value| match path(other) {
                Some(path) if is_constant(own) => constant(path, own, rows, query),
                _ => expression(own, rows, query),
            };
            replaced(pair, vec![side(&pair[0], &pair[1])?, side(&pair[1], &pair[0])?])
        }
        Value::Array(pair) if name == "$in" && pair.len() == 2 => match (path(&pair[0]), &pair[1]) {
            (Some(path), Value::Array(items)) => {
                let items = each(items, |item| match is_constant(item) {
                    true => constant(path, item, rows, query),
                    false => expression(item, rows, query),
                })?;
                replaced(pair, vec![None, items])
            }
            (None, list) if is_constant(&pair[0]) => match path(list) {
                Some(path) => replaced(pair, vec![constant(path, &pair[0], rows, query)?, None]),
                None => expression(argument, rows, query),
            },
            _ => expression(argument, rows, query),
        },
        Value::String(text) => {
            if OF_NUMBERS.contains(&name) && !text.starts_with('$') {
                let (shown, path) = (excerpt_of(text), rows.path_of(text, query));
                let path = path.map_or_else(|| shown.clone(), excerpt_of);
                query.warn(format!(
                    "{name} reads the text \"{shown}\", which is no number: write \"${path}\" for a field"
                ));
            } else if OF_VALUES.contains(&name) {
                warn_of_field(name, text, rows, query);
            }
            Ok(None)
        }
        _ => expression(argument, rows, query),
    }
}

/// Warns about a constant string that equals the name of a field.
fn warn_of_field(what: &str, text: &Arc<str>, rows: &Rows, query: &Context) {
    if let Some(path) = (!text.starts_with('$')).then(|| rows.path_of(text, query)).flatten() {
        let (text, path) = (excerpt_of(text), excerpt_of(path));
        query.warn(format!("{what} is the text \"{text}\": write \"${path}\" for the field"));
    }
}

/// Returns the path if an expression reads exactly one path of the row.
fn path(spec: &Value) -> Option<&str> {
    spec.as_str()?.strip_prefix('$').filter(|path| !path.starts_with('$') && !path.is_empty())
}

/// Returns whether an expression is a number, or a string that is not a path.
fn is_constant(spec: &Value) -> bool {
    spec.is_number() || spec.as_str().is_some_and(|text| !text.starts_with('$'))
}

/// Converts the values of an object.
fn fields(object: &Object, mut convert: impl FnMut(&str, &Value) -> Converted) -> Converted {
    let converted: Vec<Option<Value>> =
        object.iter().map(|(name, value)| convert(name, value)).collect::<Result<_>>()?;
    if converted.iter().all(Option::is_none) {
        return Ok(None);
    }
    let values = object.iter().zip(converted);
    let object: Object =
        values.map(|((name, value), converted)| (name.clone(), converted.unwrap_or_else(|| value.clone()))).collect();
    Ok(Some(object.into()))
}

/// Converts the items of an array.
fn each(items: &[Value], convert: impl FnMut(&Value) -> Converted) -> Converted {
    let converted = items.iter().map(convert).collect::<Result<_>>()?;
    replaced(items, converted)
}

fn replaced(items: &[Value], converted: Vec<Option<Value>>) -> Converted {
    if converted.iter().all(Option::is_none) {
        return Ok(None);
    }
    let items = items.iter().zip(converted);
    Ok(Some(items.map(|(item, converted)| converted.unwrap_or_else(|| item.clone())).collect::<Vec<_>>().into()))
}
