//! Validates an event's payload against the definition of its type.

use super::aggregate::UNSET;
use super::date::parse_date;
use super::definition::{Definition, Field, FieldType, Fold};
use super::depth;
use super::excerpt::{MAX_CHARS, excerpt, excerpt_of};
use super::pattern::Matching;
use super::value::{Object, Value};
use super::violation::{Violations, segment};

/// The verb of a stream's first event.
pub const CREATED: &str = "created";

/// Returns whether a payload may contain a field with this name.
pub fn is_field_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['_', '$']) && !name.contains('\0')
}

/// Checks a payload against a definition. Adds all violations to `violations`, with pointers that start with `at`.
pub fn check(
    payload: &Object,
    verb: &str,
    definition: &Definition,
    matching: &Matching,
    at: &str,
    violations: &mut Violations,
) {
    for (name, value) in payload.iter() {
        let at = format!("{at}/{}", segment(name));
        check_field_shape(name, value, definition, &at, violations);
        if let Some(field) = definition.field(name).filter(|_| is_field_name(name)) {
            check_value(field, value, payload.written(name), Some(matching), &at, violations);
        }
    }
    if verb == CREATED {
        let missing = |field: &&Field| payload.get(&field.name).is_none_or(Value::is_null);
        for field in
            definition.fields().iter().filter(|field| field.required && field.default.is_none()).filter(missing)
        {
            violations.add(format!("{at}/{}", segment(&field.name)), format!("required {}", field.field_type.name()));
        }
    }
}

/// Checks what every payload must meet, whatever the definition says about its fields: the depth of its values, and the
/// names of its fields.
pub fn check_shape(payload: &Object, definition: &Definition, at: &str, violations: &mut Violations) {
    for (name, value) in payload.iter() {
        check_field_shape(name, value, definition, &format!("{at}/{}", segment(name)), violations);
    }
}

fn check_field_shape(name: &str, value: &Value, definition: &Definition, at: &str, violations: &mut Violations) {
    depth::check_field(value, definition.field(name).map_or(Fold::Last, |field| field.fold), at, violations);
    if name == UNSET {
        check_unset(value, at, violations);
    } else if !is_field_name(name) {
        violations.add(at, "a field name must not be empty, start with _ or $, or contain a null character");
    }
}

/// Adds the defaults of missing fields to the payload of a stream's first event. In a required field, null counts as
/// missing, because the aggregate would start without a value.
pub fn fill_defaults(payload: &mut Object, verb: &str, definition: &Definition) {
    if verb != CREATED {
        return;
    }
    for field in definition.fields() {
        let is_missing = payload.get(&field.name).is_none_or(|value| field.required && value.is_null());
        if let Some(default) = field.default.as_ref().filter(|_| is_missing) {
            payload.insert(field.name.clone(), default.clone());
        }
    }
}

/// Returns the error message for a number in an integer field that does not fit 64 bits.
fn beyond_integers(field: &Field, value: &Value, written: Option<&str>) -> Option<String> {
    let Value::Double(number) = value else { return None };
    let is_integer = field.field_type == FieldType::Integer && number.fract() == 0.0;
    // A double can represent 2^63 exactly, but not i64::MAX.
    let fits = written.is_none_or(|text| text.parse::<i64>().is_ok())
        && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(number);
    (is_integer && !fits).then(|| {
        let shown = written.map_or_else(|| excerpt(value), excerpt_of);
        format!("{shown} is outside the range of integers, {} to {}", i64::MIN, i64::MAX)
    })
}

fn check_unset(value: &Value, at: &str, violations: &mut Violations) {
    match value.as_array() {
        Some(names) if names.iter().all(|name| name.as_str().is_some()) => {}
        _ => violations.add(at, "expected an array of field names"),
    }
}

/// Returns whether matching a payload against the patterns of the definition takes negligible time.
pub fn is_quick(payload: &Object, definition: &Definition, matching: &Matching) -> bool {
    payload.iter().all(|(name, value)| {
        match (definition.field(name).and_then(|field| field.pattern.as_ref()), value.as_str()) {
            (Some(pattern), Some(text)) => matching.is_quick(pattern, text),
            _ => true,
        }
    })
}

/// Checks a value against the definition of its field. Null is always allowed. `written` is the number as it was
/// written, if the value is only the nearest double. The pattern is only checked if `matching` is given.
pub fn check_value(
    field: &Field,
    value: &Value,
    written: Option<&str>,
    matching: Option<&Matching>,
    at: &str,
    violations: &mut Violations,
) {
    if value.is_null() {
        return;
    }
    if let Some(message) = beyond_integers(field, value, written) {
        violations.add(at, message);
        return;
    }
    // A field that collects values in a list also accepts single items.
    let collects = matches!(field.fold, Fold::Append | Fold::Union);
    let fits = match field.field_type {
        FieldType::String => value.as_str().is_some(),
        FieldType::Number => value.is_number(),
        FieldType::Integer => value.as_int().is_some() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        FieldType::Boolean => matches!(value, Value::Bool(_)),
        FieldType::Date => matches!(value, Value::Date(_)) || value.as_str().and_then(parse_date).is_some(),
        FieldType::Object => value.as_object().is_some(),
        FieldType::Array => collects || value.as_array().is_some(),
        FieldType::Reference => value.as_str().is_some_and(super::id::is_valid_id),
    };
    if !fits {
        let expected = match field.field_type {
            FieldType::Date => "an RFC 3339 date",
            FieldType::Reference => "an aggregate id",
            other => other.name(),
        };
        violations.add(at, format!("expected {expected}, found {} {}", value.type_name(), excerpt(value)));
        return;
    }
    if let Some(allowed) = field.allowed.as_ref().filter(|allowed| !allowed.contains(value)) {
        // The error message is cut, so more values than this would never be visible.
        let allowed: Vec<_> = allowed.iter().take(MAX_CHARS).map(excerpt).collect();
        violations.add(at, format!("{} is not one of {}", excerpt(value), excerpt_of(allowed.join(", "))));
    }
    check_bounds(field, value, at, violations);
    if let (Some(matching), Some(pattern), Some(text)) = (matching, &field.pattern, value.as_str()) {
        match matching.matches(pattern, text) {
            Ok(true) => {}
            Ok(false) => {
                violations.add(at, format!("{} does not match the pattern {}", excerpt(value), excerpt_of(pattern)));
            }
            Err(reason) => {
                let (text, pattern) = (excerpt(value), excerpt_of(pattern));
                violations.add(at, format!("{text} cannot be matched with the pattern {pattern}: {reason}"));
            }
        }
    }
}

fn check_bounds(field: &Field, value: &Value, at: &str, violations: &mut Violations) {
    let (measure, what) = match value {
        Value::String(text) => (text.chars().count() as f64, "length"),
        Value::Array(items) => (items.len() as f64, "number of items"),
        other => match other.as_f64() {
            Some(number) => (number, "value"),
            None => return,
        },
    };
    if let Some(min) = field.min.filter(|min| measure < *min) {
        violations.add(at, format!("{what} {measure} is below the minimum {min}"));
    }
    if let Some(max) = field.max.filter(|max| measure > *max) {
        violations.add(at, format!("{what} {measure} is above the maximum {max}"));
    }
}
