//! The OpenAPI document: what the handlers say, made to say it as generators and linters expect.
//!
//! What holds for operations alike (their errors, headers, paging, scopes) is written here by rule, so that it holds for
//! those that are yet to come.

mod answers;
mod examples;
mod normalised;
mod parameters;
mod plugins;
mod schemas;
mod served;

use poem_openapi::OpenApiService;
use serde_json::{Map, Value, json};

use super::Operations;
use crate::Config;
pub use served::{json, language, page, yaml};

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

/// The name of the one security scheme: a bearer token. Scopes stand beside each operation.
const SCHEME: &str = "bearer";
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// What a reader must know who reads no further.
const ABOUT: &str = "An event-sourced content and task service with a fold pipeline language.\n\n\
    **Errors** are JSON: `error` says it to a person, `code` to a program, `request_id` names the request in the server's log.\n\n\
    **Lists** answer `data` and `next_cursor`. Send the cursor as `cursor` for the next page; after the last one it is null.\n\n\
    **Repeats**: a request that creates something may carry an `Idempotency-Key`. Sent again with the same key and body within 24 \
    hours it answers 200 with what the first one made, and `Idempotency-Replayed: true`.\n\n\
    **Versions**: an `ETag` is a version. `If-None-Match` spares an answer that is known (304), `If-Match` refuses a change of what \
    has changed meanwhile (409).";

/// The document of a service, with what the enabled plugins mount.
pub fn finished(service: &OpenApiService<Operations, ()>, config: &Config) -> Value {
    let mut document: Value = serde_json::from_str(&service.spec()).expect("the service describes itself in JSON");
    document["info"]["description"] = ABOUT.into();
    document["info"]["contact"] = json!({"name": "Whoever runs this server"});
    document["info"]["license"] = json!({"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"});
    document["components"]["securitySchemes"] = json!({SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key: sk_ and 64 hexadecimal characters; or a JWT of an issuer that the server is configured to trust.",
    }});
    document["components"]["schemas"]["Error"] = schemas::error();
    plugins::mount(&mut document, &config.plugins.enabled);
    let asked = schemas::asked(&document);
    let mut schemas = document["components"]["schemas"].take();
    schemas::complete_answers(&mut schemas, &asked);
    for (path, method, operation) in operations_mut(&mut document) {
        finish_operation(path, method, operation, &schemas);
    }
    document["components"]["schemas"] = schemas;
    normalised::normalise(&mut document);
    document
}

/// Every operation with its path and method.
fn operations_mut(document: &mut Value) -> impl Iterator<Item = (&str, &str, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object_mut().into_iter().flatten();
        let operations = operations.filter(|(method, _)| METHODS.contains(&method.as_str()));
        operations.filter_map(|(method, operation)| Some((path.as_str(), method.as_str(), operation.as_object_mut()?)))
    })
}

fn finish_operation(path: &str, method: &str, operation: &mut Map<String, Value>, schemas: &Value) {
    let scopes = scopes(operation);
    operation.insert("security".into(), json!([{SCHEME: []}]));
    operation.insert("x-required-scope".into(), json!(scopes));
    describe(operation, &scopes);
    parameters::describe(operation);
    schemas::ask_for_body(operation, schemas);
    answers::complete(path, method, operation);
    examples::show(operation);
}

/// The scopes of which one is needed. The handlers' guards give them as the name of a security scheme.
fn scopes(operation: &Map<String, Value>) -> Vec<String> {
    let scheme = operation.get("security").and_then(|security| security[0].as_object()?.keys().next());
    scheme.iter().flat_map(|names| names.split('|')).map(str::to_owned).collect()
}

/// Says in the operation's description what it needs.
fn describe(operation: &mut Map<String, Value>, scopes: &[String]) {
    let names: Vec<String> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
    let needs = format!("Needs the scope {}.", names.join(" or "));
    let described = operation.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = if described.is_empty() { needs } else { format!("{described}\n\n{needs}") };
    operation.insert("description".into(), described.into());
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
