//! Corrects parts of the OpenAPI document that generators and linters reject, such as bounds written as floating-point
//! numbers, header names in capitals, `allOf` around a single reference, `nullable` without a type or with a closed
//! set, and times without a format.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Normalizes a node of the document and all its descendants. `closed` contains the references to the schemas with a
/// closed set of values.
pub fn normalize(node: &mut Value, closed: &BTreeSet<String>) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(|item| normalize(item, closed)),
        Value::Object(object) => {
            unwrap_reference(object, closed);
            move_nullable(object);
            whole_numbers(object);
            // Some generators treat an empty schema as an object.
            if let Some(additional) = object.get_mut("additionalProperties").filter(|schema| **schema == json!({})) {
                *additional = true.into();
            }
            if object.get("in").is_some_and(|place| place == "header")
                && let Some(Value::String(name)) = object.get_mut("name")
            {
                *name = header_name(name);
            }
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                properties.iter_mut().for_each(|(name, property)| tell_by_name(name, property));
            }
            for (name, child) in object.iter_mut() {
                if name == "description" && child.as_str() == Some("") {
                    *child = "Done.".into();
                }
                if name == "headers" {
                    rename_headers(child);
                }
                // Examples, defaults and the values of `enum` are not schemas, and must not change.
                if name != "example" && name != "examples" && name != "default" && name != "enum" {
                    normalize(child, closed);
                }
            }
        }
        _ => {}
    }
}

/// Replaces `{allOf: [{$ref}], …}` by the reference. If the value may be null, or if a reference to a closed set has a
/// description or a default, the replacement is a larger schema, because the reference alone would lose this
/// information.
fn unwrap_reference(object: &mut Map<String, Value>, closed: &BTreeSet<String>) {
    let Some(Value::Array(parts)) = object.get("allOf") else { return };
    let Some((Some(reference), rest)) = parts.split_first().map(|(first, rest)| (first["$ref"].as_str(), rest)) else {
        return;
    };
    if rest.iter().any(|part| part.get("$ref").is_some() || part.get("properties").is_some()) {
        return;
    }
    let objects: Vec<&Map<String, Value>> =
        std::iter::once(&*object).chain(rest.iter().filter_map(Value::as_object)).collect();
    let lookup = |name: &str| objects.iter().find_map(|part| part.get(name)).cloned();
    let is_nullable = lookup("nullable") == Some(json!(true));
    let reference = json!({"$ref": reference});
    let is_closed = closed.contains(reference["$ref"].as_str().unwrap_or_default());
    *object = match (is_closed, is_nullable) {
        (false, false) => object_of(reference),
        (false, true) => object_of(json!({"type": "object", "nullable": true, "allOf": [reference]})),
        // `nullable` next to a closed set would not allow null, because the set does not contain null.
        (true, true) => {
            let nothing = json!({"type": "string", "nullable": true, "enum": [null]});
            with(object_of(json!({"oneOf": [reference, nothing]})), &["description", "default"], lookup)
        }
        (true, false) if lookup("description").or_else(|| lookup("default")).is_none() => object_of(reference),
        (true, false) => with(object_of(json!({"allOf": [reference]})), &["description", "default"], lookup),
    };
}

fn object_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Calls `lookup` for each of `names`. If `lookup` returns a value, adds the name and the value to the object.
fn with(mut object: Map<String, Value>, names: &[&str], lookup: impl Fn(&str) -> Option<Value>) -> Map<String, Value> {
    object.extend(names.iter().filter_map(|name| Some(((*name).to_owned(), lookup(name)?))));
    object
}

/// Moves or removes `nullable` if the schema has no type, because `nullable` has an effect only together with a type.
/// If the schema has a `oneOf` or `anyOf`, `nullable` moves to the first choice. Otherwise `nullable` is removed: a
/// schema without a type allows null anyway.
fn move_nullable(object: &mut Map<String, Value>) {
    let is_nullable = object.get("nullable").is_some_and(|nullable| *nullable == json!(true));
    if !is_nullable || object.contains_key("type") {
        return;
    }
    object.remove("nullable");
    for choice in ["oneOf", "anyOf"] {
        if let Some(first) = object.get_mut(choice).and_then(|choice| choice.get_mut(0)) {
            first["nullable"] = true.into();
        }
    }
}

/// Rewrites bounds and formats of integers, because the framework writes bounds as `200.0` and uses formats that other
/// tools do not support. Unsigned integers get the minimum 0.
fn whole_numbers(object: &mut Map<String, Value>) {
    if object.get("type").is_none_or(|kind| kind != "integer") {
        return;
    }
    for bound in ["minimum", "maximum"] {
        if let Some(value) = object.get(bound).and_then(Value::as_f64) {
            object.insert(bound.into(), (value as i64).into());
        }
    }
    let known = match object.get("format").and_then(Value::as_str) {
        Some("uint64") => "int64",
        Some("uint32") => "int32",
        _ => return,
    };
    object.insert("format".into(), known.into());
    object.entry("minimum").or_insert_with(|| 0.into());
}

/// Completes the schema of a property by the property's name: adds a format to times, and a description to
/// `next_cursor`.
fn tell_by_name(name: &str, property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    if property.get("type").is_some_and(|kind| kind == "string") && name.ends_with("_at") {
        property.entry("format").or_insert_with(|| "date-time".into());
    }
    if name == "next_cursor" && property.contains_key("type") {
        let text = "The `cursor` of the next page; null if no page follows.";
        property.entry("description").or_insert_with(|| text.into());
    }
}

fn rename_headers(headers: &mut Value) {
    if let Some(headers) = headers.as_object_mut() {
        *headers = std::mem::take(headers).into_iter().map(|(name, header)| (header_name(&name), header)).collect();
    }
}

/// Returns a header name such as `IF-NONE-MATCH` in its usual spelling.
fn header_name(name: &str) -> String {
    let special = ["ETag", "Last-Event-ID", "WWW-Authenticate"];
    if let Some(known) = special.iter().find(|known| name.eq_ignore_ascii_case(known)) {
        return (*known).to_owned();
    }
    let capital = |part: &str| match part.split_at_checked(1) {
        Some((first, rest)) => format!("{}{}", first.to_ascii_uppercase(), rest.to_ascii_lowercase()),
        None => part.to_owned(),
    };
    name.split('-').map(capital).collect::<Vec<_>>().join("-")
}
