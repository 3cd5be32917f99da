//! Parses and strictly checks the type definitions that clients send, and converts definitions back to the form that
//! clients send.

use std::sync::Arc;

use super::definition::{Definition, Field, FieldType, Fold};
use super::depth;
use super::excerpt::excerpt;
use super::id::is_valid_name;
use super::pattern::{Matching, Patterns};
use super::payload;
use super::value::{Object, Value};
use super::violation::{Violation, Violations, segment};

/// The keys allowed in a definition, and the keys allowed in a field of a definition.
pub const KEYS: [&str; 5] = ["type_name", "display_name", "traits", "fields", "events"];
pub const FIELD_KEYS: [&str; 12] = [
    "name",
    "type",
    "required",
    "default",
    "enum",
    "min",
    "max",
    "pattern",
    "label",
    "personal",
    "fold",
    "reference_type",
];
/// Field names that have another meaning in the rows of aggregates.
const RESERVED: [&str; 2] = ["aggregate_type", "project_id"];
/// Maximum number of fields of a type.
const MAX_FIELDS: usize = 500;
/// Maximum number of patterns in a type, counting the fields of the type and of its events.
const MAX_PATTERNS: usize = 100;
/// Maximum total size of a type's compiled patterns, in bytes.
const MAX_PATTERN_BYTES: usize = 8 << 20;

/// The state while the patterns of one definition are compiled: the number and total size of the patterns so far.
struct Compiling<'p> {
    matching: Matching<'p>,
    count: usize,
    bytes: usize,
}

/// Parses a definition that a client sent. The error lists every violation.
///
/// This function compiles the patterns, which takes time. It must not run on threads that serve requests.
pub fn parse(body: &Value, patterns: &Patterns) -> Result<Definition, Vec<Violation>> {
    let (definition, violations) =
        read_with(body, &mut Some(Compiling { matching: Matching::new(patterns), count: 0, bytes: 0 }));
    if violations.is_empty() { Ok(definition) } else { Err(violations) }
}

/// Reads a stored definition without compiling its patterns. Returns the usable parts, and every violation.
pub fn read(body: &Value) -> (Definition, Vec<Violation>) {
    read_with(body, &mut None)
}

fn read_with(body: &Value, compiling: &mut Option<Compiling>) -> (Definition, Vec<Violation>) {
    let mut violations = Violations::default();
    let Some(object) = body.as_object() else {
        violations.add("", "a type definition must be an object");
        return (Definition::new("", "", Vec::new(), Vec::new()), violations.into_vec());
    };
    refuse_unknown(object, &KEYS, "", &mut violations);
    let type_name = match object.get("type_name").map(|value| (value, value.as_str())) {
        Some((_, Some(name))) if is_valid_name(name) => name,
        Some((other, _)) => {
            violations.add(
                "/type_name",
                format!(
                    "{} is not a type name: expected a lower-case letter, then up to 63 of a-z 0-9 _ -",
                    excerpt(other)
                ),
            );
            ""
        }
        None => {
            violations.add("/type_name", "required");
            ""
        }
    };
    let display_name = match object.get("display_name") {
        None | Some(Value::Null) => type_name.to_owned(),
        Some(Value::String(name)) => name.to_string(),
        Some(other) => {
            violations.add("/display_name", format!("expected a string, found {}", other.type_name()));
            String::new()
        }
    };
    let traits = parse_traits(object.get("traits"), &mut violations);
    let fields = parse_fields(object.get("fields"), "/fields", compiling, &mut violations);
    let events = parse_events(object.get("events"), type_name, compiling, &mut violations);
    let mut definition = Definition::new(type_name, &display_name, traits, fields);
    definition.events = events;
    (definition, violations.into_vec())
}

/// Converts a definition to the form that clients send. Parsing the result returns the same definition.
pub fn to_value(definition: &Definition) -> Object {
    let mut object = Object::new();
    object.push("type_name", definition.type_name.clone());
    object.push("display_name", definition.display_name.clone());
    object.push("traits", definition.traits_value());
    object.push("fields", definition.fields().iter().map(field_value).collect::<Vec<_>>());
    object.push("events", Value::Object(definition.events.clone()));
    object
}

