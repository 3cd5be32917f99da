//! The OpenAPI document, which is generated from the handlers and then adapted to client generators and linters.
//!
//! Rules add the properties that operations share (errors, headers, paging, scopes), so that new operations have these
//! properties as well.

mod endpoints;
mod examples;
mod normalization;
pub mod nullable;
mod parameters;
mod plugins;
mod responses;
mod schemas;

use foldwork_engine::model::access::Scope;
use foldwork_engine::model::closed_set::names;
use poem_openapi::{OpenApi, OpenApiService};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::http::routes::{API, Operations};
pub use endpoints::{json, language, page, yaml};

/// The name of the only security scheme, a bearer token. The required scopes are listed with each operation.
const SCHEME: &str = "bearer";
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The introduction of the document.
const ABOUT: &str = "An event-sourced content and task service with a fold pipeline language.\n\n\
    **Errors** are JSON: `error` is the message, `code` is for programs, and `request_id` identifies the request in \
    the server's log.\n\n\
    **Lists** return `data` and `next_cursor`. Send `next_cursor` as `cursor` to get the next page. `next_cursor` is \
    null on the last page.\n\n\
    **Repeats**: a request that creates something may have an `Idempotency-Key`. If the request is sent again with \
    the same key and body within 24 hours, the response is 200 with the result of the first request, and \
    `Idempotency-Replayed: true`.\n\n\
    **Versions**: an `ETag` is a version. With `If-None-Match` the response is 304 if the client has the current \
    version. With `If-Match` a change is rejected with 409 if the resource has another version.";

/// Returns one document for both services and the endpoints of the enabled plugins. The paths of `functions` have their
/// own server entry.
pub fn finished(
    service: &OpenApiService<impl OpenApi, ()>,
    functions: &OpenApiService<impl OpenApi, ()>,
    config: &Config,
) -> Value {
    let mut document = described(&service.spec());
    add(&mut document, described(&functions.spec()));
    document["info"]["description"] = ABOUT.into();
    document["info"]["contact"] = json!({"name": "The operator of this server"});
    document["info"]["license"] = json!({"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"});
    document["components"]["securitySchemes"] = json!({SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key: sk_ and 64 hexadecimal characters; or a JWT of an issuer that the server is configured to trust.",
    }});
    document["components"]["schemas"]["Error"] = schemas::error();
    plugins::mount(&mut document, &config.plugins.enabled);
    let mut schemas = document["components"]["schemas"].take();
    let request_schemas = schemas::request_schemas(&document, &schemas);
    schemas::complete_responses(&mut schemas, &request_schemas);
    schemas::separate_responses(&mut document, &mut schemas, &request_schemas);
    schemas::list_action_fields(&mut schemas);
    schemas::close_requests(&mut schemas, &request_schemas);
    for (path, method, operation) in operations_mut(&mut document) {
        finish_operation(path, method, operation, &schemas);
    }
    let closed = schemas::closed_sets(&schemas);
    document["components"]["schemas"] = schemas;
    normalization::normalize(&mut document, &closed);
    document
}

fn described(text: &str) -> Value {
    serde_json::from_str(text).expect("the service describes itself in JSON")
}

/// Adds the paths and schemas of another document. Each path keeps the servers of the other document.
fn add(document: &mut Value, mut other: Value) {
    let servers = other["servers"].take();
    for (path, mut item) in std::mem::take(other["paths"].as_object_mut().unwrap_or(&mut Map::new())) {
        item["servers"] = servers.clone();
        document["paths"][path] = item;
    }
    for (name, schema) in std::mem::take(other["components"]["schemas"].as_object_mut().unwrap_or(&mut Map::new())) {
        document["components"]["schemas"][name] = schema;
    }
}

/// Returns the base path under which the operations of a path item are served.
pub fn base(item: &Value) -> &str {
    let Some(url) = item["servers"][0]["url"].as_str() else { return API };
    // Removes the scheme and the host, which the URL of a server entry may include.
    url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or(url)
}

/// Returns every operation with its path and its method.
fn operations_mut(document: &mut Value) -> impl Iterator<Item = (&str, &str, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object_mut().into_iter().flatten();
        let operations = operations.filter(|(method, _)| METHODS.contains(&method.as_str()));
        operations.filter_map(|(method, operation)| Some((path.as_str(), method.as_str(), operation.as_object_mut()?)))
    })
}

fn finish_operation(path: &str, method: &str, operation: &mut Map<String, Value>, schemas: &Value) {
    let needed = GuardRequirements::of(operation);
    describe(operation, needed.as_ref());
    if reads(path, method, needed.as_ref()) {
        parameters::add_consistency(operation);
    }
    parameters::describe(operation);
    schemas::set_body_required(operation, schemas);
    responses::complete(path, method, operation, needed.as_ref());
    examples::show(operation);
}

