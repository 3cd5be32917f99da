//! Finds the fields of a rejected request body that its schema does not have.
//!
//! Bodies are parsed directly into their types. That parser stops at the first unknown field and suggests no other
//! name. Therefore this module parses a rejected body again and compares it with the schema of its type.

use foldwork_engine::Error;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::{Violations, segment};
use foldwork_engine::model::{excerpt::excerpt_of, json};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::Type;

use super::names;

/// The maximum number of unknown fields in one error.
const MAX_FIELDS: usize = 20;

/// Returns the error about the fields of a body that the schema of `T` does not have. Returns `None` if there are none.
pub fn unknown_fields<T: Type>(body: &[u8]) -> Option<Error> {
    let body = json::parse(body).ok()?;
    let mut registry = Registry::new();
    T::register(&mut registry);
    let mut search = Search { registry, wrong: Violations::default(), found: 0 };
    search.look_at(&body, &T::schema_ref(), "");
    search.wrong.finish(()).err().map(Error::from)
}

struct Search {
    registry: Registry,
    wrong: Violations,
    found: usize,
}

impl Search {
    /// Compares a value with its schema. `at` is the JSON pointer of the value.
    fn look_at(&mut self, value: &Value, schema: &MetaSchemaRef, at: &str) {
        let Some(mut schema) = self.resolved(schema) else { return };
        // If the schema has several forms (`oneOf`), a field may be in any of them.
        let forms: Vec<MetaSchema> = schema.one_of.iter().filter_map(|form| self.resolved(form)).collect();
        schema.properties.extend(forms.into_iter().rev().flat_map(|form| form.properties));
        schema.all_of.iter().for_each(|part| self.look_at(value, part, at));
        match value {
            Value::Object(fields) if !schema.properties.is_empty() => self.look_into(fields, &schema, at),
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate() {
                    let Some(schema) = schema.items.as_deref().filter(|_| self.found < MAX_FIELDS) else { return };
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
            if let Some((_, schema)) = schema.properties.iter().find(|(known, _)| *known == &**name) {
                self.look_at(value, schema, &format!("{at}/{name}"));
            } else if schema.additional_properties.is_none() && self.found < MAX_FIELDS {
                let known: Vec<&str> = schema.properties.iter().map(|(known, _)| *known).collect();
                self.wrong.add(format!("{at}/{}", segment(&excerpt_of(name))), names::unknown("field", name, &known));
                self.found += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use poem_openapi::Object;

    use super::*;

    #[derive(Object)]
    struct Inner {
        #[oai(nullable)]
        title: Option<String>,
    }

    #[derive(Object)]
    struct Outer {
        #[oai(nullable)]
        payload: Option<crate::wire::json::AnyObject>,
        #[oai(nullable)]
        inner: Option<Inner>,
        items: Vec<Inner>,
    }

    fn error(body: &str) -> Option<String> {
        unknown_fields::<Outer>(body.as_bytes()).map(|error| error.to_string())
    }

    #[test]
    fn unknown_fields_are_found_at_every_level_but_in_open_objects() {
        assert_eq!(error(r#"{"payload": {"a": 1}, "inner": {"title": "t"}, "items": [{}, {"title": null}]}"#), None);
        let found = error(r#"{"paylod": {}, "inner": {"titel": "t"}, "items": [{"title": "t"}, {"x": 1}]}"#);
        let expected = "/paylod: unknown field; did you mean 'payload'? allowed: payload, inner, items; /inner/titel: \
                        unknown field; did you mean 'title'? allowed: title; /items/1/x: unknown field; allowed: title";
        assert_eq!(found.as_deref(), Some(expected));
        assert_eq!(error("{"), None, "a body that is no JSON has no fields");
    }
}
