//! Calls every operation of the OpenAPI document as every kind of caller. Each response has the status that the
//! document implies, each error has the common format, and no response contains data of another workspace.
//!
//! The operations are read from the document, so new operations are covered automatically. `matrix.toml` contains the
//! additional data that the document does not specify.

mod cast;

use std::collections::BTreeMap;

use foldwork_engine::model::access::Scope;
use foldwork_engine::workspace::keys::NewKey;
use foldwork_server::API;
use foldwork_server::Config;
use foldwork_tests::apart;
use foldwork_tests::expectation::{all_well, read, root};
use poem::http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use strum::VariantArray;

use cast::{Answered, Cast, WorkspaceRecords, cast};

/// An id that no record has.
const UNKNOWN_ID: &str = "019b76da-a800-7001-8000-ffffffffffff";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Supplement {
    shows_all: Vec<String>,
    parameters: BTreeMap<String, String>,
    bodies: BTreeMap<String, String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    operation: String,
    case: String,
    status: u16,
    #[expect(dead_code, reason = "documents the entry for readers of the file")]
    why: String,
}

/// An operation as the document describes it.
struct Operation {
    id: String,
    method: Method,
    path: String,
    /// The scopes of the operation, or `None` if no scope is needed. If `needs_all` is set, a caller needs all of the
    /// scopes. Otherwise, a caller needs one of the scopes.
    scopes: Option<Vec<Scope>>,
    /// Whether a caller needs all scopes.
    needs_all: bool,
    /// Whether the operation needs a token of an identity provider.
    is_session: bool,
    role: Option<String>,
    statuses: Vec<u16>,
    parameters: Vec<String>,
    /// The media type of the body, and the body to send.
    body: Option<(String, String)>,
    /// Whether the body is valid for this operation.
    is_exact: bool,
}

fn operations(supplement: &Supplement) -> Vec<Operation> {
    let document = foldwork_server::openapi(&Config::default());
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let base = item["servers"][0]["url"].as_str().unwrap_or(API);
        for (method, operation) in item.as_object().expect("operations") {
            let Some(id) = operation["operationId"].as_str() else { continue };
            let scopes = operation["x-required-scope"].as_array();
            let scope = |name: &Value| Scope::parse(name.as_str().unwrap_or_default()).expect("a scope");
            let body = operation["requestBody"]["content"].as_object().and_then(|content| content.iter().next());
            let body = body.map(|(media_type, content)| {
                let made = || sample(&document, &content["schema"]).to_string();
                (media_type.clone(), supplement.bodies.get(id).cloned().unwrap_or_else(made))
            });
            let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
            // Uses any text for a parameter without a known value, because the matrix checks only access.
            let required_query =
                parameters.iter().filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
            let query: Vec<String> =
                required_query.filter_map(|one| Some(format!("{}=x", one["name"].as_str()?))).collect();
            let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
            let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
            operations.push(Operation {
                id: id.to_owned(),
                method: method.to_uppercase().parse().expect("a method"),
                path: format!("{base}{path}{query}"),
                scopes: scopes.map(|names| names.iter().map(scope).collect()),
                needs_all: operation["x-required-scope-all"] == true,
                is_session: operation["x-required-session"] == true,
                role: operation["x-required-role"].as_str().map(str::to_owned),
                statuses: statuses(operation),
                parameters: in_path.filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned())).collect(),
                is_exact: body.is_none() || supplement.bodies.contains_key(id),
                body,
            });
        }
    }
    operations
}

fn statuses(operation: &Value) -> Vec<u16> {
    let responses = operation["responses"].as_object().expect("responses");
    responses.keys().filter_map(|status| status.parse().ok()).collect()
}

/// Returns the example of a schema. Without an example, returns the first value of the schema's `enum`. If the schema
/// has neither, returns a small value that matches the schema.
fn sample(document: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return sample(document, document.pointer(&reference[1..]).expect("a schema"));
    }
    if let Some(one) = schema.pointer("/oneOf/0").or_else(|| schema.pointer("/allOf/0")) {
        return sample(document, one);
    }
    if let Some(example) = schema.get("example").or_else(|| schema["enum"].get(0)) {
        return example.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            let field = |name: &Value| {
                let name = name.as_str()?;
                Some((name.to_owned(), sample(document, &schema["properties"][name])))
            };
            Value::Object(required.iter().filter_map(field).collect::<Map<_, _>>())
        }
        Some("array") => json!([]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("x"),
    }
}