/// Returns whether an operation reads data of a workspace without changing data.
fn reads(path: &str, method: &str, needed: Option<&GuardRequirements>) -> bool {
    let is_reader = needed.is_some_and(|needed| needed.role.is_none() && !needed.all && !needed.session);
    let is_query = ["/query", "/search"].iter().any(|end| path.ends_with(end));
    is_reader && (method == "get" || (method == "post" && is_query))
}

/// The requirements of an operation, parsed from the name of its guard. The name is `session`, `all`, or scopes with
/// `|` between them, and may end with `@` and the minimum role. With scopes, a caller needs one of the scopes. With
/// `all`, a caller needs every scope. With `session`, a caller needs a token of an identity provider.
struct GuardRequirements {
    scopes: Vec<String>,
    all: bool,
    role: Option<String>,
    session: bool,
}

impl GuardRequirements {
    /// Returns the requirements, or `None` for an operation that needs no credential.
    fn of(operation: &Map<String, Value>) -> Option<GuardRequirements> {
        let scheme = operation.get("security").and_then(|security| security[0].as_object()?.keys().next())?;
        let (scopes, role) = scheme.split_once('@').unzip();
        let scopes = scopes.unwrap_or(scheme);
        let (all, session) = (scopes == "all", scopes == "session");
        let scopes = match scopes {
            "all" => names::<Scope>().into_iter().map(str::to_owned).collect(),
            "session" => Vec::new(),
            scopes => scopes.split('|').map(str::to_owned).collect(),
        };
        Some(GuardRequirements { scopes, all, role: role.map(str::to_owned), session })
    }

    /// Returns whether the operation requires an active subscription.
    fn is_paid(&self) -> bool {
        let paid = |name: &String| Scope::parse(name).is_some_and(Scope::is_paid);
        let is_paid = if self.all { self.scopes.iter().any(paid) } else { self.scopes.iter().all(paid) };
        is_paid && !self.session && self.role.as_deref() != Some("operator")
    }
}

/// Adds the requirements to the operation, both as text in the description and as machine-readable extensions. Replaces
/// the name of the guard by the security scheme.
fn describe(operation: &mut Map<String, Value>, needed: Option<&GuardRequirements>) {
    let text = match needed {
        Some(GuardRequirements { session: true, .. }) => "Needs a token of an identity provider, not a key.".to_owned(),
        Some(GuardRequirements { scopes, all, role, .. }) => {
            let names: Vec<String> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
            let role = role.as_ref().map_or_else(String::new, |role| format!(", and the role `{role}`"));
            match all {
                true => format!("Needs every scope{role}."),
                false => format!("Needs the scope {}{role}.", names.join(" or ")),
            }
        }
        None => "Needs no token.".to_owned(),
    };
    let described = operation.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = if described.is_empty() { text } else { format!("{described}\n\n{text}") };
    operation.insert("description".into(), described.into());
    let security = if needed.is_some() { json!([{SCHEME: []}]) } else { json!([]) };
    operation.insert("security".into(), security);
    if let Some(GuardRequirements { scopes, all, role, session }) = needed {
        let mut note = |name: &str, value: Value| _ = operation.insert(name.into(), value);
        if *session {
            return note("x-required-session", true.into());
        }
        note("x-required-scope", json!(scopes));
        if *all {
            note("x-required-scope-all", true.into());
        }
        role.iter().for_each(|role| _ = operation.insert("x-required-role".into(), json!(role)));
    }
}

/// Returns the method and the id of each operation, by path.
pub fn operations(document: &Value) -> Operations {
    let paths = document["paths"].as_object().into_iter().flatten();
    let ids = |item: &Value| {
        let operations = item.as_object().into_iter().flatten();
        let id = |(method, operation): (&String, &Value)| {
            Some((method.to_ascii_uppercase(), operation["operationId"].as_str()?.to_owned()))
        };
        operations.filter_map(id).collect()
    };
    paths.map(|(path, item)| (format!("{}{path}", base(item)), ids(item))).collect()
}

/// Returns the methods of each path, for the `Allow` header of a 405 response.
pub fn methods(document: &Value) -> Vec<(Vec<String>, Vec<String>)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let mut methods: Vec<(Vec<String>, Vec<String>)> = paths
        .map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten().map(|(method, _)| method.to_ascii_uppercase());
            let segments = format!("{}{path}", base(item)).split('/').map(str::to_owned).collect();
            (segments, methods.filter(|method| METHODS.contains(&method.to_ascii_lowercase().as_str())).collect())
        })
        .collect();
    // Sorts static paths before parameterized paths, because both may match the same request.
    methods.sort_by_key(|(segments, _)| segments.iter().filter(|segment| segment.starts_with('{')).count());
    methods
}