fn field_value(field: &Field) -> Value {
    let mut object = Object::new();
    object.push("name", field.name.clone());
    object.push("type", field.field_type.name());
    object.push("required", field.required);
    let optional = [
        ("default", field.default.clone()),
        ("enum", field.allowed.clone().map(Value::from)),
        ("min", field.min.map(number)),
        ("max", field.max.map(number)),
        ("pattern", field.pattern.clone().map(Value::from)),
        ("label", field.label.then_some(Value::Bool(true))),
        ("personal", field.personal.then_some(Value::Bool(true))),
        ("fold", (field.fold != Fold::Last).then(|| Value::from(field.fold.name()))),
        ("reference_type", field.reference_type.clone().map(Value::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            object.push(name, value);
        }
    }
    object.into()
}

/// Converts a limit to a value. A whole number becomes an integer.
fn number(bound: f64) -> Value {
    if bound.fract() == 0.0 && bound.abs() < 9e15 { Value::Int(bound as i64) } else { Value::Double(bound) }
}

fn refuse_unknown(object: &Object, known: &[&str], at: &str, violations: &mut Violations) {
    for name in object.keys().filter(|name| !known.contains(&&***name)) {
        violations
            .add(format!("{at}/{}", segment(name)), format!("unknown key; allowed keys are {}", known.join(", ")));
    }
}

fn parse_traits(value: Option<&Value>, violations: &mut Violations) -> Vec<Arc<str>> {
    let items = match value {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(other) => {
            violations.add("/traits", format!("expected an array of strings, found {}", other.type_name()));
            return Vec::new();
        }
    };
    let mut traits: Vec<Arc<str>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.as_str().filter(|name| is_valid_name(name)) {
            Some(name) if traits.iter().any(|known| &**known == name) => {}
            Some(name) => traits.push(name.into()),
            None => violations.add(format!("/traits/{index}"), format!("{} is not a trait name", excerpt(item))),
        }
    }
    traits
}

fn parse_fields(
    value: Option<&Value>,
    at: &str,
    compiling: &mut Option<Compiling>,
    violations: &mut Violations,
) -> Vec<Field> {
    let items = match value {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(other) => {
            violations.add(at, format!("expected an array of field definitions, found {}", other.type_name()));
            return Vec::new();
        }
    };
    if items.len() > MAX_FIELDS {
        violations.add(at, format!("{} fields; at most {MAX_FIELDS} are allowed", items.len()));
        return Vec::new();
    }
    let mut fields: Vec<Field> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("{at}/{index}");
        let Some(field) = parse_field(item, &at, compiling, violations) else { continue };
        if fields.iter().any(|known| known.name == field.name) {
            violations.add(format!("{at}/name"), format!("field '{}' is defined twice", field.name));
        } else {
            fields.push(field);
        }
    }
    for label in fields.iter().filter(|field| field.label).skip(1) {
        violations.add(at, format!("field '{}': only one field may be the label", label.name));
    }
    fields
}

fn parse_field(
    value: &Value,
    at: &str,
    compiling: &mut Option<Compiling>,
    violations: &mut Violations,
) -> Option<Field> {
    let Some(object) = value.as_object() else {
        violations.add(at, format!("expected an object, found {}", value.type_name()));
        return None;
    };
    refuse_unknown(object, &FIELD_KEYS, at, violations);
    let name = match object.get("name").map(|value| (value, value.as_str())) {
        Some((_, Some(name))) if payload::is_field_name(name) && !RESERVED.contains(&name) => Some(name),
        Some((other, _)) => {
            let message = format!(
                "{} is not a field name: a name is not empty, not reserved, and starts with neither _ nor $",
                excerpt(other)
            );
            violations.add(format!("{at}/name"), message);
            None
        }
        None => {
            violations.add(format!("{at}/name"), "required");
            None
        }
    };
    let field_type = choice(object.get("type"), &FieldType::ALL, FieldType::name, &format!("{at}/type"), violations);
    if object.get("type").is_none_or(Value::is_null) {
        violations.add(format!("{at}/type"), "required");
    }
    let (name, field_type) = (name?, field_type?);
    let mut field = Field::new(name, field_type);
    for (key, slot) in
        [("required", &mut field.required), ("label", &mut field.label), ("personal", &mut field.personal)]
    {
        match object.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Bool(flag)) => *slot = *flag,
            Some(other) => {
                violations.add(format!("{at}/{key}"), format!("expected a boolean, found {}", other.type_name()))
            }
        }
    }
    for (key, slot) in [("min", &mut field.min), ("max", &mut field.max)] {
        match object.get(key).filter(|value| !value.is_null()) {
            None => {}
            Some(bound) if bound.is_number() => *slot = bound.as_f64(),
            Some(other) => {
                violations.add(format!("{at}/{key}"), format!("expected a number, found {}", other.type_name()))
            }
        }
    }
    field.fold =
        choice(object.get("fold"), &Fold::ALL, Fold::name, &format!("{at}/fold"), violations).unwrap_or_default();
    field.pattern = parse_pattern(object.get("pattern"), at, compiling, violations);
    field.allowed = parse_allowed(object.get("enum"), at, violations);
    field.reference_type = parse_reference_type(object.get("reference_type"), field_type, at, violations);
    // Generated clients send null for missing keys. A null default therefore counts as missing, and a required field
    // stays required.
    if let Some(default) = object.get("default").filter(|value| !value.is_null()) {
        let at = format!("{at}/default");
        depth::check_field(default, field.fold, &at, violations);
        let matching = compiling.as_ref().map(|compiling| &compiling.matching);
        payload::check_value(&field, default, None, matching, &at, violations);
        field.default = Some(default.clone());
    }
    Some(field)
}