/// The expected response to a call.
enum Expected {
    /// This status with this error code.
    Refused(u16, &'static str),
    /// Success, or any error that does not depend on the caller.
    Served,
    /// The status 404. If the body may be invalid, 400 is accepted as well.
    Absent,
}

struct Case<'a> {
    name: &'static str,
    token: Option<String>,
    things: &'a WorkspaceRecords,
    hidden: &'a WorkspaceRecords,
    expected: Expected,
}

async fn cases<'a>(cast: &'a Cast, operation: &Operation) -> Vec<Case<'a>> {
    let Cast { ours, theirs, .. } = cast;
    let of = |name, token: Option<&str>, expected| Case {
        name,
        token: token.map(str::to_owned),
        things: ours,
        hidden: theirs,
        expected,
    };
    let mut cases = Vec::new();
    let paid = |scopes: &[Scope]| scopes.iter().all(|scope| scope.is_paid());
    if let Some(scopes) = &operation.scopes {
        let strange = [
            ("no token", None),
            ("garbage", Some("garbage")),
            ("no such key", Some(NO_KEY)),
            ("expired key", Some(cast.expired.as_str())),
            ("revoked key", Some(cast.revoked.as_str())),
        ];
        cases.extend(strange.map(|(name, token)| of(name, token, Expected::Refused(401, "unauthenticated"))));
        let lesser = match operation.needs_all {
            true => Scope::VARIANTS.iter().copied().filter(|scope| *scope != Scope::ExtensionUnlock).collect(),
            false => Scope::VARIANTS.iter().copied().filter(|scope| !scopes.contains(scope)).collect(),
        };
        let owner = cast.server.workspace("owner").await.expect("a workspace");
        let new = NewKey { name: "lesser".into(), scopes: lesser, ..NewKey::default() };
        let lesser = owner.owner.create_key(new, None).await.expect("a key").secret;
        cases.push(of("without the scope", lesser.as_deref(), Expected::Refused(403, "insufficient_scope")));
        let is_paid = paid(scopes) || operation.needs_all;
        let lapsed = match is_paid && operation.role.as_deref() != Some("operator") {
            true => Expected::Refused(402, "subscription_required"),
            false => Expected::Served,
        };
        cases.push(of("lapsed", cast.token("cleo"), lapsed));
        let viewer = match operation.role.as_deref() {
            None => Expected::Served,
            Some("editor") => Expected::Refused(403, "insufficient_role"),
            Some(_) => Expected::Refused(403, "owner_required"),
        };
        cases.push(of("viewer", cast.token("bob"), viewer));
        let absent = || if operation.parameters.is_empty() { Expected::Served } else { Expected::Absent };
        let foreign = of("foreign member", cast.token("other"), absent());
        cases.push(Case { hidden: ours, ..foreign });
        if !operation.parameters.is_empty() {
            let foreign = of("foreign id", cast.token("owner"), Expected::Absent);
            cases.push(Case { things: theirs, ..foreign });
        }
    }
    if operation.is_session {
        for (name, token) in [("no token", None), ("garbage", Some("garbage")), ("no such key", Some(NO_KEY))] {
            cases.push(of(name, token, Expected::Refused(401, "unauthenticated")));
        }
        cases.push(of("key", cast.token("owner"), Expected::Refused(403, "session_required")));
        cases.push(of("stranger", cast.token("ada"), Expected::Refused(403, "not_a_member")));
        let foreign = if operation.parameters.is_empty() { Expected::Served } else { Expected::Absent };
        cases.push(of("another's", cast.token("cleo"), foreign));
    }
    // This case is last, because a successful call may delete records that the other cases use.
    let valid = if operation.is_session { "dan" } else { "owner" };
    cases.push(of("valid", cast.token(valid), Expected::Served));
    cases
}

const NO_KEY: &str = "sk_ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

