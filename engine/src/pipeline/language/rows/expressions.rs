//! Converts the constants that expressions compare with values of a known kind: the values of a path, of a variable, or
//! of an operator.

use super::comparison::ComparisonTarget;
use super::constants::{ConstantPlace, Converted, each, fields};
use super::{ValueKind, one_of};
use crate::model::date::parse_date;
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::{Object, Value};
use crate::pipeline::expression::expr::OF_DATES;
use crate::pipeline::value::conversion;
use crate::pipeline::value::error::{Error, Result};

/// The operators that compare two arguments.
const COMPARISONS: [&str; 7] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp"];
/// The operators that compare the items of arrays.
const OF_SETS: [&str; 4] = ["$setDifference", "$setEquals", "$setIntersection", "$setIsSubset"];
/// Accumulators of numbers, which ignore strings.
const OF_NUMBERS: [&str; 4] = ["$sum", "$avg", "$stdDevPop", "$stdDevSamp"];
/// Accumulators that accept values of every type.
const OF_VALUES: [&str; 6] = ["$min", "$max", "$first", "$last", "$push", "$addToSet"];
/// The arguments of `$dateDiff` that are dates.
const DIFFERENCE: [&str; 2] = ["startDate", "endDate"];

/// Converts the constants in an expression, and in an object or array of expressions.
pub fn expression(spec: &Value, place: ConstantPlace) -> Converted {
    match spec {
        Value::Array(items) => each(items, |item| expression(item, place)),
        Value::Object(object) => {
            place.query.tick()?;
            fields(object, |name, argument| call(name, argument, place))
        }
        _ => Ok(None),
    }
}

/// Converts the arguments of an operator, or the value of a field.
fn call(name: &str, argument: &Value, place: ConstantPlace) -> Converted {
    match (name, argument) {
        ("$literal", _) => Ok(None),
        ("$let", Value::Object(object)) => with_variables(object, place),
        ("$filter" | "$map" | "$reduce", Value::Object(object)) => over_items(name, object, place),
        ("$dateDiff", Value::Object(object)) => difference(object, place),
        ("$in", Value::Array(pair)) if pair.len() == 2 => membership(pair, place),
        ("$indexOfArray", Value::Array(items)) if items.len() >= 2 => compared(items, name, place),
        ("$min" | "$max", Value::Array(items)) => compared(items, name, place),
        (_, Value::Array(items)) if COMPARISONS.contains(&name) && items.len() == 2 => compared(items, name, place),
        (_, Value::Array(items)) if OF_SETS.contains(&name) => sets(items, place),
        (_, Value::String(text)) => {
            warn_of_text(name, text, place);
            Ok(None)
        }
        _ => expression(argument, place),
    }
}

/// Converts the constants among values that are compared with each other.
fn compared(items: &[Value], operator: &str, place: ConstantPlace) -> Converted {
    let kinds: Vec<Option<ValueKind>> = items.iter().map(|item| kind_of(item, place)).collect::<Result<_>>()?;
    let others = |own: usize| kinds.iter().enumerate().filter(move |(other, _)| *other != own);
    let mut converted = Vec::with_capacity(items.len());
    for (own, item) in items.iter().enumerate() {
        let beside = others(own).find_map(|(other, kind)| Some((other, kind.as_ref()?)));
        converted.push(
            match beside {
                Some((other, kind)) => {
                    let is_order = !matches!(operator, "$eq" | "$ne" | "$indexOfArray");
                    operand(item, kind, &items[other], is_order, place)
                }
                None => expression(item, place),
            }
            .map_err(|error| error.within(own.to_string()))?,
        );
    }
    Ok(conversion::items(items, converted))
}

/// Converts the constants in the arguments of `$in`.
fn membership(pair: &[Value], place: ConstantPlace) -> Converted {
    let (value, list) = (&pair[0], &pair[1]);
    let at = |place: usize| move |error: Error| error.within(place.to_string());
    let converted = match (kind_of(value, place)?, list) {
        (Some(kind), Value::Array(items)) => {
            let items = each(items, |item| operand(item, &kind, value, false, place));
            [expression(value, place).map_err(at(0))?, items.map_err(at(1))?]
        }
        (None, _) if is_constant(value) => {
            let value = match kind_of(list, place)? {
                Some(kind) => operand(value, &kind, list, false, place).map_err(at(0))?,
                None => None,
            };
            [value, expression(list, place).map_err(at(1))?]
        }
        _ => [expression(value, place).map_err(at(0))?, expression(list, place).map_err(at(1))?],
    };
    Ok(conversion::items(pair, converted.into()))
}

