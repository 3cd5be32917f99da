//! Schemas without a Rust type in the handlers, and corrections to generated schemas.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

const COMPONENTS: &str = "#/components/schemas/";

/// Returns the schema of all errors.
pub fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error", "code", "request_id"],
        "description": "An error.",
        "properties": {
            "error": {"type": "string", "description": "The error message."},
            "code": {
                "description": "A stable identifier or, for pipelines, MongoDB's error number.",
                "oneOf": [{"type": "string"}, {"type": "integer"}],
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

/// The schemas of request bodies that may have unlisted fields: an action on many tasks has the fields of the action,
/// an app may send properties of its device that this server does not read, and actions accept older spellings of their
/// fields.
const OPEN: [&str; 9] = [
    "ActOnTasks",
    "AnswerTask",
    "AskTask",
    "DeactivateLicense",
    "DeferTask",
    "EditTask",
    "RejectTask",
    "RequestChanges",
    "ValidateLicense",
];

/// Marks the schemas of requests as closed, because the server rejects unlisted fields. Schemas that responses use as
/// well stay open, because clients should accept the fields that a later server adds to its responses.
pub fn close_requests(schemas: &mut Value, requests: &BTreeSet<String>, responses: &BTreeSet<String>) {
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        let is_closed = requests.contains(name) && !responses.contains(name) && !OPEN.contains(&name.as_str());
        if is_closed && schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
            schema["additionalProperties"] = false.into();
        }
    }
}

/// Returns the names of the schemas that responses use.
pub fn response_schemas(document: &Value) -> BTreeSet<String> {
    schemas_below(document, "responses")
}

/// Returns the names of the schemas that request bodies use.
pub fn request_schemas(document: &Value) -> BTreeSet<String> {
    schemas_below(document, "requestBody")
}

fn schemas_below(document: &Value, part: &str) -> BTreeSet<String> {
    let items = document["paths"].as_object().into_iter().flatten().filter_map(|(_, item)| item.as_object()).flatten();
    let mut names = BTreeSet::new();
    items.for_each(|(_, operation)| collect(&operation[part], &document["components"]["schemas"], &mut names));
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

/// Marks a request body as optional if none of its fields is required.
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
