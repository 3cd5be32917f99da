//! The declared events of a type, with the fields of their payloads. The declarations describe the payloads to readers
//! of the schema. If the type rejects unknown fields, the payload of a declared event may still contain the fields that
//! are declared for this event.

use std::sync::Arc;

use super::{DefinitionReader, typed};
use crate::model::hint;
use crate::model::id::is_valid_name;
use crate::model::value::{Object, Value};
use crate::model::violation::segment;

impl DefinitionReader<'_> {
    /// Parses the event schemas: an object that maps each event type to `{description, fields}`. The fields are checked
    /// like the fields of the aggregate type.
    pub(super) fn events(&mut self, value: Option<&Value>, type_name: &str) -> Arc<Object> {
        let object = typed(value, "/events", "an object", Value::as_object, &mut self.violations);
        let Some(object) = object else { return Arc::default() };
        for (name, schema) in object.iter() {
            let at = format!("/events/{}", segment(name));
            if !name.strip_prefix(type_name).and_then(|rest| rest.strip_prefix('.')).is_some_and(is_valid_name) {
                let message = format!(
                    "expected {type_name}.<verb>, where <verb> has at most 64 lower-case letters, digits, _ and -, and \
                     begins with a letter"
                );
                self.violations.add(&at, message);
            }
            if let Some(schema) = typed(Some(schema), &at, "an object", Value::as_object, &mut self.violations) {
                hint::add_unknown(schema, &["description", "fields"], &at, &mut self.violations);
                self.fields(schema.get("fields"), &format!("{at}/fields"), 0);
            }
        }
        let declared = object.iter().filter(|(_, schema)| !schema.is_null());
        Arc::new(declared.map(|(name, schema)| (name.clone(), schema.clone())).collect())
    }
}
