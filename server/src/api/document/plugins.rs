//! Adds the endpoints of the enabled plugins to the OpenAPI document.

use foldwork_plugins::mount::{Endpoint, Handler};
use serde_json::{Value, json};

/// The section of the document for the endpoints of plugins.
const SECTION: &str = "Plugins";

/// Adds the endpoints of the plugins with these names.
pub fn mount(document: &mut Value, enabled: &[String]) {
    for (plugin, endpoint) in foldwork_plugins::endpoints(enabled) {
        let path = format!("/plugins/{plugin}/{}", endpoint.path);
        let method = endpoint.method.as_str().to_ascii_lowercase();
        document["paths"][path][method] = operation(&endpoint);
    }
}

fn operation(endpoint: &Endpoint) -> Value {
    let about = &endpoint.about;
    let scope = match endpoint.handler {
        Handler::Content(_) => "content:read|api:read",
        Handler::Read(_) => "api:read",
        Handler::Write(_) => "api:write",
    };
    let parameters: Vec<Value> = about.parameters.iter().map(|(name, text)| query(name, text)).collect();
    let known = json!({"name": "If-None-Match", "in": "header", "required": false, "schema": {"type": "string"}});
    let tag = json!({"ETag": {"description": "The entity tag.", "required": true, "schema": {"type": "string"}}});
    let content = json!({about.media_type: {"schema": {"type": "string"}}});
    json!({
        "tags": [SECTION],
        "summary": about.summary,
        "description": about.description,
        "operationId": about.operation_id,
        "security": [{scope: []}],
        "parameters": parameters.into_iter().chain([known]).collect::<Vec<_>>(),
        "responses": {
            "200": {"description": about.summary, "headers": tag, "content": content},
            "304": {"description": "The client has the current version.", "headers": tag},
        },
    })
}

fn query(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "query", "required": false, "description": description, "schema": {"type": "string"}})
}
