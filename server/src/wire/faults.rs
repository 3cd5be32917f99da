//! Finds the faults of a rejected request body: the fields that its schema does not declare. If the body has no such
//! field, finds missing fields and values that the schema does not allow.
//!
//! Bodies are parsed directly into their types. The parser of bodies stops at the first fault, gives the place of the
//! fault only as a line and a column, and suggests no other name. Therefore this module parses a rejected body again
//! and compares the body with the schema of its type.

use foldwork_engine::model::excerpt::{excerpt, excerpt_of};
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::{Violation, Violations, segment};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::Type;

use super::names;

/// The maximum number of faults of one kind in one error.
const MAX_FAULTS: usize = 20;

/// Returns the faults of a body. If the body contains fields that the schema of `T` does not declare, only these fields
/// are faults, because a misspelled field is often reported as a missing field as well. Returns no faults for a body
/// that is not JSON, and for a body that the schema allows.
pub fn faults<T: Type>(body: &[u8]) -> Vec<Violation> {
    let Ok(body) = json::parse(body) else { return Vec::new() };
    let mut registry = Registry::new();
    T::register(&mut registry);
    let mut search = FaultSearch { registry, unknown: BodyFaults::default(), unfit: BodyFaults::default() };
    search.look_at(&body, &T::schema_ref(), "");
    let FaultSearch { unknown, unfit, .. } = search;
    if unknown.found == 0 { unfit.found_at.into_vec() } else { unknown.found_at.into_vec() }
}

struct FaultSearch {
    registry: Registry,
    unknown: BodyFaults,
    unfit: BodyFaults,
}

#[derive(Default)]
struct BodyFaults {
    found_at: Violations,
    found: usize,
}

impl BodyFaults {
    fn add(&mut self, at: String, message: impl FnOnce() -> String) {
        if self.found < MAX_FAULTS {
            self.found_at.add(at, message());
            self.found += 1;
        }
    }
}

impl FaultSearch {
    /// Compares a value with its schema. `at` is the JSON pointer of the value.
    fn look_at(&mut self, value: &Value, schema: &MetaSchemaRef, at: &str) {
        let Some(mut schema) = self.resolved(schema) else { return };
        // If the schema consists of alternatives (`oneOf`), a field may belong to any alternative.
        let forms: Vec<MetaSchema> = schema.one_of.iter().filter_map(|form| self.resolved(form)).collect();
        let types: Vec<&str> = match forms.is_empty() {
            true => vec![schema.ty],
            false => forms.iter().map(|form| form.ty).collect(),
        };
        if let Some(message) = unfit(value, &schema, &types) {
            return self.unfit.add(at.to_owned(), || message);
        }
        schema.properties.extend(forms.into_iter().rev().flat_map(|form| form.properties));
        schema.all_of.iter().for_each(|part| self.look_at(value, part, at));
        match value {
            Value::Object(fields) if !schema.properties.is_empty() => self.look_into(fields, &schema, at),
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate() {
                    let is_full = self.unknown.found >= MAX_FAULTS || self.unfit.found >= MAX_FAULTS;
                    let Some(schema) = schema.items.as_deref().filter(|_| !is_full) else { return };
                    self.look_at(item, schema, &format!("{at}/{place}"));
                }
            }
            _ => {}
        }
    }

    fn resolved(&self, schema: &MetaSchemaRef) -> Option<MetaSchema> {
        match schema {
            MetaSchemaRef::Inline(schema) => Some(MetaSchema::clone(schema)),
            MetaSchemaRef::Reference(name) => self.registry.schemas.get(name).cloned(),
        }
    }

    fn look_into(&mut self, fields: &Object, schema: &MetaSchema, at: &str) {
        for (name, value) in fields.iter() {
            if let Some((_, inner)) = schema.properties.iter().find(|(known, _)| *known == &**name) {
                // A field that is null counts as absent, unless the field is required.
                if !value.is_null() || schema.required.contains(&&**name) {
                    self.look_at(value, inner, &format!("{at}/{name}"));
                }
            } else if schema.additional_properties.is_none() {
                let known: Vec<&str> = schema.properties.iter().map(|(known, _)| *known).collect();
                let pointer = format!("{at}/{}", segment(&excerpt_of(name)));
                self.unknown.add(pointer, || names::unknown("field", name, &known));
            }
        }
        for name in schema.required.iter().filter(|name| !fields.contains(name)) {
            self.unfit.add(format!("{at}/{name}"), || "required".to_owned());
        }
    }
}