/// Converts the constants in the literal arrays among the arguments of a set operator. Converts only if another
/// argument is an expression whose items have a known kind. The constants are converted to this kind.
fn sets(items: &[Value], place: ConstantPlace) -> Converted {
    let mut known = None;
    for item in items.iter().filter(|item| item.as_array().is_none()) {
        known = known.or(kind_of(item, place)?.map(|kind| (kind, item)));
    }
    each(items, |item| match (&known, item) {
        (Some((kind, beside)), Value::Array(items)) => each(items, |item| operand(item, kind, beside, false, place)),
        _ => expression(item, place),
    })
}

/// Converts the constant boundaries of a `$bucket`. `value` is the expression whose values are compared with the
/// boundaries.
pub fn limits(items: &[Value], value: &Value, place: ConstantPlace) -> Converted {
    let kind = kind_of(value, place)?;
    each(items, |item| match &kind {
        Some(kind) => operand(item, kind, value, true, place),
        None => expression(item, place),
    })
}

/// If one of the arguments `startDate` and `endDate` of a `$dateDiff` is known to be a date, converts a constant string
/// in the other argument to a date. In MongoDB, the operator accepts no strings.
fn difference(object: &Object, place: ConstantPlace) -> Converted {
    let mut is_known = false;
    for name in DIFFERENCE {
        if let Some(date) = object.get(name) {
            is_known |= matches!(kind_of(date, place)?, Some(ValueKind::Date));
        }
    }
    fields(object, |name, value| match value.as_str().and_then(parse_date) {
        Some(ms) if is_known && DIFFERENCE.contains(&name) => Ok(Some(Value::Date(ms))),
        _ => expression(value, place),
    })
}

/// Converts the constants in an operator that evaluates an expression for each item of an array.
fn over_items(name: &str, object: &Object, place: ConstantPlace) -> Converted {
    let item = match object.get("input") {
        Some(input) => kind_of(input, place)?.unwrap_or(ValueKind::Plain),
        None => ValueKind::Plain,
    };
    let chosen = |argument: &str| object.get(argument).and_then(Value::as_str);
    let mut bound = vec![(chosen("as").unwrap_or("this"), item)];
    if name == "$reduce" {
        bound.push((chosen("valueAs").unwrap_or("value"), ValueKind::Plain));
    }
    bound.extend(chosen("arrayIndexAs").map(|index| (index, ValueKind::Plain)));
    fields(object, |name, value| match name {
        "in" | "cond" => expression(value, place.binding(&BoundVariables { variables: &bound, outer: place.bound })),
        _ => expression(value, place),
    })
}

/// Converts the constants in a `$let`.
fn with_variables(object: &Object, place: ConstantPlace) -> Converted {
    let variables = object.get("vars").and_then(Value::as_object);
    let mut bound: Vec<(&str, ValueKind)> = Vec::new();
    for (name, value) in variables.into_iter().flat_map(Object::iter) {
        // The variable `CURRENT` makes plain paths begin at another value than the row.
        if &**name == "CURRENT" {
            return Ok(None);
        }
        bound.push((name, kind_of(value, place)?.unwrap_or(ValueKind::Plain)));
    }
    fields(object, |name, value| match name {
        "in" => expression(value, place.binding(&BoundVariables { variables: &bound, outer: place.bound })),
        _ => expression(value, place),
    })
}

/// Variables that an operator binds, with the kinds of their values.
#[derive(Debug, Clone, Copy)]
pub struct BoundVariables<'p> {
    variables: &'p [(&'p str, ValueKind)],
    outer: Option<&'p BoundVariables<'p>>,
}

impl BoundVariables<'_> {
    /// Returns the kind of the innermost variable with a name.
    pub fn kind(&self, name: &str) -> Option<&ValueKind> {
        let own = self.variables.iter().rev().find(|(bound, _)| *bound == name).map(|(_, kind)| kind);
        own.or_else(|| self.outer.and_then(|outer| outer.kind(name)))
    }
}

