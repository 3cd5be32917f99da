//! Parses and strictly checks the type definitions that clients send, and converts definitions back to the form that
//! clients send.

mod events;
mod nested;
mod workable;

use std::str::FromStr;
use std::sync::Arc;

use strum::VariantArray;

pub use self::nested::ITEM_KEYS;
use super::closed_set::names;
use super::definition::{Definition, Field, FieldType, Fold, MAX_SEARCH_WEIGHT, UnknownFields};
use super::depth;
use super::excerpt::excerpt;
use super::hint;
use super::id::{NAME_FORM, is_valid_name};
use super::pattern::{PatternMatcher, Patterns};
use super::payload::{self, PayloadCheck};
use super::value::{Object, Value};
use super::violation::{ValueLocation, Violation, Violations};
use super::written::numbers::WrittenForm;

/// The keys allowed in a definition.
pub const KEYS: [&str; 6] = ["type_name", "display_name", "traits", "fields", "events", "unknown"];
/// The keys allowed in a field of a definition.
pub const FIELD_KEYS: [&str; 17] = [
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
    "search",
    "search_weight",
    "fold",
    "reference_type",
    "must_exist",
    "items",
    "fields",
];
/// The maximum number of fields of a type, including fields that are nested in fields and the descriptions of array
/// items. The same limit applies to the fields of each event, without their nested fields.
const MAX_FIELDS: usize = 500;
/// The maximum number of patterns in a type, including the patterns of its events.
const MAX_PATTERNS: usize = 100;
/// The limit on the total size of a type's compiled patterns, in bytes. The pattern that exceeds the limit is still
/// accepted, and every further pattern is rejected.
const MAX_PATTERN_BYTES: usize = 8 << 20;

/// The compilation of one definition's patterns, with the number and the total size of the patterns so far.
struct PatternCompilation<'p> {
    matching: PatternMatcher<'p>,
    count: usize,
    bytes: usize,
    /// Whether the definition is new and not from an export. A new definition with contradictory options is rejected.
    is_new: bool,
}

/// The reader of one definition. The reader collects the violations.
struct DefinitionReader<'p> {
    /// The compilation of the patterns, or `None` if the patterns are not compiled.
    compiling: Option<PatternCompilation<'p>>,
    violations: Violations,
}

/// Parses a definition that a client sent. The error lists the violations, up to the limit of [`Violations`].
///
/// This function compiles the patterns, which takes time. It must not run on threads that serve requests.
pub fn parse(body: &Value, patterns: &Patterns) -> Result<Definition, Vec<Violation>> {
    parse_with(body, patterns, true)
}

/// Parses a definition from an export. The definition may have options that contradict each other, because earlier
/// versions of the program accepted such options.
pub fn parse_exported(body: &Value, patterns: &Patterns) -> Result<Definition, Vec<Violation>> {
    parse_with(body, patterns, false)
}

fn parse_with(body: &Value, patterns: &Patterns, is_new: bool) -> Result<Definition, Vec<Violation>> {
    let compiling = PatternCompilation { matching: PatternMatcher::new(patterns), count: 0, bytes: 0, is_new };
    let (definition, violations) = read_with(body, Some(compiling));
    if violations.is_empty() { Ok(definition) } else { Err(violations) }
}

/// Reads a stored definition without compiling its patterns. Returns the usable parts, and the violations, up to the
/// limit of [`Violations`].
pub fn read(body: &Value) -> (Definition, Vec<Violation>) {
    read_with(body, None)
}

fn read_with(body: &Value, compiling: Option<PatternCompilation>) -> (Definition, Vec<Violation>) {
    let mut reader = DefinitionReader { compiling, violations: Violations::default() };
    let definition = reader.definition(body);
    (definition, reader.violations.into_vec())
}