/// Returns the error message for a value that has none of the types in `types`, or that the schema does not allow.
fn unfit(value: &Value, schema: &MetaSchema, types: &[&str]) -> Option<String> {
    if types.contains(&"") {
        return None;
    }
    if !types.iter().any(|name| is_of_type(value, name)) {
        let mut expected: Vec<&str> = types.iter().map(|name| with_article(name)).collect();
        expected.dedup();
        return Some(format!("expected {}, found {}", expected.join(" or "), excerpt(value)));
    }
    let is_unsigned = schema.format.is_some_and(|format| format.starts_with("uint"));
    if is_unsigned && matches!(value, Value::Int(..0)) {
        return Some(format!("expected an integer of at least 0, found {}", excerpt(value)));
    }
    let allowed: Vec<&str> = schema.enum_items.iter().filter_map(|item| item.as_str()).collect();
    let text = value.as_str().filter(|text| !allowed.is_empty() && !allowed.contains(text))?;
    Some(format!("expected one of {}, found \"{}\"", allowed.join(", "), excerpt_of(text)))
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.as_str().is_some(),
        "integer" => matches!(value, Value::Int(_)),
        "number" => value.is_number(),
        "boolean" => matches!(value, Value::Bool(_)),
        "array" => value.as_array().is_some(),
        "object" => value.as_object().is_some(),
        _ => true,
    }
}

fn with_article(name: &str) -> &str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use foldwork_engine::Error;
    use poem_openapi::Object;

    use super::*;

    #[derive(Object)]
    struct Inner {
        title: Option<String>,
    }

    #[derive(Object)]
    struct Outer {
        payload: Option<crate::wire::json::AnyObject>,
        inner: Option<Inner>,
        count: Option<u64>,
        items: Vec<Inner>,
    }

    fn error(body: &str) -> Option<String> {
        let faults = faults::<Outer>(body.as_bytes());
        (!faults.is_empty()).then(|| Error::from(faults).to_string())
    }

    #[test]
    fn unknown_fields_are_found_at_every_level_except_in_open_objects() {
        assert_eq!(error(r#"{"payload": {"a": 1}, "inner": {"title": "t"}, "items": [{}, {"title": null}]}"#), None);
        let found = error(r#"{"paylod": {}, "inner": {"titel": "t"}, "items": [{"title": "t"}, {"x": 1}]}"#);
        let expected = "/paylod: unknown field; did you mean 'payload'? allowed: payload, inner, count, items; \
                        /inner/titel: unknown field; did you mean 'title'? allowed: title; /items/1/x: unknown field; \
                        allowed: title";
        assert_eq!(found.as_deref(), Some(expected));
        assert_eq!(error("{"), None, "a body that is no JSON has no fields");
    }

    #[test]
    fn missing_fields_and_values_of_the_wrong_type_are_found_at_every_level() {
        assert_eq!(error("{}").as_deref(), Some("/items: required"));
        assert_eq!(error("5").as_deref(), Some("expected an object, found 5"));
        let found =
            error(r#"{"payload": [], "inner": {"title": 5}, "count": -1, "items": [{}, "x", {"title": true}]}"#);
        let expected = "/payload: expected an object, found []; /inner/title: expected a string, found 5; /count: \
                        expected an integer of at least 0, found -1; /items/1: expected an object, found \"x\"; \
                        /items/2/title: expected a string, found true";
        assert_eq!(found.as_deref(), Some(expected));
        assert_eq!(error(r#"{"items": null}"#).as_deref(), Some("/items: expected an array, found null"));
        assert_eq!(error(r#"{"count": 1.5, "items": []}"#).as_deref(), Some("/count: expected an integer, found 1.5"));
        // A misspelled field is reported without the field that is missing in its place.
        assert!(error(r#"{"itms": []}"#).is_some_and(|found| found.starts_with("/itms: unknown field")));
    }
}