fn choice<T: Copy>(
    value: Option<&Value>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
    at: &str,
    violations: &mut Violations,
) -> Option<T> {
    let value = value.filter(|value| !value.is_null())?;
    let found = value.as_str().and_then(|text| all.iter().copied().find(|choice| name(*choice) == text));
    if found.is_none() {
        let names: Vec<_> = all.iter().map(|choice| name(*choice)).collect();
        violations.add(at, format!("{} is not one of {}", excerpt(value), names.join(", ")));
    }
    found
}

fn parse_pattern(
    value: Option<&Value>,
    at: &str,
    compiling: &mut Option<Compiling>,
    violations: &mut Violations,
) -> Option<Arc<str>> {
    let value = value.filter(|value| !value.is_null())?;
    let at = format!("{at}/pattern");
    let Value::String(text) = value else {
        violations.add(at, format!("expected a regular expression, found {}", value.type_name()));
        return None;
    };
    match compiling.as_mut().map(|compiling| compiling.add(text)) {
        Some(Err(reason)) => {
            violations.add(at, reason);
            None
        }
        Some(Ok(())) | None => Some(text.clone()),
    }
}

impl Compiling<'_> {
    /// Compiles one more pattern. The error describes what is wrong with the pattern, or which limit it exceeds.
    fn add(&mut self, pattern: &str) -> Result<(), String> {
        self.count += 1;
        if self.count > MAX_PATTERNS {
            return Err(format!("a type may have at most {MAX_PATTERNS} patterns"));
        }
        if self.bytes > MAX_PATTERN_BYTES {
            return Err(format!("the compiled patterns of a type may have at most {MAX_PATTERN_BYTES} bytes together"));
        }
        match self.matching.compiled(pattern) {
            Ok(compiled) => {
                self.bytes += compiled.program_bytes();
                Ok(())
            }
            Err(reason) => Err(format!("invalid regular expression: {reason}")),
        }
    }
}

fn parse_allowed(value: Option<&Value>, at: &str, violations: &mut Violations) -> Option<Vec<Value>> {
    match value.filter(|value| !value.is_null())? {
        Value::Array(items) if !items.is_empty() => Some(items.to_vec()),
        other => {
            violations.add(format!("{at}/enum"), format!("expected a non-empty array, found {}", excerpt(other)));
            None
        }
    }
}

fn parse_reference_type(
    value: Option<&Value>,
    field_type: FieldType,
    at: &str,
    violations: &mut Violations,
) -> Option<Arc<str>> {
    let value = value.filter(|value| !value.is_null())?;
    match value.as_str().filter(|name| is_valid_name(name)) {
        Some(name) if field_type == FieldType::Reference => Some(name.into()),
        Some(_) => {
            violations.add(format!("{at}/reference_type"), "allowed only on a field of type reference");
            None
        }
        None => {
            violations.add(format!("{at}/reference_type"), format!("{} is not a type name", excerpt(value)));
            None
        }
    }
}

/// Parses the event schemas: an object that maps each event type to `{fields: [...]}`. The fields are checked like those
/// of the aggregate type.
fn parse_events(
    value: Option<&Value>,
    type_name: &str,
    compiling: &mut Option<Compiling>,
    violations: &mut Violations,
) -> Arc<Object> {
    let object = match value {
        None | Some(Value::Null) => return Arc::default(),
        Some(Value::Object(object)) => object,
        Some(other) => {
            violations.add("/events", format!("expected an object, found {}", other.type_name()));
            return Arc::default();
        }
    };
    for (name, schema) in object.iter() {
        let at = format!("/events/{}", segment(name));
        if !name.strip_prefix(type_name).and_then(|rest| rest.strip_prefix('.')).is_some_and(is_valid_name) {
            violations.add(&at, format!("expected an event type of the form {type_name}.<verb>"));
        }
        match schema.as_object() {
            None if schema.is_null() => {}
            Some(schema) => {
                refuse_unknown(schema, &["description", "fields"], &at, violations);
                parse_fields(schema.get("fields"), &format!("{at}/fields"), compiling, violations);
            }
            None => violations.add(&at, format!("expected an object, found {}", schema.type_name())),
        }
    }
    let declared = object.iter().filter(|(_, schema)| !schema.is_null());
    Arc::new(declared.map(|(name, schema)| (name.clone(), schema.clone())).collect())
}
