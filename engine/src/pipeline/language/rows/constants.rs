//! Converts the constants that a stage compares with dates, decimals and ids of projects, and warns about constants
//! that equal no value.
//!
//! A client may write a date or a decimal as a string, and the slug of a project instead of the project's id.
//! Only the types of the compared fields show what a string represents. The conversion changes the specification of a
//! stage before the stage is parsed, so all sources and operators use the same constants.

use std::sync::Arc;

use super::comparison::ComparisonTarget;
use super::expressions::{BoundVariables, expression, limits, warn_of_field};
use super::{BaseFields, RowFields, ValueKind};
use crate::model::excerpt::{excerpt, excerpt_of};
use crate::model::value::{Object, Value};
use crate::pipeline::value::context::Context;
use crate::pipeline::value::conversion;
use crate::pipeline::value::error::Result;

/// Names of filter operators without the dollar sign, which a client may have forgotten.
const OPERATORS: [&str; 16] = [
    "all",
    "elemMatch",
    "eq",
    "exists",
    "gt",
    "gte",
    "in",
    "lt",
    "lte",
    "mod",
    "ne",
    "nin",
    "not",
    "regex",
    "size",
    "type",
];

/// The value after the conversion of its constants, or `None` if the conversion does not change the value.
pub type Converted = Result<Option<Value>>;

/// The surroundings of the constants in a stage: the known fields of the stage's input rows, and the variables that the
/// stage can read.
#[derive(Clone, Copy)]
pub struct ConstantPlace<'p, 'q> {
    pub rows: &'p RowFields,
    pub query: &'p Context<'q>,
    /// The variables of the enclosing `$lookup` stages.
    names: &'p [Arc<str>],
    /// The kinds of the values of the variables.
    kinds: &'p [ValueKind],
    pub bound: Option<&'p BoundVariables<'p>>,
    /// Whether the current object, from which paths without a variable start, may be an object inside a row. `true`
    /// only in a `$redact` that may return `$$DESCEND`. Otherwise, the current object is the row itself.
    descends: bool,
}

impl<'p, 'q> ConstantPlace<'p, 'q> {
    pub fn new(
        rows: &'p RowFields,
        query: &'p Context<'q>,
        names: &'p [Arc<str>],
        kinds: &'p [ValueKind],
    ) -> ConstantPlace<'p, 'q> {
        ConstantPlace { rows, query, names, kinds, bound: None, descends: false }
    }

    /// Returns the place of the constants inside an operator. The operator binds the variables `bound`.
    pub fn binding<'i>(self, bound: &'i BoundVariables<'i>) -> ConstantPlace<'i, 'q>
    where
        'p: 'i,
    {
        ConstantPlace { bound: Some(bound), ..self }
    }

    /// Returns the kind of the values at a path in an expression, or `None` if the kind is unknown. `path` is the text
    /// after the first dollar sign. The path of a variable begins with another dollar sign.
    pub fn kind(self, path: &str) -> Option<ValueKind> {
        let Some(variable) = path.strip_prefix('$') else {
            return (!path.is_empty()).then(|| self.kind_in_current(path));
        };
        let (name, rest) = variable.split_once('.').unwrap_or((variable, ""));
        let of_lookup = || {
            let place = self.names.iter().rposition(|known| **known == *name)?;
            self.kinds.get(place)
        };
        match (name, rest) {
            ("NOW", "") => Some(ValueKind::Date),
            ("ROOT", rest) if !rest.is_empty() => Some(self.rows.kind(rest, self.query)),
            ("CURRENT", rest) if !rest.is_empty() => Some(self.kind_in_current(rest)),
            (name, rest) => match (self.bound.and_then(|bound| bound.kind(name)).or_else(of_lookup)?, rest) {
                (kind, "") => Some(kind.clone()),
                (ValueKind::Rows(rows), rest) => Some(rows.kind(rest, self.query)),
                _ => None,
            },
        }
    }

    /// Returns the kind of the values at a path of the current object. If the current object may be an object inside a
    /// row, the kind is uncertain, because such an object may have other fields than the row.
    fn kind_in_current(self, path: &str) -> ValueKind {
        match self.rows.kind(path, self.query) {
            kind if !self.descends => kind,
            ValueKind::Date | ValueKind::Decimal | ValueKind::Mixed => ValueKind::Mixed,
            _ => ValueKind::Any,
        }
    }
}

