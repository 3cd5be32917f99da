//! The OpenAPI document: what the handlers say, made to say it as generators and linters expect.

use std::sync::Arc;

use poem::{Endpoint, Response};
use poem_openapi::OpenApiService;
use serde_json::{Map, Value, json};

use super::Operations;

/// Gives a type the schema of another one: what is read as it comes, but is shown field by field.
macro_rules! shown_as {
    ($type:ident, $shown:ident) => {
        impl poem_openapi::types::Type for $type {
            const IS_REQUIRED: bool = true;
            type RawValueType = Self;
            type RawElementValueType = Self;

            fn name() -> std::borrow::Cow<'static, str> {
                <$shown as poem_openapi::types::Type>::name()
            }

            fn schema_ref() -> poem_openapi::registry::MetaSchemaRef {
                <$shown as poem_openapi::types::Type>::schema_ref()
            }

            fn register(registry: &mut poem_openapi::registry::Registry) {
                <$shown as poem_openapi::types::Type>::register(registry);
            }

            fn as_raw_value(&self) -> Option<&Self> {
                Some(self)
            }

            fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
                Box::new(std::iter::empty())
            }
        }
    };
}
pub(super) use shown_as;

/// Ends of the paths of operations that ask or repeat, and have nothing to be in conflict with.
const WITHOUT_CONFLICT: [&str; 4] = ["/query", "/search", "/dry-run", "/replay"];
/// Paths of operations whose bodies name an agent, a user or several tasks, which may not be there.
const NAMES_OTHERS: [&str; 2] = ["/mailbox", "/mailbox/actions"];
/// The name of the one security scheme: a bearer token. Scopes stand beside each operation.
const SCHEME: &str = "bearer";
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The document of a service.
pub fn finished(service: &OpenApiService<Operations, ()>) -> Value {
    let mut document: Value = serde_json::from_str(&service.spec()).expect("the service describes itself in JSON");
    document["info"]["license"] = json!({"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"});
    document["components"]["securitySchemes"] = json!({SCHEME: {"type": "http", "scheme": "bearer", "description": "An API key: sk_ and 64 hexadecimal characters."}});
    document["components"]["schemas"]["Error"] = error_schema();
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            if METHODS.contains(&method.as_str()) {
                finish_operation(path, method, operation);
            }
        }
    }
    normalise(&mut document);
    document
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error", "code", "request_id"],
        "description": "What went wrong.",
        "properties": {
            "error": {"type": "string", "description": "What went wrong, for a person."},
            "code": {
                "description": "A stable word; of a pipeline, MongoDB's number.",
                "oneOf": [{"type": "string"}, {"type": "integer"}],
            },
            "request_id": {"type": "string", "description": "The request, as in the server's log."},
            "details": {
                "type": "array",
                "description": "Everything that is wrong with the body.",
                "items": {
                    "type": "object",
                    "required": ["pointer", "message"],
                    "properties": {"pointer": {"type": "string"}, "message": {"type": "string"}},
                },
            },
        },
        "additionalProperties": true,
    })
}

/// Scopes in one place, and the errors that the operation may answer.
fn finish_operation(path: &str, method: &str, operation: &mut Value) {
    let scopes = operation["security"][0].as_object().and_then(|scheme| scheme.keys().next().cloned());
    let scopes: Vec<String> = scopes.iter().flat_map(|names| names.split('|')).map(str::to_owned).collect();
    operation["security"] = json!([{SCHEME: []}]);
    operation["x-required-scope"] = json!(scopes);
    let has_body = operation.get("requestBody").is_some();
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stands_in = |place: &str| parameters.iter().any(|parameter| parameter["in"] == *place);
    let has_input = has_body || stands_in("query") || stands_in("header");
    let mut errors = Vec::new();
    if has_input {
        errors.push(("400", "Invalid input."));
    }
    errors.push(("401", "Missing or invalid bearer token."));
    errors.push(("403", "The token lacks the required scope."));
    if stands_in("path") || (has_body && NAMES_OTHERS.contains(&path)) {
        errors.push(("404", "Not found, or not in the caller's workspace."));
    }
    if has_input && method != "get" && !WITHOUT_CONFLICT.iter().any(|name| path.ends_with(name)) {
        errors.push(("409", "A conflict with what is there."));
    }
    if has_body {
        errors.push(("413", "The body is too large."));
        errors.push(("415", "The body is no JSON."));
    }
    errors.extend([
        ("429", "Too many requests."),
        ("500", "Internal server error."),
        ("503", "The store is not available."),
    ]);
    for (status, description) in errors {
        let schema = json!({"$ref": "#/components/schemas/Error"});
        operation["responses"][status] =
            json!({"description": description, "content": {"application/json": {"schema": schema}}});
    }
}