/// Converts an operand that is compared with the values of the expression `beside`. If the operand is a constant,
/// converts the constant to the kind of these values. If the operand is an expression, converts the constants in the
/// expression.
fn operand(spec: &Value, kind: &ValueKind, beside: &Value, is_order: bool, place: ConstantPlace) -> Converted {
    if !is_constant(spec) {
        return expression(spec, place);
    }
    let text = beside.as_str().map(|path| path.strip_prefix('$').filter(|path| !path.starts_with('$')).unwrap_or(path));
    let shown = text.map_or_else(|| excerpt(beside), str::to_owned);
    ComparisonTarget { kind, name: &shown, is_order }.convert(spec, place.query)
}

/// Returns the kind of the values of an expression, as far as the kind is known before the expression is parsed. For
/// arrays, returns the kind of the items.
fn kind_of(spec: &Value, place: ConstantPlace) -> Result<Option<ValueKind>> {
    place.query.tick()?;
    if let Value::String(text) = spec {
        return Ok(text.strip_prefix('$').and_then(|path| place.kind(path)));
    }
    let mut calls = spec.as_object().into_iter().flat_map(Object::iter);
    let (Some((name, argument)), None) = (calls.next(), calls.next()) else { return Ok(None) };
    match (&**name, argument) {
        (name, _) if OF_DATES.contains(&name) => Ok(Some(ValueKind::Date)),
        ("$toDecimal", _) => Ok(Some(ValueKind::Decimal)),
        ("$ifNull" | "$max" | "$min", Value::Array(choices)) => kind_of_all(choices.iter(), place),
        ("$cond", Value::Array(choices)) => kind_of_all(choices.iter().skip(1), place),
        ("$cond", Value::Object(cond)) => kind_of_all(cond.get("then").into_iter().chain(cond.get("else")), place),
        ("$switch", Value::Object(switch)) => {
            let branches = switch.get("branches").and_then(Value::as_array).unwrap_or_default();
            kind_of_all(branches.iter().filter_map(|branch| branch.get("then")).chain(switch.get("default")), place)
        }
        ("$first" | "$last" | "$reverseArray" | "$max" | "$min", Value::String(_)) => kind_of(argument, place),
        ("$arrayElemAt" | "$slice" | "$first" | "$last", Value::Array(items)) => kind_of_all(items.first(), place),
        ("$filter" | "$sortArray", Value::Object(options)) => kind_of_all(options.get("input"), place),
        _ => Ok(None),
    }
}

/// Returns the common kind of the values of several expressions, or `None` if the common kind is unknown. Ignores
/// constant nulls.
fn kind_of_all<'v>(choices: impl IntoIterator<Item = &'v Value>, place: ConstantPlace) -> Result<Option<ValueKind>> {
    let mut kinds = Vec::new();
    for choice in choices.into_iter().filter(|choice| !choice.is_null()) {
        kinds.push(kind_of(choice, place)?.unwrap_or(ValueKind::Plain));
    }
    Ok(one_of(kinds).filter(|kind| !matches!(kind, ValueKind::Plain)))
}

/// Warns about a constant string as the argument of an accumulator of numbers. For accumulators of all values, warns
/// only if the string equals the name of a field.
fn warn_of_text(name: &str, text: &str, place: ConstantPlace) {
    let ConstantPlace { rows, query, .. } = place;
    if OF_NUMBERS.contains(&name) && !text.starts_with('$') {
        let (shown, path) = (excerpt_of(text), rows.path_of(text, query));
        let path = path.map_or_else(|| shown.clone(), excerpt_of);
        query.warn(format!("{name} reads the text \"{shown}\", which is not a number: write \"${path}\" for a field"));
    } else if OF_VALUES.contains(&name) {
        warn_of_field(name, text, place);
    }
}

/// Warns about a constant string that equals the name of a field.
pub fn warn_of_field(what: &str, text: &str, place: ConstantPlace) {
    if let Some(path) = (!text.starts_with('$')).then(|| place.rows.path_of(text, place.query)).flatten() {
        let (text, path) = (excerpt_of(text), excerpt_of(path));
        place.query.warn(format!("{what} is the text \"{text}\": write \"${path}\" for the field"));
    }
}

/// Returns whether an expression is a Boolean, a number, or a string that is not a path.
fn is_constant(spec: &Value) -> bool {
    spec.is_number() || matches!(spec, Value::Bool(_)) || spec.as_str().is_some_and(|text| !text.starts_with('$'))
}
