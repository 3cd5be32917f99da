//! Tests that the OpenAPI document matches the server: every operation is described completely, and the bodies in the
//! scenarios match their schemas.

use std::collections::{BTreeMap, BTreeSet};

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::access::Scope;
use foldwork_plugins::natives;
use foldwork_server::Config;
use foldwork_tests::expectation::{all_well, files};
use foldwork_tests::scenario::exchanges;
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator;

use crate::coverage::{meant, operations};

/// The maximum length of a summary, in bytes. A summary of this length fits on one line of a list.
const LONGEST_SUMMARY: usize = 140;

/// The names that generated clients already use for their own types.
const RESERVED_NAMES: [&str; 4] = ["Client", "File", "Response", "Unset"];

/// The operations that create no second resource when they are repeated, even without an `Idempotency-Key`: a type is
/// identified by its name, and a sign-in code works once.
const CREATING_ONCE: [&str; 2] = ["define_type", "exchange_sign_in_code"];

/// Returns the document of a server on which every plugin with endpoints is enabled.
fn document() -> Value {
    let mut config = Config::default();
    config.plugins.enabled.extend(natives().iter().map(|plugin| plugin.name().to_owned()));
    foldwork_server::openapi(&config)
}

#[test]
fn every_operation_has_a_unique_id_descriptions_and_error_responses() {
    let document = document();
    let mut failures = Vec::new();
    let mut ids = BTreeSet::new();
    let tags: BTreeSet<&str> = list(&document["tags"]).filter_map(|tag| tag["name"].as_str()).collect();
    for (path, item) in object(&document["paths"]) {
        for (method, operation) in object(item).filter(|(name, _)| *name != "servers") {
            let id = operation["operationId"].as_str().unwrap_or_default();
            let mut wrong = wrong_with(path, operation);
            if !ids.insert(id) {
                wrong.push("another operation has the same id".into());
            }
            if list(&operation["tags"]).filter_map(Value::as_str).filter(|tag| tags.contains(tag)).count() != 1 {
                wrong.push("expected exactly one tag of the document".into());
            }
            failures.extend(wrong.into_iter().map(|wrong| format!("{method} {path} ({id}): {wrong}")));
        }
    }
    for (name, schema) in object(&document["components"]["schemas"]) {
        let own = |property: &&String| property.replace('_', "").eq_ignore_ascii_case(name);
        if object(&schema["properties"]).any(|(property, shown)| shown["type"] == "array" && own(&property)) {
            failures.push(format!(
                "{name} has a list field with its own name, which some client generators cannot express"
            ));
        }
    }
    for name in RESERVED_NAMES {
        if document["components"]["schemas"].get(name).is_some() {
            failures.push(format!("the schema name {name} collides with a type of generated clients"));
        }
    }
    assert!(ids.contains("get_feed"), "routes of plugins are missing from the document");
    all_well(failures);
}

fn wrong_with(path: &str, operation: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |holds: bool, text: &str| {
        if !holds {
            wrong.push(text.to_owned());
        }
    };
    let words: Vec<&str> = operation["operationId"].as_str().unwrap_or_default().split('_').collect();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    must(words.len() > 1 && words.iter().all(is_word), "the id is not <verb>_<resource>");
    let summary = operation["summary"].as_str().unwrap_or_default();
    must(!summary.is_empty() && summary.len() <= LONGEST_SUMMARY, "the summary is missing or too long for one line");
    // The last paragraph names the scope and is generated.
    let paragraphs = operation["description"].as_str().unwrap_or_default().split("\n\n").count();
    must(paragraphs > 1, "the description is missing: a paragraph below the handler's first line");
    let scopes: Vec<&str> = list(&operation["x-required-scope"]).filter_map(Value::as_str).collect();
    let is_open = operation["security"] == json!([]);
    must(is_open || list(&operation["security"]).count() == 1, "expected exactly one security requirement");
    let is_session = operation["x-required-session"] == true;
    must((is_open || is_session) == scopes.is_empty(), "expected no scopes exactly for open and session operations");
    must(scopes.iter().all(|name| Scope::parse(name).is_some()), "x-required-scope has an unknown scope");
    let named = list(&operation["parameters"]).filter(|parameter| parameter["in"] == "path");
    let named: BTreeSet<&str> = named.filter_map(|parameter| parameter["name"].as_str()).collect();
    let placeholders = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
    must(named == placeholders, "the path parameters differ from the placeholders in the path");
    for parameter in list(&operation["parameters"]) {
        let described = parameter["description"].as_str().is_some_and(|text| !text.is_empty());
        must(described, &format!("the parameter {} has no description", parameter["name"]));
    }
    let responses: Vec<(&String, &Value)> = object(&operation["responses"]).collect();
    must(responses.iter().any(|(status, _)| status.starts_with('2')), "no response has a status 2xx");
    let of_callers = ["401", "403"].into_iter().filter(|_| !is_open);
    for status in of_callers.chain(["429", "500", "503"]) {
        must(responses.iter().any(|(known, _)| *known == status), &format!("the response {status} is missing"));
    }
    for (status, response) in responses {
        let described = response["description"].as_str().is_some_and(|text| !text.is_empty());
        must(described, &format!("the response {status} has no description"));
        let schema = &response["content"]["application/json"]["schema"];
        if status.starts_with(['4', '5']) {
            must(schema["$ref"] == "#/components/schemas/Error", &format!("response {status} lacks the schema Error"));
        }
        must(response["headers"].get("X-Request-Id").is_some(), &format!("the response {status} lacks X-Request-Id"));
    }
    wrong
}

