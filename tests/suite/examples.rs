//! Tests that the examples in the document are requests and responses of the scenarios.

use std::sync::Mutex;

use foldwork_tests::expectation::{all_well, compare_source, files, root};
use foldwork_tests::scenario::{Exchange, exchanges};
use serde_json::{Map, Value};

use crate::coverage::{meant, operations};

/// The maximum length of an example, in bytes. Longer examples do not help readers.
const MAX_EXAMPLE_BYTES: usize = 2_000;

/// The texts that exclude an example: placeholders of values that differ in every run, and fields of a type, which
/// linters mistake for a schema.
const CONFUSING: [&str; 2] = ["${", r#""fields":[{"#];

/// The lock for updates of the examples. Without the lock, a test that has read the scenarios before their update could
/// overwrite the updated examples.
static UPDATE: Mutex<()> = Mutex::new(());

#[test]
fn examples_match_the_scenarios() {
    all_well(compare_examples().err().into_iter().collect());
}

/// Compares the file of examples with the requests and responses of the scenarios.
pub fn compare_examples() -> Result<(), String> {
    let _update = UPDATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let operations = operations();
    let mut examples: Map<String, Value> = Map::new();
    let mut ids: Vec<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();
    ids.sort_unstable();
    ids.into_iter().for_each(|id| _ = examples.insert(id.to_owned(), Value::Object(Map::new())));
    for file in files("api", "yaml") {
        for exchange in exchanges(&file) {
            let Some(operation) = meant(&operations, &exchange) else { continue };
            if let Some(Value::Object(of_operation)) = examples.get_mut(&operation.id) {
                take(of_operation, &exchange);
            }
        }
    }
    for of_operation in examples.values_mut().filter_map(Value::as_object_mut) {
        of_operation.sort_keys();
    }
    let text = serde_json::to_string_pretty(&examples).expect("JSON");
    compare_source(&root().join("openapi/examples.json"), &format!("{text}\n"), "openapi/openapi.json")
}

/// Adds examples of an operation: the body of the response and, if the request was successful, the body of the request.
/// Skips long or confusing examples, and does not replace examples that were added before.
fn take(examples: &mut Map<String, Value>, exchange: &Exchange) {
    let shown = |example: &Value| {
        let text = example.to_string();
        let confuses = CONFUSING.iter().any(|part| text.contains(part));
        (example.is_object() && text.len() <= MAX_EXAMPLE_BYTES && !confuses).then(|| example.clone())
    };
    if exchange.status.starts_with('2')
        && let Some(body) = exchange.body.as_ref().and_then(shown)
    {
        examples.entry("request").or_insert(body);
    }
    if let Some(answer) = exchange.answer.as_ref().and_then(shown) {
        examples.entry(exchange.status.clone()).or_insert(answer);
    }
}
