//! Validates an event's payload against the definition of its type.

use std::collections::BTreeSet;
use std::sync::Arc;

use rust_decimal::Decimal;

use super::aggregate::UNSET;
use super::date::parse_date;
use super::decimal::{self, decimal_of};
use super::definition::{Definition, Field, FieldType, Fold, UnknownFields};
use super::depth;
use super::excerpt::{MAX_CHARS, excerpt, excerpt_of};
use super::fields::Fields;
use super::pattern::PatternMatcher;
use super::value::{Object, Value};
use super::violation::{ValueLocation, Violation, Violations};
use super::written::WrittenFields;
use super::written::numbers::WrittenForm;

/// The verb of an event that creates an aggregate.
pub const CREATED: &str = "created";
/// The verb of an event that changes an aggregate.
pub const UPDATED: &str = "updated";

/// Returns whether a field may have this name. At the top level of a payload, [reserved](is_reserved) names are not
/// allowed either.
pub fn is_field_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['_', '$']) && !name.contains('\0')
}

/// Returns whether a [valid](is_field_name) field name is reserved, because rows of aggregates have a column with this
/// name. The column would hide the field.
pub fn is_reserved(name: &str) -> bool {
    matches!(name, "aggregate_type" | "project_id")
}

/// A function that returns the type of the aggregate with an id. Returns `None` if there is no such aggregate, or if
/// the aggregate is deleted.
pub type FindType<'a> = dyn Fn(&str) -> Option<Arc<str>> + 'a;

/// The context for checking the values of one payload.
pub struct PayloadCheck<'a> {
    /// The patterns for strings. `None` if patterns are not checked.
    pub matching: Option<&'a PatternMatcher<'a>>,
    /// The function that finds the targets of references. `None` if references are not looked up.
    pub targets: Option<&'a FindType<'a>>,
    pub violations: &'a mut Violations,
    /// The type of the event, which may declare further fields. Empty if the values do not belong to an event.
    pub event_type: &'a str,
    /// Whether undeclared fields are rejected in objects whose fields are declared.
    rejects_unknown: bool,
    /// The number of references that were looked up.
    looked_up: usize,
    /// The number of comparisons of values so far.
    compared: usize,
}

/// The maximum number of references in one payload that require an existing target.
const MAX_TARGETS: usize = 1_000;
/// The maximum number of comparisons for the values inside the fields of one payload. Each value counts as one
/// comparison, plus one comparison for each value in the enum of its field.
const MAX_COMPARED: usize = 5_000_000;

impl<'a> PayloadCheck<'a> {
    pub fn new(violations: &'a mut Violations) -> PayloadCheck<'a> {
        let (event_type, rejects_unknown) = ("", false);
        PayloadCheck {
            matching: None,
            targets: None,
            violations,
            event_type,
            rejects_unknown,
            looked_up: 0,
            compared: 0,
        }
    }

    /// Checks a payload against a definition. `at` is the location of the payload. `is_first` is `true` if the payload
    /// must have the required fields.
    pub fn check(&mut self, payload: &Object, is_first: bool, definition: &Definition, at: &str) {
        let root = ValueLocation::At(at);
        self.rejects_unknown = definition.unknown == UnknownFields::Reject;
        for (index, (name, value)) in payload.iter().enumerate() {
            let place = ValueLocation::Field(&root, name);
            check_field_shape(name, value, definition, place, self.violations);
            if !self.accepts(name, definition) {
                let (type_name, event_type) = (&definition.type_name, self.event_type);
                let declared: Vec<&str> = definition.event_fields(event_type).take(MAX_CHARS).collect();
                let added = match declared.is_empty() {
                    true => String::new(),
                    false => format!("; {event_type} also accepts {}", excerpt_of(declared.join(", "))),
                };
                let message =
                    format!("the type '{type_name}' has no such field; {}{added}", listed(definition.fields()));
                self.violations.add(place, message);
            }
            if let Some(field) = definition.field(name).filter(|_| is_field_name(name)) {
                self.check_value(field, value, payload.written_at(index), place);
            }
        }
        if is_first {
            self.check_required(payload, definition.fields(), root);
        }
    }

    /// Returns whether a payload of the type may have a field with this name.
    fn accepts(&self, name: &str, definition: &Definition) -> bool {
        definition.unknown == UnknownFields::Accept
            || name == UNSET
            || definition.field(name).is_some()
            || definition.event_fields(self.event_type).any(|declared| declared == name)
    }

    /// Adds a violation for each field that is required, has no default, and is missing or null in the object.
    fn check_required(&mut self, object: &Object, fields: &Fields, place: ValueLocation<'_>) {
        if fields.required() == 0 {
            return;
        }
        let given: BTreeSet<&str> =
            object.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| &**name).collect();
        for field in fields.iter().filter(|field| field.must_be_given() && !given.contains(&*field.name)) {
            self.violations
                .add(ValueLocation::Field(&place, &field.name), format!("required {}", field.field_type.name()));
        }
    }
}