/// Mends what generators stumble over: bare numbers as bounds, header names in capitals, `allOf` around one reference,
/// empty descriptions.
fn normalise(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(object) => {
            unwrap_reference(object);
            if object.get("in").is_some_and(|place| place == "header")
                && let Some(Value::String(name)) = object.get_mut("name")
            {
                *name = header_name(name);
            }
            if let Some(format) = object.get("format").and_then(Value::as_str)
                && let Some(known) = match format {
                    "uint64" => Some("int64"),
                    "uint32" => Some("int32"),
                    _ => None,
                }
            {
                object.insert("format".into(), known.into());
                object.insert("minimum".into(), 0.into());
            }
            for (name, child) in object.iter_mut() {
                if name == "description" && child.as_str() == Some("") {
                    *child = "Done.".into();
                }
                if name == "headers" {
                    rename_headers(child);
                }
                normalise(child);
            }
        }
        _ => {}
    }
}

/// `{allOf: [{$ref}], …}` says no more than the reference.
fn unwrap_reference(object: &mut Map<String, Value>) {
    let reference = match object.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only, rest @ ..])
            if rest.iter().all(|part| part.get("$ref").is_none() && part.get("properties").is_none()) =>
        {
            only.get("$ref").cloned()
        }
        _ => None,
    };
    if let Some(reference) = reference {
        object.clear();
        object.insert("$ref".into(), reference);
    }
}

fn rename_headers(headers: &mut Value) {
    if let Some(headers) = headers.as_object_mut() {
        *headers = std::mem::take(headers).into_iter().map(|(name, header)| (header_name(&name), header)).collect();
    }
}

/// `IF-NONE-MATCH` as it is usually written.
fn header_name(name: &str) -> String {
    let special = [("etag", "ETag"), ("last-event-id", "Last-Event-ID")];
    if let Some((_, known)) = special.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
        return (*known).to_owned();
    }
    let capital = |part: &str| match part.split_at_checked(1) {
        Some((first, rest)) => format!("{}{}", first.to_ascii_uppercase(), rest.to_ascii_lowercase()),
        None => part.to_owned(),
    };
    name.split('-').map(capital).collect::<Vec<_>>().join("-")
}

/// Which methods each path knows: what an answer 405 tells.
pub fn methods(document: &Value) -> Vec<(Vec<String>, Vec<String>)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let mut methods: Vec<(Vec<String>, Vec<String>)> = paths
        .map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten().map(|(method, _)| method.to_ascii_uppercase());
            let segments = format!("{}{path}", crate::API).split('/').map(str::to_owned).collect();
            (segments, methods.filter(|method| METHODS.contains(&method.to_ascii_lowercase().as_str())).collect())
        })
        .collect();
    // Static paths come before those with parameters that would fit too.
    methods.sort_by_key(|(segments, _)| segments.iter().filter(|segment| segment.starts_with('{')).count());
    methods
}

#[derive(Clone)]
struct Text {
    content_type: &'static str,
    text: Arc<str>,
}

impl Endpoint for Text {
    type Output = Response;

    async fn call(&self, _: poem::Request) -> poem::Result<Response> {
        Ok(Response::builder().content_type(self.content_type).body(self.text.to_string()))
    }
}

/// Serves the document as JSON.
pub fn json(document: &Arc<Value>) -> impl Endpoint + use<> {
    let text = serde_json::to_string_pretty(&**document).unwrap_or_default();
    Text { content_type: "application/json", text: text.into() }
}

/// Serves the document as YAML.
pub fn yaml(document: &Arc<Value>) -> impl Endpoint + use<> {
    let text = serde_saphyr::to_string(&**document).unwrap_or_default();
    Text { content_type: "application/yaml", text: text.into() }
}

/// The page that shows the pipeline language.
pub fn language() -> impl Endpoint {
    Text { content_type: "text/html; charset=utf-8", text: super::operators::page().into() }
}

/// An interactive page that shows the document and sends requests.
pub fn page(service: &OpenApiService<Operations, ()>, document: &Value) -> impl Endpoint + use<> {
    // The page holds the document as text; ours stands in its place.
    let text = service.swagger_ui_html().replace(&service.spec(), &document.to_string());
    Text { content_type: "text/html; charset=utf-8", text: text.into() }
}