#[test]
fn every_post_that_could_create_a_resource_twice_accepts_an_idempotency_key() {
    let document = document();
    let mut failures = Vec::new();
    for (path, item) in object(&document["paths"]) {
        let operation = &item["post"];
        let id = operation["operationId"].as_str().unwrap_or_default();
        let creates = ["201", "202"].into_iter().any(|status| operation["responses"].get(status).is_some());
        let has_key = list(&operation["parameters"]).any(|parameter| parameter["name"] == "Idempotency-Key");
        if creates && !has_key && !CREATING_ONCE.contains(&id) {
            failures.push(format!("post {path} ({id}) takes no Idempotency-Key"));
        }
    }
    all_well(failures);
}

#[test]
fn scenario_bodies_match_the_schemas_of_the_document() {
    let document = document();
    let operations = operations();
    let mut failures = Vec::new();
    let mut compared = 0;
    for file in files("api", "yaml") {
        for exchange in exchanges(&file) {
            let Some(operation) = meant(&operations, &exchange) else { continue };
            let pointer = |text: &str| text.replace('~', "~0").replace('/', "~1");
            let bases = [foldwork_server::API, foldwork_server::FUNCTIONS];
            let path = bases.iter().find_map(|base| operation.path.strip_prefix(base)).unwrap_or_default();
            let described = &document["paths"][path][exchange.method.to_lowercase()];
            let mut compare = |body: &Option<Value>, place: String, strict: bool| {
                let Some(body) = body else { return };
                let Some(schema) =
                    described.pointer(&format!("{place}/content/{}/schema", pointer("application/json")))
                else {
                    // A scenario shows a body that is not JSON as text. Such a body has no schema.
                    if body.is_object() && described.pointer(&place).is_some() {
                        failures.push(format!("{}: {}: {place} has no schema", file.display(), exchange.name));
                    }
                    return;
                };
                compared += 1;
                let validator = validator(schema, &document, strict);
                let errors = validator.iter_errors(body).map(|error| format!("{} at {}", error, error.instance_path()));
                failures.extend(errors.map(|error| {
                    format!("{}: '{}': {} {place}: {error}", file.display(), exchange.name, operation.id)
                }));
            };
            if exchange.status.starts_with('2') {
                compare(&exchange.body, "/requestBody".into(), false);
            }
            // Skips texts, because a scenario shows only the length of a long response.
            let answer = exchange.answer.clone().filter(|answer| !answer.is_string());
            compare(&answer, format!("/responses/{}", exchange.status), true);
        }
    }
    assert!(compared > 500, "the scenarios show only {compared} bodies");
    all_well(failures);
}

#[test]
fn error_responses_in_scenarios_have_a_status_that_belongs_to_their_code() {
    let codes: BTreeMap<&str, ErrorCode> = ErrorCode::iter().map(|code| (code.name(), code)).collect();
    let (mut failures, mut seen) = (Vec::new(), BTreeSet::new());
    for file in files("api", "yaml") {
        for exchange in exchanges(&file).into_iter().filter(|exchange| exchange.status.starts_with(['4', '5'])) {
            let Some(name) = exchange.answer.as_ref().and_then(|answer| answer["code"].as_str()) else { continue };
            let Some(code) = codes.get(name) else { continue };
            seen.insert(name.to_owned());
            if !code.statuses().split(' ').any(|status| status == exchange.status) {
                let at = format!("{}: '{}'", file.display(), exchange.name);
                failures.push(format!("{at}: {name} has the status {}; expected {}", exchange.status, code.statuses()));
            }
        }
    }
    assert!(seen.len() > 40, "the scenarios show only {} codes", seen.len());
    all_well(failures);
}

/// Compiles a schema of the document into a JSON Schema validator. For responses (`strict`), unknown fields are errors.
fn validator(schema: &Value, document: &Value, strict: bool) -> Validator {
    let mut root = json!({"$schema": "http://json-schema.org/draft-04/schema#", "allOf": [schema]});
    root["components"] = json!({"schemas": document["components"]["schemas"]});
    translate(&mut root, strict);
    jsonschema::options().should_validate_formats(true).build(&root).expect("a schema")
}

/// Translates `nullable` of OpenAPI 3.0 into the type `null` of JSON Schema. If `strict` is set, also forbids fields
/// that a schema does not list.
fn translate(node: &mut Value, strict: bool) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(|item| translate(item, strict)),
        Value::Object(schema) => {
            schema.values_mut().for_each(|child| translate(child, strict));
            if strict && schema.contains_key("properties") && !schema.contains_key("additionalProperties") {
                schema.insert("additionalProperties".into(), false.into());
            }
            if schema.get("nullable") == Some(&Value::Bool(true)) {
                schema.remove("nullable");
                let meant = Value::Object(std::mem::take(schema));
                schema.insert("anyOf".into(), json!([{"type": "null"}, meant]));
            }
        }
        _ => {}
    }
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY).iter()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