/// Checks the rules that apply to every payload, regardless of the types of the fields: the depth of the values, the
/// names of the fields, and the form of `$unset`.
pub fn check_shape(payload: &Object, definition: &Definition, at: &str, violations: &mut Violations) {
    for (name, value) in payload.iter() {
        check_field_shape(name, value, definition, ValueLocation::Field(&ValueLocation::At(at), name), violations);
    }
}

fn check_field_shape(
    name: &str,
    value: &Value,
    definition: &Definition,
    at: ValueLocation<'_>,
    violations: &mut Violations,
) {
    depth::check_field(value, definition.field(name).map_or(Fold::Last, |field| field.fold), at, violations);
    if name == UNSET {
        check_unset(value, at, violations);
    } else if !is_field_name(name) {
        violations.add(at, "a field name must not be empty, start with _ or $, or contain a null character");
    } else if is_reserved(name) {
        violations.add(at, "the rows of aggregates have a column with this name; choose another name for the field");
    }
}

/// Adds the defaults of missing fields to the payload of an event that begins the state of an aggregate. In a required
/// field, null counts as missing, because the aggregate would start without a value.
pub fn fill_defaults(payload: &mut Object, definition: &Definition) {
    for field in definition.fields().iter() {
        let is_missing = payload.get(&field.name).is_none_or(|value| field.required && value.is_null());
        if let Some(default) = field.default.as_ref().filter(|_| is_missing) {
            payload.insert(field.name.clone(), default.clone());
        }
    }
}

/// Returns the error message for a whole number in an integer field that does not fit 64 bits. Also returns the message
/// for a number in an integer field that was written with a fraction or an exponent and with more digits than a double
/// represents, if the nearest double is a whole number. Returns `None` for any other value.
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

fn check_unset(value: &Value, at: ValueLocation<'_>, violations: &mut Violations) {
    match value.as_array() {
        Some(names) if names.iter().all(|name| name.as_str().is_some()) => {}
        _ => violations.add(at, "expected an array of field names"),
    }
}

/// Checks that the `$unset` of an event that begins the state of an aggregate does not remove a required field.
pub fn check_first(payload: &Object, state: &Object, definition: &Definition) -> Result<(), Vec<Violation>> {
    let mut violations = Violations::default();
    if payload.contains(UNSET) {
        let removed = |field: &&Field| field.required && state.get(&field.name).is_none_or(Value::is_null);
        for field in definition.fields().iter().filter(removed) {
            let message = format!(
                "an event that creates or restores an aggregate must not remove the required field '{}'",
                field.name
            );
            violations.add(format!("/payload/{UNSET}"), message);
        }
    }
    violations.finish(())
}

/// Checks that an aggregate has the required fields without a default after an event `<type>.created` that continues an
/// earlier state.
pub fn check_complete(state: &Object, definition: &Definition) -> Result<(), Vec<Violation>> {
    let mut violations = Violations::default();
    let is_missing = |field: &&Field| field.must_be_given() && state.get(&field.name).is_none_or(Value::is_null);
    for field in definition.fields().iter().filter(is_missing) {
        violations.add(format!("/payload/{}", field.name), format!("required {}", field.field_type.name()));
    }
    violations.finish(())
}

