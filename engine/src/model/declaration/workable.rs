//! Checks that the options of a field are compatible with each other and with the type of the field. An incompatible
//! option would have no useful effect.

use crate::model::definition::{Field, FieldType, Fold};
use crate::model::excerpt::excerpt;
use crate::model::payload;
use crate::model::violation::Violations;

/// Adds a violation for each option that cannot work for the field, and for a name with a dot. `at` is the pointer of
/// the field.
pub(super) fn check(field: &Field, at: &str, violations: &mut Violations) {
    if field.name.contains('.') {
        let message = "a field name must not contain a dot, because pipelines read such a name as a path; \
                       nest fields with \"type\": \"object\" and \"fields\"";
        violations.add(format!("{at}/name"), message);
    }
    if field.fold == Fold::Sum && !is_number(field.field_type) {
        violations.add(format!("{at}/fold"), "`sum` is allowed only on a field of type integer, number or decimal");
    }
    check_bounds(field, at, violations);
    if field.pattern.is_some() && !is_text(field.field_type) {
        violations.add(format!("{at}/pattern"), "allowed only on a field of type string or reference");
    }
    for (index, value) in field.allowed.iter().flatten().enumerate() {
        if !value.is_null() && !payload::fits(field, value, None) {
            let message = format!("expected {}, found {}", field.field_type.name(), excerpt(value));
            violations.add(format!("{at}/enum/{index}"), message);
        }
    }
}

fn check_bounds(field: &Field, at: &str, violations: &mut Violations) {
    for (key, bound) in [("min", field.min), ("max", field.max)] {
        if bound.is_some() && !is_measured(field.field_type) {
            let message = "allowed only on a field of type integer, number, decimal, string, reference or array";
            violations.add(format!("{at}/{key}"), message);
        }
    }
    if let (Some(min), Some(max)) = (field.min, field.max)
        && min > max
    {
        violations.add(format!("{at}/min"), format!("the minimum {min} is greater than the maximum {max}"));
    }
}

fn is_number(field_type: FieldType) -> bool {
    matches!(field_type, FieldType::Number | FieldType::Integer | FieldType::Decimal)
}

fn is_text(field_type: FieldType) -> bool {
    matches!(field_type, FieldType::String | FieldType::Reference)
}

fn is_measured(field_type: FieldType) -> bool {
    is_number(field_type) || is_text(field_type) || field_type == FieldType::Array
}

#[cfg(test)]
mod tests {
    use crate::model::declaration::{parse, parse_exported};
    use crate::model::json;
    use crate::model::pattern::Patterns;

    fn refused(field: &str) -> Vec<String> {
        let body = format!(r#"{{"type_name": "note", "fields": [{field}]}}"#);
        let body = json::parse(body.as_bytes()).expect("JSON");
        let patterns = Patterns::default();
        parse_exported(&body, &patterns).expect("an export may have contradictory options");
        let violations = parse(&body, &patterns).map(|_| Vec::new()).unwrap_or_else(|violations| violations);
        violations.into_iter().map(|violation| violation.pointer).collect()
    }

    #[test]
    fn unusable_field_names_and_options_are_accepted_only_from_exports() {
        for (field, pointer) in [
            (r#"{"name": "a.b", "type": "string"}"#, "/fields/0/name"),
            (r#"{"name": "a", "type": "string", "fold": "sum"}"#, "/fields/0/fold"),
            (r#"{"name": "a", "type": "date", "fold": "sum"}"#, "/fields/0/fold"),
            (r#"{"name": "a", "type": "number", "min": 2, "max": 1}"#, "/fields/0/min"),
            (r#"{"name": "a", "type": "boolean", "max": 1}"#, "/fields/0/max"),
            (r#"{"name": "a", "type": "number", "pattern": "b"}"#, "/fields/0/pattern"),
            (r#"{"name": "a", "type": "number", "enum": [1, "b"]}"#, "/fields/0/enum/1"),
            (
                r#"{"name": "a", "type": "array", "items": {"type": "number", "min": 2, "max": 1}}"#,
                "/fields/0/items/min",
            ),
            (
                r#"{"name": "a", "type": "object", "fields": [{"name": "b.c", "type": "string"}]}"#,
                "/fields/0/fields/0/name",
            ),
        ] {
            assert_eq!(refused(field), [pointer], "{field}");
        }
    }

    #[test]
    fn options_that_fit_the_type_of_the_field_are_accepted() {
        for field in [
            r#"{"name": "a", "type": "decimal", "fold": "sum", "min": 1, "max": 1}"#,
            r#"{"name": "a", "type": "string", "fold": "append", "pattern": "b", "enum": ["b", null]}"#,
            r#"{"name": "a", "type": "array", "fold": "union", "max": 3}"#,
        ] {
            assert_eq!(refused(field), Vec::<String>::new(), "{field}");
        }
    }
}