/// Converts the constants in the specification of a stage. A `$match` is converted by [`filter`].
pub fn of_stage(name: &str, spec: &Value, place: ConstantPlace) -> Converted {
    recorded(of_specification(name, spec, place), place)
}

/// Converts the constants of a filter.
pub fn filter(spec: &Value, place: ConstantPlace) -> Converted {
    recorded(below(spec, "", place), place)
}

/// Records the converted specification in the query. The caller of the query can then check that all pages of a result
/// use the same constants.
fn recorded(converted: Converted, place: ConstantPlace) -> Converted {
    if let Ok(converted) = &converted {
        place.query.record_conversion(converted.clone());
    }
    converted
}

fn of_specification(name: &str, spec: &Value, place: ConstantPlace) -> Converted {
    match (name, spec) {
        (
            "$project" | "$set" | "$addFields" | "$replaceRoot" | "$replaceWith" | "$sortByCount" | "$bucketAuto"
            | "$setWindowFields" | "$fill",
            _,
        ) => expression(spec, place),
        ("$group", Value::Object(group)) => {
            if let Some(Value::String(text)) = group.get("_id") {
                warn_of_field("the key of $group", text, place);
            }
            expression(spec, place)
        }
        ("$bucket", Value::Object(bucket)) => {
            let by = bucket.get("groupBy");
            fields(bucket, |name, value| match (name, value, by) {
                ("boundaries", Value::Array(items), Some(by)) => limits(items, by, place),
                ("default", _, _) => Ok(None),
                _ => expression(value, place),
            })
        }
        ("$redact", _) => expression(spec, ConstantPlace { descends: may_descend(spec), ..place }),
        // An expression that computes documents has no row.
        ("$documents", Value::Object(_)) => {
            let none = RowFields::new(BaseFields::Empty);
            expression(spec, ConstantPlace { rows: &none, ..place })
        }
        ("$densify", Value::Object(densify)) => {
            let path = densify.get("field").and_then(Value::as_str);
            fields(densify, |name, value| match (name, value, path) {
                ("range", Value::Object(range), Some(path)) => fields(range, |name, value| match (name, value) {
                    ("bounds", Value::Array(items)) => each(items, |item| constant(path, item, true, place)),
                    _ => Ok(None),
                }),
                _ => Ok(None),
            })
        }
        ("$lookup", Value::Object(lookup)) => fields(lookup, |name, value| match name {
            "let" => expression(value, place),
            _ => Ok(None),
        }),
        ("$graphLookup", Value::Object(lookup)) => fields(lookup, |name, value| match name {
            "startWith" => expression(value, place),
            _ => Ok(None),
        }),
        _ => Ok(None),
    }
}

/// Returns whether the expression of a `$redact` contains `$$DESCEND`, or the string `descend`, which is the value of
/// `$$DESCEND`.
fn may_descend(spec: &Value) -> bool {
    match spec {
        Value::String(text) => matches!(&**text, "$$DESCEND" | "descend"),
        Value::Array(items) => items.iter().any(may_descend),
        Value::Object(object) => object.iter().any(|(_, value)| may_descend(value)),
        _ => false,
    }
}

/// Converts the constants of a filter over the objects at a path; the empty path denotes the whole row.
fn below(spec: &Value, above: &str, place: ConstantPlace) -> Converted {
    let Value::Object(object) = spec else { return Ok(None) };
    fields(object, |name, value| {
        place.query.tick()?;
        match (name, value) {
            ("$and" | "$or" | "$nor", Value::Array(filters)) => each(filters, |filter| below(filter, above, place)),
            ("$expr", _) => {
                if let Some(name) = operator_without_dollar(value) {
                    place.query.warn(format!("the object in $expr is always true: write \"${name}\" for the operator"));
                }
                expression(value, place)
            }
            _ if name.starts_with('$') => Ok(None),
            _ if above.is_empty() => of_field(name, value, place),
            _ => of_field(&format!("{above}.{name}"), value, place),
        }
    })
}

