//! Schemas without a Rust type in the handlers, and corrections to generated schemas.

use std::collections::BTreeSet;

use foldwork_engine::error::ErrorCode;
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator;

const COMPONENTS: &str = "#/components/schemas/";

/// Returns the schema of all errors.
pub fn error() -> Value {
    let names: Vec<&str> = ErrorCode::iter().map(ErrorCode::name).collect();
    json!({
        "type": "object",
        "required": ["error", "code", "request_id"],
        "description": "An error.",
        "properties": {
            "error": {"type": "string", "description": "The error message."},
            "code": {
                "description": "The error's code or, for pipelines, MongoDB's error number. `docs/errors.md` explains \
                                each code and the possible reactions of a client.",
                // No `enum`, so that a generated client can read a code that a later version adds.
                "oneOf": [{"type": "string", "x-extensible-enum": names}, {"type": "integer"}],
            },
            "request_id": {"type": "string", "description": "The request's id in the server's log."},
            "details": {
                "type": "array",
                "description": "All errors in the body.",
                "items": {
                    "type": "object",
                    "required": ["pointer", "message"],
                    "properties": {
                        "pointer": {"type": "string", "description": "The position in the body, as a JSON pointer."},
                        "message": {"type": "string", "description": "The error at this position."},
                    },
                },
            },
        },
        "additionalProperties": true,
    })
}

/// Marks nullable fields of responses as required: a response sends null instead of omitting the field.
pub fn complete_responses(schemas: &mut Value, request_schemas: &BTreeSet<String>) {
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        if request_schemas.contains(name) {
            continue;
        }
        let properties = schema["properties"].as_object();
        let nullable = properties.into_iter().flatten().filter(|(_, property)| is_nullable(property));
        let nullable: Vec<Value> = nullable.map(|(name, _)| name.as_str().into()).collect();
        if !nullable.is_empty()
            && let Some(schema) = schema.as_object_mut()
            && let Some(required) = schema.entry("required").or_insert_with(|| json!([])).as_array_mut()
        {
            required.extend(nullable);
        }
    }
}

fn is_nullable(property: &Value) -> bool {
    let parts = property["allOf"].as_array().into_iter().flatten();
    std::iter::once(property).chain(parts).any(|part| part["nullable"] == true)
}

/// Marks the schemas of requests as closed, because the server rejects unlisted fields.
pub fn close_requests(schemas: &mut Value, requests: &BTreeSet<String>) {
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        let is_object = schema.get("properties").is_some() && schema.get("additionalProperties").is_none();
        if is_object && requests.contains(name) {
            schema["additionalProperties"] = false.into();
        }
    }
}

/// Copies each schema that both requests and responses use, and makes responses use the copy. The schemas of requests
/// reject unlisted fields, but clients should accept the fields that a later server adds to its responses.
pub fn separate_responses(document: &mut Value, schemas: &mut Value, requests: &BTreeSet<String>) {
    let responses = response_schemas_of(document, schemas);
    let is_object = |name: &&String| schemas[name.as_str()].get("properties").is_some();
    let shared: BTreeSet<String> = responses.intersection(requests).filter(is_object).cloned().collect();
    for name in &shared {
        let returned = format!("{RETURNED}{name}");
        let mut schema = schemas[name.as_str()].clone();
        // Client generators name classes after the titles, so each title must be unique.
        if schema.get("title").is_some() {
            schema["title"] = returned.as_str().into();
        }
        schemas[returned] = schema;
    }
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        if name.starts_with(RETURNED) || (responses.contains(name) && !requests.contains(name)) {
            refer_to_returned(schema, &shared);
        }
    }
    let items = document["paths"].as_object_mut().into_iter().flatten();
    let operations = items.filter_map(|(_, item)| item.as_object_mut()).flatten();
    operations
        .filter_map(|(_, operation)| operation.get_mut("responses"))
        .for_each(|node| refer_to_returned(node, &shared));
}

/// The name prefix of a copied schema. Responses refer to the copy, and requests refer to the original schema.
const RETURNED: &str = "Returned";

fn refer_to_returned(node: &mut Value, shared: &BTreeSet<String>) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(|item| refer_to_returned(item, shared)),
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(COMPONENTS).filter(|name| shared.contains(*name))
            {
                *reference = format!("{COMPONENTS}{RETURNED}{name}");
            }
            object.values_mut().for_each(|child| refer_to_returned(child, shared));
        }
        _ => {}
    }
}

/// The schemas of the actions that one request can perform on many tasks.
const ACTIONS: [&str; 10] = [
    "ApproveTask",
    "EditTask",
    "RejectTask",
    "DeferTask",
    "AskTask",
    "RequestChanges",
    "AnswerTask",
    "AssignTask",
    "RetryTask",
    "MarkTask",
];

/// Adds the fields of all actions to the request for an action on many tasks. `expected_version` is left out, because
/// each task has its own version.
pub fn list_action_fields(schemas: &mut Value) {
    let fields: Vec<(String, Value)> = ACTIONS
        .iter()
        .filter_map(|name| schemas[*name]["properties"].as_object())
        .flat_map(|fields| fields.clone())
        .filter(|(name, _)| name != "expected_version")
        .collect();
    let Some(properties) = schemas["ActOnTasks"]["properties"].as_object_mut() else { return };
    for (name, field) in fields {
        properties.entry(name).or_insert(field);
    }
}

/// Returns the names of the schemas that responses use.
fn response_schemas_of(document: &Value, schemas: &Value) -> BTreeSet<String> {
    schemas_below(document, schemas, "responses")
}

/// Returns the names of the schemas that request bodies use.
pub fn request_schemas(document: &Value, schemas: &Value) -> BTreeSet<String> {
    schemas_below(document, schemas, "requestBody")
}

fn schemas_below(document: &Value, schemas: &Value, part: &str) -> BTreeSet<String> {
    let items = document["paths"].as_object().into_iter().flatten().filter_map(|(_, item)| item.as_object()).flatten();
    let mut names = BTreeSet::new();
    items.for_each(|(_, operation)| collect(&operation[part], schemas, &mut names));
    names
}

fn collect(node: &Value, schemas: &Value, names: &mut BTreeSet<String>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| collect(item, schemas, names)),
        Value::Object(object) => {
            let named = object.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(COMPONENTS));
            if let Some(name) = named
                && names.insert(name.to_owned())
            {
                collect(&schemas[name], schemas, names);
            }
            object.values().for_each(|child| collect(child, schemas, names));
        }
        _ => {}
    }
}

/// Returns the references to the schemas of closed sets.
pub fn closed_sets(schemas: &Value) -> BTreeSet<String> {
    let closed = schemas.as_object().into_iter().flatten().filter(|(_, schema)| schema.get("enum").is_some());
    closed.map(|(name, _)| format!("{COMPONENTS}{name}")).collect()
}

/// Marks a request body as required, or as optional if none of its fields is required.
pub fn set_body_required(operation: &mut Map<String, Value>, schemas: &Value) {
    let Some(body) = operation.get_mut("requestBody") else { return };
    let Some(schema) = body["content"].get("application/json").map(|content| &content["schema"]) else { return };
    let named = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(COMPONENTS));
    let schema = named.map_or(schema, |name| &schemas[name]);
    // A body with several forms (`oneOf`) is always required.
    let required =
        schema["required"].as_array().or(schema["oneOf"].as_array()).is_some_and(|needed| !needed.is_empty());
    body["required"] = required.into();
}