impl DefinitionReader<'_> {
    fn definition(&mut self, body: &Value) -> Definition {
        let violations = &mut self.violations;
        let Some(object) = body.as_object() else {
            violations.add("", "a type definition must be an object");
            return Definition::new("", "", Vec::new(), Vec::new());
        };
        hint::add_unknown(object, &KEYS, "", violations);
        let type_name = match object.get("type_name").map(|value| (value, value.as_str())) {
            Some((_, Some(name))) if is_valid_name(name) => Some(name),
            Some((other, _)) => {
                violations.refuse("/type_name", format!("{} is not a type name: expected {NAME_FORM}", excerpt(other)))
            }
            None => violations.refuse("/type_name", "required"),
        };
        let type_name = type_name.unwrap_or_default();
        let display_name = match object.given("display_name") {
            None => type_name,
            given => typed(given, "/display_name", "a string", Value::as_str, violations).unwrap_or_default(),
        };
        let traits = parse_traits(object.get("traits"), violations);
        let fields = self.fields(object.get("fields"), "/fields", 0);
        let count: usize = fields.iter().map(Field::count).sum();
        if count > MAX_FIELDS {
            let message = format!("{count} fields, including nested fields; at most {MAX_FIELDS} are allowed");
            self.violations.add("/fields", message);
        }
        let mut definition = Definition::new(type_name, display_name, traits, fields);
        definition.events = self.events(object.get("events"), type_name);
        let unknown = choice::<UnknownFields>(object.get("unknown"), "/unknown", &mut self.violations);
        definition.unknown = unknown.unwrap_or_default();
        definition
    }

    /// Parses a list of fields. `depth` is the number of fields that enclose the list.
    fn fields(&mut self, value: Option<&Value>, at: &str, depth: usize) -> Vec<Field> {
        let items = typed(value, at, "an array of field definitions", Value::as_array, &mut self.violations);
        let items = items.unwrap_or_default();
        if items.len() > MAX_FIELDS {
            self.violations.add(at, format!("{} fields; at most {MAX_FIELDS} are allowed", items.len()));
            return Vec::new();
        }
        let mut fields: Vec<Field> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = format!("{at}/{index}");
            let Some(field) = self.field(item, &at, depth) else { continue };
            if fields.iter().any(|known| known.name == field.name) {
                self.violations.add(format!("{at}/name"), format!("field '{}' is defined twice", field.name));
            } else {
                fields.push(field);
            }
        }
        for label in fields.iter().filter(|field| field.label).skip(1) {
            self.violations.add(at, format!("field '{}': only one field may be the label", label.name));
        }
        fields
    }

    fn field(&mut self, value: &Value, at: &str, depth: usize) -> Option<Field> {
        let violations = &mut self.violations;
        let Some(object) = value.as_object() else {
            return violations.refuse(at, format!("expected an object, found {}", value.type_name()));
        };
        hint::add_unknown(object, &FIELD_KEYS, at, violations);
        if depth > 0 {
            nested::reject_top_level_keys(object, at, violations);
        }
        let name = match object.get("name").map(|value| (value, value.as_str())) {
            Some((_, Some(name))) if payload::is_field_name(name) && (depth > 0 || !payload::is_reserved(name)) => {
                Some(name)
            }
            Some((other, _)) => {
                let expected = "expected a name that is not empty, starts with neither _ nor $, and contains no null \
                                character; at the top level, aggregate_type and project_id are not allowed either";
                violations.refuse(format!("{at}/name"), format!("{} is not a field name: {expected}", excerpt(other)))
            }
            None => violations.refuse(format!("{at}/name"), "required"),
        };
        self.options(object, name, at, depth)
    }

    /// Parses all settings of a field except its name.
    fn options(&mut self, object: &Object, name: Option<&str>, at: &str, depth: usize) -> Option<Field> {
        let violations = &mut self.violations;
        let field_type = choice::<FieldType>(object.get("type"), &format!("{at}/type"), violations);
        if object.get("type").is_none_or(Value::is_null) {
            violations.add(format!("{at}/type"), "required");
        }
        let (name, field_type) = (name?, field_type?);
        let mut field = Field::new(name, field_type);
        let flags = [
            ("required", &mut field.required),
            ("label", &mut field.label),
            ("personal", &mut field.personal),
            ("search", &mut field.search),
            ("must_exist", &mut field.must_exist),
        ];
        let place = ValueLocation::At(at);
        for (key, slot) in flags {
            let place = ValueLocation::Field(&place, key);
            *slot = typed(object.get(key), place, "a boolean", Value::as_bool, violations).unwrap_or_default();
        }
        for (key, slot) in [("min", &mut field.min), ("max", &mut field.max)] {
            let place = ValueLocation::Field(&place, key);
            *slot = typed(object.get(key), place, "a number", Value::as_f64, violations);
        }
        field.fold = choice::<Fold>(object.get("fold"), &format!("{at}/fold"), violations).unwrap_or_default();
        parse_search(object, &mut field, at, violations);
        field.pattern = self.pattern(object.get("pattern"), at);
        field.allowed = parse_allowed(object.get("enum"), at, &mut self.violations);
        field.reference_type = self.reference_type(object.get("reference_type"), field_type, at);
        if field.must_exist && (field_type != FieldType::Reference || object.given("default").is_some()) {
            let message = "allowed only on a field of type reference that has no `default`";
            self.violations.add(format!("{at}/must_exist"), message);
        }
        self.nested(object, &mut field, at, depth);
        // Generated clients send null for missing keys. A null default therefore counts as missing, and a required
        // field stays required.
        if let Some(default) = object.given("default") {
            let at = format!("{at}/default");
            depth::check_field(default, field.fold, &at, &mut self.violations);
            let mut checking = PayloadCheck::new(&mut self.violations);
            checking.matching = self.compiling.as_ref().map(|compiling| &compiling.matching);
            checking.check_value(&field, default, WrittenForm::default(), ValueLocation::At(&at));
            field.default = Some(default.clone());
        }
        if self.compiling.as_ref().is_some_and(|compiling| compiling.is_new) {
            workable::check(&field, at, &mut self.violations);
        }
        Some(field)
    }

    fn pattern(&mut self, value: Option<&Value>, at: &str) -> Option<Arc<str>> {
        let at = format!("{at}/pattern");
        let text = typed(value, &at, "a regular expression", Value::shared_str, &mut self.violations)?;
        match self.compiling.as_mut().map(|compiling| compiling.add(&text)) {
            Some(Err(reason)) => self.violations.refuse(at, reason),
            Some(Ok(())) | None => Some(text),
        }
    }

    fn reference_type(&mut self, value: Option<&Value>, field_type: FieldType, at: &str) -> Option<Arc<str>> {
        let (value, at) = (value.filter(|value| !value.is_null())?, format!("{at}/reference_type"));
        match value.as_str().filter(|name| is_valid_name(name)) {
            Some(name) if field_type == FieldType::Reference => Some(name.into()),
            Some(_) => self.violations.refuse(at, "allowed only on a field of type reference"),
            None => self.violations.refuse(at, format!("{} is not a type name: expected {NAME_FORM}", excerpt(value))),
        }
    }
}