/// Converts the condition of one field: a value, or an object of operators.
fn of_field(path: &str, condition: &Value, place: ConstantPlace) -> Converted {
    let operators = match condition {
        Value::Object(object) if object.keys().next().is_some_and(|name| name.starts_with('$')) => object,
        _ if warns_of_object(path, condition, place) => return Ok(None),
        _ => return compared(path, condition, false, place),
    };
    fields(operators, |name, value| match (name, value) {
        ("$eq" | "$ne", _) => compared(path, value, false, place),
        ("$gt" | "$gte" | "$lt" | "$lte", _) => compared(path, value, true, place),
        ("$in" | "$nin" | "$all", Value::Array(items)) => each(items, |item| match item {
            Value::Object(_) => of_field(path, item, place),
            _ => compared(path, item, false, place),
        }),
        ("$not", Value::Object(_)) => of_field(path, value, place),
        ("$elemMatch", Value::Object(inner)) => match inner.keys().next().map(|name| &**name) {
            Some("$and" | "$or" | "$nor") => below(value, path, place),
            Some(name) if name.starts_with('$') => of_field(path, value, place),
            _ => below(value, path, place),
        },
        ("$regex", Value::String(_)) => {
            if matches!(place.rows.kind(path, place.query), ValueKind::Date) {
                let path = excerpt_of(path);
                place.query.warn(format!("'{path}' is a date and never matches a pattern: use $gte and $lt instead"));
            }
            Ok(None)
        }
        _ => Ok(None),
    })
}

/// Warns about an object that looks like a condition without the dollar sign, such as `{"gte": 5}`. Does not warn if
/// the known fields show that the field at `path` may contain a field with the same name as the first field of the
/// object. Returns whether there is a warning.
fn warns_of_object(path: &str, condition: &Value, place: ConstantPlace) -> bool {
    let Some(name) = operator_without_dollar(condition) else { return false };
    let is_field = match place.rows.kind(path, place.query) {
        ValueKind::Rows(rows) => rows.path_of(name, place.query).is_some(),
        ValueKind::Field(source) => source.may_contain(name, place.query),
        _ => false,
    };
    if !is_field {
        let (path, object) = (excerpt_of(path), excerpt(condition));
        place.query.warn(format!("'{path}' is compared with the object {object}: write \"${name}\" for the operator"));
    }
    !is_field
}

/// If all names in an object are names of operators without the dollar sign, returns the first name. Returns `None` for
/// all other values.
fn operator_without_dollar(value: &Value) -> Option<&str> {
    let names = || value.as_object().into_iter().flat_map(Object::keys);
    let first = names().next()?;
    names().all(|name| OPERATORS.contains(&&**name)).then_some(&**first)
}

/// Converts a constant that a filter compares with the values at a path.
fn compared(path: &str, value: &Value, is_order: bool, place: ConstantPlace) -> Converted {
    match value {
        // An object or array is compared as a whole, so the constants in the object or array are converted too.
        Value::Object(object) => fields(object, |name, inner| {
            place.query.tick_many(1 + path.len() / 64)?;
            match name.starts_with('$') {
                true => Ok(None),
                false => compared(&format!("{path}.{name}"), inner, is_order, place),
            }
        }),
        Value::Array(items) => each(items, |item| compared(path, item, is_order, place)),
        _ => constant(path, value, is_order, place),
    }
}

/// Converts a constant that is compared with the values at a path.
fn constant(path: &str, value: &Value, is_order: bool, place: ConstantPlace) -> Converted {
    if value.is_null() || matches!(value, Value::Date(_)) {
        return Ok(None);
    }
    let kind = place.rows.kind(path, place.query);
    ComparisonTarget { kind: &kind, name: path, is_order }.convert(value, place.query)
}

/// Converts the values of an object with `convert`. Returns `None` if no value changes.
pub fn fields(object: &Object, mut convert: impl FnMut(&str, &Value) -> Converted) -> Converted {
    let within = |(name, value): (&Arc<str>, &Value)| convert(name, value).map_err(|error| error.within(name.clone()));
    Ok(conversion::fields(object, object.iter().map(within).collect::<Result<_>>()?))
}

/// Converts the items of an array with `convert`. Returns `None` if no item changes.
pub fn each(items: &[Value], mut convert: impl FnMut(&Value) -> Converted) -> Converted {
    let within = |(place, item): (usize, &Value)| convert(item).map_err(|error| error.within(place.to_string()));
    Ok(conversion::items(items, items.iter().enumerate().map(within).collect::<Result<_>>()?))
}