async fn check(supplement: &Supplement, operation: &Operation) -> anyhow::Result<Vec<String>> {
    let cast = cast().await?;
    let mut failures = Vec::new();
    let known = |name: &String| supplement.parameters.get(name);
    let is_exact = operation.is_exact && operation.parameters.iter().all(|name| known(name).is_some());
    for case in cases(&cast, operation).await {
        let at = format!("{} as {}", operation.id, case.name);
        let id = |name: &String| {
            known(name)
                .and_then(|kind| case.things.ids.get(kind.as_str()).cloned())
                .unwrap_or_else(|| UNKNOWN_ID.to_owned())
        };
        let ids: Vec<String> = operation.parameters.iter().map(id).collect();
        let answered = match cast.call(operation, &ids, case.token.as_deref()).await {
            Ok(answered) => answered,
            Err(wrong) => {
                failures.push(format!("{at}: {wrong}"));
                continue;
            }
        };
        let Answered { status, code, required, text } = &answered;
        if !operation.statuses.contains(status) {
            failures.push(format!("{at}: {status} is not in the document"));
        }
        let exception = supplement.exceptions.iter().find(|one| one.operation == operation.id && one.case == case.name);
        let is_expected = match (&case.expected, exception) {
            (_, Some(exception)) => exception.status == *status,
            (Expected::Refused(expected, expected_code), None) => expected == status && expected_code == code,
            (Expected::Served, None) if operation.id == "exchange_sign_in_code" => *status == 401,
            (Expected::Served, None) if is_exact => (200..300).contains(status),
            (Expected::Served, None) => matches!(status, 200..=299 | 304 | 400 | 404 | 409),
            (Expected::Absent, None) if operation.is_exact => *status == 404,
            (Expected::Absent, None) => matches!(status, 400 | 404),
        };
        if !is_expected {
            failures.push(format!("{at}: unexpected response {status} {text}"));
        }
        if let (Some(scopes), "insufficient_scope") = (&operation.scopes, code.as_str()) {
            let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
            if *required != json!(names) {
                failures.push(format!("{at}: the error requires {required}; expected {names:?}"));
            }
        }
        // Removes the ids of the request, which a response may repeat.
        let without_ids = ids.iter().fold(text.clone(), |text, id| text.replace(id.as_str(), ""));
        let mut hidden = case.hidden.marks.iter().filter(|_| !supplement.shows_all.contains(&operation.id));
        if let Some(mark) = hidden.find(|mark| without_ids.contains(mark.as_str())) {
            failures.push(format!("{at}: the response shows {mark} of another workspace: {text}"));
        }
        // Checks that an id of another workspace gets the same response as an unknown id.
        if case.name == "foreign id" && matches!(case.expected, Expected::Absent) && exception.is_none() {
            let unknown_ids: Vec<String> = operation.parameters.iter().map(|_| UNKNOWN_ID.to_owned()).collect();
            let unknown =
                cast.call(operation, &unknown_ids, case.token.as_deref()).await.map_err(anyhow::Error::msg)?;
            let alike = |text: &str, ids: &[String]| {
                let mut body: Value = serde_json::from_str(text).unwrap_or_default();
                if let Some(body) = body.as_object_mut() {
                    body.remove("request_id");
                }
                ids.iter().fold(body.to_string(), |text, id| text.replace(id.as_str(), "?"))
            };
            if (unknown.status, alike(&unknown.text, &unknown_ids)) != (*status, alike(text, &ids)) {
                failures.push(format!("{at}: found {text}, but an unknown id gets {}", unknown.text));
            }
        }
    }
    Ok(failures)
}

#[test]
fn responses_have_the_status_for_their_caller_and_no_data_of_another_workspace() {
    let supplement: Supplement = toml::from_str(&read(&root().join("tests/matrix.toml"))).expect("tests/matrix.toml");
    let operations = operations(&supplement);
    let known = |id: &str| operations.iter().any(|operation| operation.id == id);
    let named = supplement.bodies.keys().chain(supplement.exceptions.iter().map(|exception| &exception.operation));
    let mut failures: Vec<String> =
        named.filter(|id| !known(id)).map(|id| format!("matrix.toml: unknown operation {id}")).collect();
    let checked = apart::each(&operations, |operation| check(&supplement, operation));
    for (operation, checked) in operations.iter().zip(checked) {
        failures.extend(checked.unwrap_or_else(|error| vec![format!("{}: {error}", operation.id)]));
    }
    all_well(failures);
}
