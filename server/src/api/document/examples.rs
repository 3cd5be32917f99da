//! Examples of requests and responses, taken from the HTTP scenarios of the tests.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The examples by operation id and then by `request` or response status. A test extracts the examples from the HTTP
/// scenarios.
static EXAMPLES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../../openapi/examples.json")).unwrap_or_default());

/// Adds the examples to an operation's request and responses.
pub fn show(operation: &mut Map<String, Value>) {
    let Some(known) = operation.get("operationId").and_then(Value::as_str).and_then(|id| EXAMPLES.get(id)) else {
        return;
    };
    let known = known.as_object().into_iter().flatten();
    for (what, example) in known {
        let shown = match what.as_str() {
            "request" => operation.get_mut("requestBody"),
            status => operation.get_mut("responses").and_then(|responses| responses.get_mut(status)),
        };
        let content = shown.and_then(|shown| shown.pointer_mut("/content/application~1json"));
        if let Some(content) = content.and_then(Value::as_object_mut) {
            content.insert("example".into(), example.clone());
        }
    }
}