/// Converts a definition to the form that clients send. This form contains neither the revision nor the flags `builtin`
/// and `managed`.
pub fn to_value(definition: &Definition) -> Object {
    let mut object = Object::new();
    object.push("type_name", definition.type_name.clone());
    object.push("display_name", definition.display_name.clone());
    object.push("traits", definition.traits_value());
    object.push("fields", definition.fields().iter().map(field_value).collect::<Value>());
    object.push("events", Value::Object(definition.events.clone()));
    if definition.unknown != UnknownFields::default() {
        object.push("unknown", definition.unknown.name());
    }
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
        ("search", field.search.then_some(Value::Bool(true))),
        ("search_weight", (field.search_weight != 1).then(|| Value::Int(field.search_weight.into()))),
        ("fold", (field.fold != Fold::Last).then(|| Value::from(field.fold.name()))),
        ("reference_type", field.reference_type.clone().map(Value::from)),
        ("must_exist", field.must_exist.then_some(Value::Bool(true))),
        ("items", field.items.as_deref().map(nested::item_value)),
        ("fields", (!field.fields.is_empty()).then(|| field.fields.iter().map(field_value).collect())),
    ];
    for (name, value) in optional {
        object.push_some(name, value);
    }
    object.into()
}

/// Converts a limit to a value. A whole number between -9e15 and 9e15 becomes an integer.
fn number(bound: f64) -> Value {
    if bound.fract() == 0.0 && bound.abs() < 9e15 { Value::Int(bound as i64) } else { Value::Double(bound) }
}

