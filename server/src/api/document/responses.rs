//! Adds errors and headers to the responses in the OpenAPI document. Handlers do not declare these errors and headers,
//! because both depend only on the kind of operation.

use serde_json::{Map, Value, json};

use super::GuardRequirements;

/// The path suffixes of operations that cannot cause a conflict although their method is not GET.
const WITHOUT_CONFLICT: [&str; 10] = [
    "/agents/connect",
    "/agents/heartbeat",
    "/query",
    "/search",
    "/dry-run",
    "{name}/replay",
    "/files/delete",
    "/plan",
    "/validate-license",
    DEACTIVATE,
];
/// The path suffixes of operations that run queries.
const RUNNING_QUERIES: [&str; 5] = ["/query", "/search", "/events/histogram", "/graph", "/mailbox/{task_id}"];
/// The path suffix of the operation that needs only a sign-in code.
const EXCHANGE: &str = "/sign-in-codes/exchange";
/// The path suffix of the operation that requires a caller with a key.
const OWN_KEY: &str = "/keys/self";
const DEACTIVATE: &str = "/deactivate-license";
/// The methods and paths of operations whose body names a resource that may not exist. Their responses include 404.
const NAMED_IN_BODY: [(&str, &str); 8] = [
    ("post", "/events"),
    ("post", "/files/delete"),
    ("post", "/agents/connect"),
    ("post", "/agents/heartbeat"),
    ("post", "/mailbox"),
    ("post", "/mailbox/actions"),
    ("post", "/mailbox/claim-next"),
    ("post", RESTORES),
];
/// The paths of operations that need an archive of backups. Without an archive, all these operations get 409.
const ARCHIVED: [&str; 3] = ["/system/backups", RESTORES, "/system/restores/{restore_id}"];
const RESTORES: &str = "/system/restores";

/// Adds the possible errors of an operation and the headers of its responses to the document.
pub fn complete(path: &str, method: &str, operation: &mut Map<String, Value>, needed: Option<&GuardRequirements>) {
    let errors = errors(path, method, operation, needed);
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    for (status, description) in errors {
        let schema = json!({"$ref": "#/components/schemas/Error"});
        responses[status] = json!({"description": description, "content": {"application/json": {"schema": schema}}});
    }
    for (status, response) in responses.as_object_mut().into_iter().flatten() {
        let mut add = |name: &str, description: &str| {
            response["headers"][name] =
                json!({"description": description, "schema": {"type": "string"}, "required": true});
        };
        add("X-Request-Id", "The request's id in the server's log. The client's own id if the request had one.");
        match status.as_str() {
            "401" => add("WWW-Authenticate", "`Bearer`."),
            "429" | "503" => add("Retry-After", "Seconds after which a retry may succeed."),
            _ => {}
        }
    }
}

fn errors(
    path: &str,
    method: &str,
    operation: &Map<String, Value>,
    needed: Option<&GuardRequirements>,
) -> Vec<(&'static str, &'static str)> {
    let content = operation.get("requestBody").map(|body| &body["content"]);
    let parameters = operation.get("parameters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let stands_in = |place: &str| parameters.iter().any(|parameter| parameter["in"] == *place);
    // Operations with a `link` parameter accept the link instead of a token.
    let is_linked = parameters.iter().any(|parameter| parameter["in"] == "query" && parameter["name"] == "link");
    let has_input = content.is_some() || stands_in("query") || stands_in("header");
    // Every operation, except for the endpoints of plugins, rejects query parameters that it does not have.
    let mut errors = vec![("400", "Invalid input.")];
    match needed {
        Some(needed) => {
            errors.push(("401", "Missing or invalid bearer token."));
            if needed.is_paid() {
                errors.push(("402", "The scope requires an active subscription."));
            }
            errors.push(("403", "The token lacks the required scope, or its user the required role."));
        }
        None if is_linked => errors.push(("403", "The link is invalid or has expired.")),
        None if path.ends_with(EXCHANGE) => errors.extend([
            ("401", "The code is invalid or has expired."),
            ("403", "The user of the code has the maximum number of keys."),
        ]),
        None => {}
    }
    if stands_in("path")
        || NAMED_IN_BODY.contains(&(method, path))
        || [DEACTIVATE, OWN_KEY].iter().any(|end| path.ends_with(end))
    {
        errors.push(("404", "Not found, or not in the caller's workspace."));
    }
    // A member or a workspace can be deleted without input, but the state of the member or workspace can cause a
    // conflict.
    let is_member = method == "delete" && ["{member_id}", "{workspace_id}"].iter().any(|end| path.ends_with(end));
    // Renaming a workspace cannot cause a conflict.
    let is_renaming = method == "patch" && path.ends_with("{workspace_id}");
    // Reloading a plugin takes no input, but the plugin's files can be rejected. Rebuilding the graph takes no input
    // either, but another rebuild can be running.
    let is_exclusive = ["/reload", "/rebuild-graph"].iter().any(|end| path.ends_with(end));
    if (needed.is_some() || is_linked)
        && (has_input || is_member || is_exclusive)
        && method != "get"
        && !is_renaming
        && !WITHOUT_CONFLICT.iter().any(|name| path.ends_with(name))
    {
        errors.push(("409", "A conflict with the current state."));
    }
    if method == "get" && ARCHIVED.contains(&path) {
        errors.push(("409", "The server has no backup."));
    }
    if content.is_some() {
        errors.push(("408", "The body did not arrive in time."));
        errors.push(("413", "The body is too large."));
    }
    if content.is_some_and(|content| content.get("application/json").is_some()) {
        errors.push(("415", "The body is not JSON."));
    }
    let too_many = if RUNNING_QUERIES.iter().any(|name| path.ends_with(name)) {
        "Too many requests, or more concurrent queries than a key or a workspace may run."
    } else {
        "Too many requests."
    };
    errors.extend([
        ("429", too_many),
        ("500", "Internal server error."),
        ("503", "The server is busy, or the store or the identity provider does not respond."),
    ]);
    errors
}
