//! Parameters that mean the same wherever they stand: what each is, said once.

use serde_json::{Map, Value};

use crate::wire::page::{DEFAULT_LIMIT, MAX_LIMIT};

/// Where a parameter stands, its name, and what it is.
const KNOWN: [(&str, &str, &str); 17] = [
    ("path", "activation_id", "The activation's id."),
    ("path", "agent_id", "The agent's id."),
    ("path", "aggregate_id", "The aggregate's id."),
    ("path", "invitation_id", "The invitation's id."),
    ("path", "key_id", "The key's id, which is not the key."),
    ("path", "member_id", "The member's id."),
    ("path", "name", "The plugin's name."),
    ("path", "project_id", "The project's id or slug."),
    ("path", "step_id", "The parked step's id."),
    ("path", "task_id", "The task's id."),
    ("path", "type_name", "The aggregate type's name."),
    ("path", "user_id", "The user's id."),
    ("query", "aggregate_type", "Those of this aggregate type."),
    ("query", "cursor", "The `next_cursor` of the page before; without it the first page is answered."),
    ("query", "project_id", "Those of this project: its id or slug."),
    ("header", "Idempotency-Key", "Chosen by the client: with it, the same request sent again makes nothing new."),
    ("header", "If-None-Match", "The `ETag` that the client has: where it is still right, 304 is answered."),
];
const IF_MATCH: &str =
    "The version that is to be changed, in quotes, or `*` for any that is there; another one is a conflict.";
const LAST_EVENT_ID: &str = "Of a stream: the position of the last event seen. It goes on after it.";

/// Describes what the handlers do not, and takes out what OpenAPI has no parameters for.
pub fn describe(operation: &mut Map<String, Value>) {
    let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) else { return };
    // What a client accepts follows from the answers that are listed.
    parameters.retain(|parameter| !is(parameter, "header", "Accept"));
    let is_list = parameters.iter().any(|parameter| is(parameter, "query", "cursor"));
    for parameter in parameters.iter_mut() {
        if is_list && is(parameter, "query", "limit") {
            let text = format!("How many at the most, 1 to {MAX_LIMIT}; {DEFAULT_LIMIT} where it is not given.");
            parameter["description"] = text.into();
            parameter["schema"]["minimum"] = 1.into();
            parameter["schema"]["maximum"] = MAX_LIMIT.into();
            parameter["schema"]["default"] = DEFAULT_LIMIT.into();
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