/// Returns the content of a value, as read by `read`. Returns `None` if the value is missing or null. Also returns
/// `None` and adds a violation if `read` returns `None`, because the value is not of the `expected` kind.
fn typed<'v, T>(
    value: Option<&'v Value>,
    at: impl Into<String>,
    expected: &str,
    read: fn(&'v Value) -> Option<T>,
    violations: &mut Violations,
) -> Option<T> {
    let value = value.filter(|value| !value.is_null())?;
    let content = read(value);
    if content.is_none() {
        violations.add(at, format!("expected {expected}, found {}", value.type_name()));
    }
    content
}

fn parse_traits(value: Option<&Value>, violations: &mut Violations) -> Vec<Arc<str>> {
    let mut traits: Vec<Arc<str>> = Vec::new();
    let items = typed(value, "/traits", "an array of strings", Value::as_array, violations);
    for (index, item) in items.unwrap_or_default().iter().enumerate() {
        match item.as_str().filter(|name| is_valid_name(name)) {
            Some(name) if traits.iter().any(|known| &**known == name) => {}
            Some(name) => traits.push(name.into()),
            None => violations.add(
                format!("/traits/{index}"),
                format!("{} is not a trait name: expected {NAME_FORM}", excerpt(item)),
            ),
        }
    }
    traits
}

/// Parses the search weight of a field. Rejects `search` on a field that is neither a string nor an array.
fn parse_search(object: &Object, field: &mut Field, at: &str, violations: &mut Violations) {
    if field.search && !matches!(field.field_type, FieldType::String | FieldType::Array) {
        violations.add(format!("{at}/search"), "allowed only on a field of type string or array");
    }
    let Some(weight) = object.given("search_weight") else { return };
    let whole = weight.as_int().and_then(|weight| u32::try_from(weight).ok());
    match whole.filter(|weight| (1..=MAX_SEARCH_WEIGHT).contains(weight)) {
        Some(_) if !field.search => {
            violations.add(format!("{at}/search_weight"), "allowed only on a field with \"search\": true");
        }
        Some(weight) => field.search_weight = weight,
        None => violations.add(
            format!("{at}/search_weight"),
            format!("{} is not an integer from 1 to {MAX_SEARCH_WEIGHT}", excerpt(weight)),
        ),
    }
}

fn choice<T: VariantArray + Copy + FromStr + Into<&'static str>>(
    value: Option<&Value>,
    at: &str,
    violations: &mut Violations,
) -> Option<T> {
    let value = value.filter(|value| !value.is_null())?;
    let found = value.as_str().and_then(|text| text.parse().ok());
    if found.is_none() {
        violations.add(at, format!("{} is not one of {}", excerpt(value), names::<T>().join(", ")));
    }
    found
}

impl PatternCompilation<'_> {
    /// Compiles one more pattern. The error describes the mistake in the pattern or the exceeded limit.
    fn add(&mut self, pattern: &str) -> Result<(), String> {
        self.count += 1;
        if self.count > MAX_PATTERNS {
            return Err(format!("a type may have at most {MAX_PATTERNS} patterns"));
        }
        if self.bytes > MAX_PATTERN_BYTES {
            return Err(format!("the compiled patterns of a type may have at most {MAX_PATTERN_BYTES} bytes in total"));
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
            let message = format!("expected a non-empty array, found {}", excerpt(other));
            violations.refuse(format!("{at}/enum"), message)
        }
    }
}
