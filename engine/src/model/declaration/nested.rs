//! The nested parts of a field: the items of an array, and the fields of an object.

use super::{DefinitionReader, field_value, typed};
use crate::model::definition::{Field, FieldType, Fold};
use crate::model::hint;
use crate::model::value::{Object, Value};
use crate::model::violation::Violations;

/// The keys allowed in the description of an array's items.
pub const ITEM_KEYS: [&str; 9] =
    ["type", "enum", "min", "max", "pattern", "reference_type", "must_exist", "items", "fields"];
/// The keys that are not allowed in a nested field, because they apply to the state as a whole.
const OUTER_KEYS: [&str; 3] = ["default", "label", "fold"];
/// The maximum number of fields that may enclose a field.
const MAX_DEPTH: usize = 8;

/// Rejects the keys that are not allowed in a nested field.
pub(super) fn reject_top_level_keys(object: &Object, at: &str, violations: &mut Violations) {
    for key in OUTER_KEYS.into_iter().filter(|key| object.given(key).is_some()) {
        violations.add(format!("{at}/{key}"), "allowed only on a top-level field of the type, not on a nested field");
    }
}

impl DefinitionReader<'_> {
    /// Parses the keys `items` and `fields` in the definition of a field. `depth` is the number of fields that enclose
    /// the field.
    pub(super) fn nested(&mut self, object: &Object, field: &mut Field, at: &str, depth: usize) {
        for (key, value, wanted) in
            [("items", object.given("items"), FieldType::Array), ("fields", object.given("fields"), FieldType::Object)]
        {
            let Some(value) = value else { continue };
            let at = format!("{at}/{key}");
            if field.field_type != wanted {
                self.violations.add(at, format!("allowed only on a field of type {}", wanted.name()));
            } else if depth >= MAX_DEPTH {
                self.violations.add(at, format!("fields may nest at most {MAX_DEPTH} levels deep"));
            } else if wanted == FieldType::Array {
                field.items = self.item(value, &at, depth + 1).map(Box::new);
            } else {
                field.fields = self.fields(Some(value), &at, depth + 1).into();
            }
        }
    }

    fn item(&mut self, value: &Value, at: &str, depth: usize) -> Option<Field> {
        let expected = "an object such as {\"type\": \"string\"}";
        let object = typed(Some(value), at, expected, Value::as_object, &mut self.violations)?;
        hint::add_unknown(object, &ITEM_KEYS, at, &mut self.violations);
        self.options(object, Some(""), at, depth)
    }
}

/// Converts the description of an array's items to the form that clients send.
pub(super) fn item_value(item: &Field) -> Value {
    debug_assert!(item.fold == Fold::Last && item.default.is_none(), "items have neither a fold nor a default");
    match field_value(item) {
        Value::Object(field) => {
            let keys = field.iter().filter(|(key, _)| ITEM_KEYS.contains(&&***key));
            keys.map(|(key, value)| (key.clone(), value.clone())).collect::<Object>().into()
        }
        other => other,
    }
}
