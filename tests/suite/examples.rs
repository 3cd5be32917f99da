//! The examples in the document are requests and answers of the scenarios, as they were sent and given.

use foldwork_tests::expectation::{all_well, compare, files, root};
use foldwork_tests::scenario::{Exchange, exchanges};
use serde_json::{Map, Value};

use crate::coverage::{meant, operations};

/// An example longer than this explains nothing.
const LONGEST: usize = 2_000;

/// What stands in no example: values that a run makes up, and what linters misread, which take the fields of a type for a
/// schema and know no null among closed words.
const CONFUSING: [&str; 2] = ["${", r#""fields":[{"#];

#[test]
fn examples_are_what_the_scenarios_show() {
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
    all_well(compare(&root().join("openapi/examples.json"), &format!("{text}\n")).err().into_iter().collect());
}

/// Takes the first request that succeeded, and the first answer of each status.
fn take(examples: &mut Map<String, Value>, exchange: &Exchange) {
    let shown = |example: &Value| {
        let text = example.to_string();
        let confuses = CONFUSING.iter().any(|part| text.contains(part));
        (example.is_object() && text.len() <= LONGEST && !confuses).then(|| example.clone())
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