/// Changes a payload that creates a deleted aggregate again, so that the payload first removes the fields of the
/// earlier state. Adds the names in `earlier` to the payload's `$unset`, and moves the `$unset` before the other
/// fields. A field stays before the `$unset` only if the given payload sets the field and later removes the field with
/// its own `$unset`. If the given `$unset` already contains all names in `earlier`, the payload stays unchanged.
pub fn remove_earlier<'n>(payload: &mut Object, earlier: impl Iterator<Item = &'n str>) {
    let given = payload.get(UNSET).and_then(Value::as_array).unwrap_or_default();
    let own: BTreeSet<&str> = given.iter().filter_map(Value::as_str).collect();
    let added: Vec<Value> = earlier.filter(|name| !own.contains(*name)).map(Value::from).collect();
    if added.is_empty() {
        return;
    }
    let removed = |name: &&Arc<str>| own.contains(&***name);
    let dropped: BTreeSet<Arc<str>> =
        payload.keys().take_while(|name| ***name != *UNSET).filter(removed).cloned().collect();
    let names: Vec<Value> = given.iter().cloned().chain(added).collect();
    payload.insert(UNSET, names);
    let mut fields = WrittenFields::of(payload);
    fields.sort_by_key(|name| match name {
        UNSET => 1,
        name if dropped.contains(name) => 0,
        _ => 2,
    });
    *payload = fields.into_object();
}

/// Returns whether matching a payload against the patterns of the definition takes negligible time.
pub fn is_quick(payload: &Object, definition: &Definition, matching: &PatternMatcher) -> bool {
    payload.iter().all(|(name, value)| {
        let Some(field) = definition.field(name) else { return true };
        match (&field.pattern, value) {
            (Some(pattern), Value::String(text)) => matching.is_quick(pattern, text),
            (_, Value::Array(_) | Value::Object(_)) => field.inner().all(|inner| inner.patterns() == 0),
            _ => true,
        }
    })
}

