//! Descriptions of the parameters that several operations have.

use serde_json::{Map, Value, json};

use crate::auth::CONSISTENCY;
use crate::wire::page::{DEFAULT_LIMIT, MAX_LIMIT};

/// The location, the name and the description of each parameter.
const KNOWN: [(&str, &str, &str); 23] = [
    ("path", "activation_id", "The activation's id."),
    ("path", "agent_id", "The agent's id."),
    ("path", "aggregate_id", "The aggregate's id."),
    ("path", "event_id", "The event's id."),
    ("path", "invitation_id", "The invitation's id."),
    ("path", "key_id", "The key's id, which is not the secret key."),
    ("path", "member_id", "The member's id."),
    ("path", "name", "The plugin's name."),
    ("path", "project_id", "The project's id or slug."),
    ("path", "restore_id", "The restore's id."),
    ("path", "step_id", "The parked step's id."),
    ("path", "task_id", "The task's id."),
    ("path", "type_name", "The aggregate type's name."),
    ("path", "user_id", "The user's id."),
    ("path", "workspace_id", "The workspace's id."),
    ("query", "aggregate_type", "Only items of this aggregate type."),
    (
        "query",
        CONSISTENCY,
        "If several servers share the store, `eventual` reads this server's state in memory, which may be outdated.",
    ),
    ("query", "cursor", "The `next_cursor` of the previous page; the default is the first page."),
    ("query", "expected_version", "The expected version. If the current version differs, the response is 409."),
    ("query", "project_id", "Only items of this project, given by id or slug."),
    (
        "header",
        "Foldwork-Durability",
        "`archived` delays the response until the events are in the backup archive. Requires a backup (409 \
         `backup_disabled`).",
    ),
    ("header", "Idempotency-Key", "Chosen by the client. A repeated request with the same key creates nothing new."),
    ("header", "If-None-Match", "The `ETag` that the client has. If this tag is still current, the response is 304."),
];
const IF_MATCH: &str =
    "The expected current version, in quotes, or `*` for any version. The response is 409 if the version is another.";
const LAST_EVENT_ID: &str =
    "For a stream, the position of the last event that the client received. The stream continues after this event.";

/// Adds the parameter that selects the consistency of a read.
pub fn add_consistency(operation: &mut Map<String, Value>) {
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    let schema = json!({"type": "string", "enum": ["strong", "eventual"], "default": "strong"});
    let parameter = json!({"name": CONSISTENCY, "in": "query", "required": false, "schema": schema});
    parameters.as_array_mut().into_iter().for_each(|parameters| parameters.push(parameter.clone()));
}

/// Adds descriptions to parameters without a description, and removes parameters that OpenAPI does not allow. Adds the
/// range to the `limit` of a list. If the handler describes no other default, also adds the default number of rows.
pub fn describe(operation: &mut Map<String, Value>) {
    let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) else { return };
    // The `Accept` header is not a parameter in OpenAPI: the media types of the responses imply it.
    parameters.retain(|parameter| !is(parameter, "header", "Accept"));
    let is_list = parameters.iter().any(|parameter| is(parameter, "query", "cursor"));
    for parameter in parameters.iter_mut() {
        if is_list && is(parameter, "query", "limit") {
            parameter["schema"]["minimum"] = 1.into();
            parameter["schema"]["maximum"] = MAX_LIMIT.into();
            if parameter["description"].as_str().is_none_or(str::is_empty) {
                let text = format!("Rows per page, 1 to {MAX_LIMIT}; the default is {DEFAULT_LIMIT}.");
                parameter["description"] = text.into();
                parameter["schema"]["default"] = DEFAULT_LIMIT.into();
            }
        }
        if parameter["description"].as_str().is_none_or(str::is_empty)
            && let Some(known) = description(parameter)
        {
            parameter["description"] = known.into();
        }
    }
}

fn description(parameter: &Value) -> Option<&'static str> {
    let known =
        KNOWN.iter().copied().chain([("header", "If-Match", IF_MATCH), ("header", "Last-Event-ID", LAST_EVENT_ID)]);
    let mut known = known.filter(|(place, name, _)| is(parameter, place, name));
    known.next().map(|(_, _, description)| description)
}

fn is(parameter: &Value, place: &str, name: &str) -> bool {
    parameter["in"] == *place && parameter["name"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name))
}