impl PayloadCheck<'_> {
    /// Checks a value against the definition of its field. Null is always allowed. `written` contains the written forms
    /// of the numbers in the value.
    pub fn check_value(&mut self, field: &Field, value: &Value, written: WrittenForm, at: ValueLocation<'_>) {
        if value.is_null() {
            return;
        }
        let text = written.text();
        if let Some(message) = beyond_integers(field, value, text) {
            self.violations.add(at, message);
            return;
        }
        if !fits(field, value, text) {
            let expected = match field.field_type {
                FieldType::Date => "an RFC 3339 date",
                FieldType::Reference => "an aggregate id",
                FieldType::Decimal => "a decimal such as \"12.30\", with at most 28 digits",
                other => other.name(),
            };
            let found = format!("expected {expected}, found {} {}", value.type_name(), excerpt(value));
            self.violations.add(at, found);
            return;
        }
        // Decimals are compared as numbers, so trailing zeros do not matter.
        let number = (field.field_type == FieldType::Decimal).then(|| decimal_of(value, text)).flatten();
        let is_value = |allowed: &Value| allowed == value || (number.is_some() && number == decimal_of(allowed, None));
        if let Some(allowed) = field.allowed.as_ref().filter(|allowed| !allowed.iter().any(is_value)) {
            // The error message is cut after `MAX_CHARS` characters, so further values would not be visible.
            let allowed: Vec<_> = allowed.iter().take(MAX_CHARS).map(excerpt).collect();
            let allowed = excerpt_of(allowed.join(", "));
            self.violations.add(at, format!("{} is not one of {allowed}", excerpt(value)));
        }
        self.check_bounds(field, value, text, at);
        self.check_pattern(field, value, at);
        self.check_target(field, value, at);
        self.check_inner(field, value, written, at);
    }

    fn check_bounds(&mut self, field: &Field, value: &Value, written: Option<&str>, at: ValueLocation<'_>) {
        if let (FieldType::Decimal, Some(number)) = (field.field_type, decimal_of(value, written)) {
            return check_decimal(field, number, at, self.violations);
        }
        let (measure, what) = match value {
            Value::String(text) => (text.chars().count() as f64, "length"),
            Value::Array(items) => (items.len() as f64, "number of items"),
            other => match other.as_f64() {
                Some(number) => (number, "value"),
                None => return,
            },
        };
        if let Some(min) = field.min.filter(|min| measure < *min) {
            self.violations.add(at, format!("{what} {measure} is below the minimum {min}"));
        }
        if let Some(max) = field.max.filter(|max| measure > *max) {
            self.violations.add(at, format!("{what} {measure} is above the maximum {max}"));
        }
    }

    fn check_pattern(&mut self, field: &Field, value: &Value, at: ValueLocation<'_>) {
        let (Some(matching), Some(pattern), Some(text)) = (self.matching, &field.pattern, value.as_str()) else {
            return;
        };
        match matching.matches(pattern, text) {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("{} does not match the pattern {}", excerpt(value), excerpt_of(pattern));
                self.violations.add(at, message);
            }
            Err(reason) => {
                let (text, pattern) = (excerpt(value), excerpt_of(pattern));
                self.violations.add(at, format!("{text} cannot be matched with the pattern {pattern}: {reason}"));
            }
        }
    }

    /// Checks that the target of a reference exists and has the field's `reference_type`, if the field requires an
    /// existing target.
    fn check_target(&mut self, field: &Field, value: &Value, at: ValueLocation<'_>) {
        let (Some(targets), Some(id), true) = (self.targets, value.as_str(), field.must_exist) else { return };
        self.looked_up += 1;
        if self.looked_up > MAX_TARGETS {
            if self.looked_up == MAX_TARGETS + 1 {
                let message = format!("an event may have at most {MAX_TARGETS} references whose targets must exist");
                self.violations.add(at, message);
            }
            return;
        }
        let of_type = field.reference_type.as_ref().map(|name| format!(" of type '{name}'")).unwrap_or_default();
        match (targets(id), &field.reference_type) {
            (Some(found), Some(wanted)) if found != *wanted => {
                let message = format!("expected the id of an aggregate{of_type}; '{id}' is of type '{found}'");
                self.violations.add(at, message);
            }
            (Some(_), _) => {}
            (None, _) => {
                let message = format!("expected the id of an aggregate{of_type}; '{id}' does not exist or is deleted");
                self.violations.add(at, message);
            }
        }
    }

    /// Checks the items of an array and the fields of an object.
    fn check_inner(&mut self, field: &Field, value: &Value, written: WrittenForm, at: ValueLocation<'_>) {
        match (value, &field.items) {
            (Value::Array(items), Some(item)) => {
                for (index, value) in items.iter().enumerate() {
                    self.check_item(item, value, written.at(index), ValueLocation::Item(&at, index));
                    if self.violations.is_full() || self.compared > MAX_COMPARED {
                        return;
                    }
                }
            }
            (single, Some(item)) if field.collects() => self.check_item(item, single, written, at),
            (Value::Object(object), _) if !field.fields.is_empty() => {
                for (index, (name, value)) in object.iter().enumerate() {
                    let place = ValueLocation::Field(&at, name);
                    let Some(inner) = field.fields.field(name) else {
                        if self.rejects_unknown {
                            let message = format!("unknown field; {}", listed(&field.fields));
                            self.violations.add(place, message);
                        }
                        continue;
                    };
                    self.compare(inner, place);
                    self.check_value(inner, value, written.at(index), place);
                    if self.violations.is_full() || self.compared > MAX_COMPARED {
                        return;
                    }
                }
                self.check_required(object, &field.fields, at);
            }
            _ => {}
        }
    }

    fn check_item(&mut self, item: &Field, value: &Value, written: WrittenForm, at: ValueLocation<'_>) {
        self.compare(item, at);
        match value {
            Value::Null => self.violations.add(at, format!("expected {}, found null", item.field_type.name())),
            value => self.check_value(item, value, written, at),
        }
    }

    /// Adds the number of comparisons for one value to the number of comparisons for the payload. Adds a violation when
    /// the payload exceeds the maximum number of comparisons.
    fn compare(&mut self, field: &Field, at: ValueLocation<'_>) {
        let before = self.compared;
        self.compared += 1 + field.allowed.as_ref().map_or(0, Vec::len);
        if before <= MAX_COMPARED && self.compared > MAX_COMPARED {
            let message = format!("too many values in the event: the check takes more than {MAX_COMPARED} comparisons");
            self.violations.add(at, message);
        }
    }
}

/// Returns the part of an error message that lists declared fields.
fn listed(fields: &Fields) -> String {
    match fields.is_empty() {
        true => "no fields are declared".to_owned(),
        false => {
            // The error message is cut after `MAX_CHARS` characters, so further names would not be visible.
            let names: Vec<&str> = fields.iter().take(MAX_CHARS).map(|field| &*field.name).collect();
            format!("the declared fields are {}", excerpt_of(names.join(", ")))
        }
    }
}

/// Returns whether a value has the type of its field.
pub(super) fn fits(field: &Field, value: &Value, written: Option<&str>) -> bool {
    match field.field_type {
        FieldType::String => value.as_str().is_some(),
        FieldType::Number => value.is_number(),
        FieldType::Integer => value.as_int().is_some() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        FieldType::Decimal => decimal_of(value, written).is_some(),
        FieldType::Boolean => matches!(value, Value::Bool(_)),
        FieldType::Date => matches!(value, Value::Date(_)) || value.as_str().and_then(parse_date).is_some(),
        FieldType::Object => value.as_object().is_some(),
        // A field that collects values in a list also accepts single items.
        FieldType::Array => field.collects() || value.as_array().is_some(),
        FieldType::Reference => value.as_str().is_some_and(super::id::is_valid_id),
    }
}

/// Checks that a decimal is within the bounds of its field. A bound of `0.1` means exactly 0.1, and not the double that
/// is nearest to 0.1.
fn check_decimal(field: &Field, number: Decimal, at: ValueLocation<'_>, violations: &mut Violations) {
    let compared = |bound: f64| match decimal::of_double(bound) {
        Some(bound) => number.cmp(&bound),
        None => decimal::compare_double(number, bound),
    };
    if let Some(min) = field.min.filter(|min| compared(*min).is_lt()) {
        violations.add(at, format!("value {number} is below the minimum {min}"));
    }
    if let Some(max) = field.max.filter(|max| compared(*max).is_gt()) {
        violations.add(at, format!("value {number} is above the maximum {max}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json;
    use crate::model::written;

    fn begun(payload: &str, earlier: &[&str]) -> String {
        let mut payload = written::read(payload).expect("an object");
        remove_earlier(&mut payload, earlier.iter().copied());
        json::text(&payload)
    }

    #[test]
    fn a_payload_first_removes_the_fields_of_the_earlier_state() {
        let cases = [
            (r#"{"a":1}"#, r#"{"$unset":["a","b"],"a":1}"#),
            (r#"{"a":18446744073709551616,"$unset":["c"]}"#, r#"{"$unset":["c","a","b"],"a":18446744073709551616}"#),
            (r#"{"x":0,"a":1,"$unset":["a"],"b":2}"#, r#"{"a":1,"$unset":["a","b"],"x":0,"b":2}"#),
            (r#"{"a":1,"$unset":["b","a"]}"#, r#"{"a":1,"$unset":["b","a"]}"#),
        ];
        for (payload, expected) in cases {
            assert_eq!(begun(payload, &["a", "b"]), expected, "{payload}");
            assert_eq!(begun(expected, &["a", "b"]), expected, "{payload}");
        }
        assert_eq!(begun(r#"{"a":1,"$unset":["c"]}"#, &[]), r#"{"a":1,"$unset":["c"]}"#);
    }
}
