//! Calls every operation of the document as every kind of caller: each response has the status that the document
//! implies, an error has the common shape, and nothing of another workspace is shown.
//!
//! Operations are read from the document, so new ones are covered too. `matrix.toml` contains what the document does
//! not specify.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::plan::PlanStatus;
use foldwork_engine::workspace::articles::NewArticle;
use foldwork_engine::workspace::keys::NewKey;
use foldwork_engine::workspace::licenses::Device;
use foldwork_engine::workspace::members::NewPlan;
use foldwork_engine::workspace::projects::NewProject;
use foldwork_engine::{AccessSettings, Operator, Unlocker};
use foldwork_server::{API, Config};
use foldwork_tests::apart;
use foldwork_tests::expectation::{all_well, read, root};
use foldwork_tests::handles::{Handles, join};
use foldwork_tests::issuer::Provider;
use foldwork_tests::server::Server;
use poem::http::Method;
use poem::{Body, Request};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const HOUR_MS: i64 = 3_600_000;
/// An id that nothing has.
const UNKNOWN_ID: &str = "019b76da-a800-7001-8000-ffffffffffff";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Supplement {
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
    /// The scopes, one of which is needed. `None` if no scope is needed.
    scopes: Option<Vec<Scope>>,
    /// Whether all of the scopes are needed.
    needs_all: bool,
    /// Whether the operation needs a token of an identity provider.
    is_session: bool,
    role: Option<String>,
    statuses: Vec<u16>,
    parameters: Vec<String>,
    /// The media type of the body, and a body.
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
            // Without a known value any text serves: the matrix only checks access.
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

/// Returns the smallest value that matches a schema.
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

/// The ids of one workspace's records by kind, and texts that occur nowhere outside the workspace.
struct Things {
    ids: BTreeMap<&'static str, String>,
    marks: Vec<String>,
}

/// The callers and their credentials.
struct Cast {
    server: Server,
    ours: Things,
    theirs: Things,
    expired: String,
    revoked: String,
}

async fn cast() -> anyhow::Result<Cast> {
    // Users get no personal workspace: a token opens the workspace that its user has joined.
    let settings = AccessSettings { auto_provision: false, ..Provider::settings(&["ES256"]) };
    let mut config = Config::default();
    config.plugins.enabled.clear();
    let server = Server::start_deciding(&config, settings, Arc::default()).await?;
    let owner = server.workspace("owner").await?;
    let other = server.workspace("other").await?;
    let new = |expires_at| NewKey { name: "one".into(), scopes: Scope::ALL.to_vec(), expires_at, ..NewKey::default() };
    let expired = owner.owner.create_key(new(Some(1_767_225_600_000 + HOUR_MS)), None).await?;
    let revoked = owner.owner.create_key(new(None), None).await?;
    owner.owner.revoke_key(&revoked.record.id).await?;
    for (name, role) in [("bob", Role::Viewer), ("cleo", Role::Owner)] {
        let token = server.key(name).expect("a token");
        join(&server.engine, &owner.owner, token, &format!("{name}@example.com"), role).await?;
    }
    let lapsed = server.engine.authenticate(server.key("cleo").expect("a token")).await?;
    let operator: Operator =
        server.engine.enter(server.engine.authenticate(server.key("owner").expect("a key")).await?).await?;
    let plan = NewPlan { status: Some(PlanStatus::Canceled), ..NewPlan::default() };
    operator.set_plan(lapsed.user_id(), plan).await?;
    let ours = things(&server, &owner, "main", "owner").await?;
    let theirs = things(&server, &other, "else", "other").await?;
    server.clock.advance(HOUR_MS);
    let secret = |key: foldwork_engine::workspace::keys::CreatedKey| key.secret.expect("a key");
    Ok(Cast { server, ours, theirs, expired: secret(expired), revoked: secret(revoked) })
}

/// Creates one record of each kind in a workspace.
async fn things(server: &Server, workspace: &Handles, mark: &str, owner: &str) -> anyhow::Result<Things> {
    let marked = format!("marked-of-{mark}");
    let project = NewProject { name: marked.clone(), ..NewProject::default() };
    let (project, _) = workspace.writer.create_project(project).await?;
    let article = NewArticle { title: marked.clone(), body: Some(marked.clone()), ..NewArticle::default() };
    let (article, _) = workspace.writer.create_article(article).await?;
    let key = NewKey { name: marked.clone(), scopes: vec![Scope::ApiRead], ..NewKey::default() };
    let key = workspace.owner.create_key(key, None).await?;
    workspace.owner.invite(&format!("{marked}@example.com"), Role::Viewer).await?;
    let joins = format!("dan-{mark}@example.com");
    let mut claims = foldwork_tests::server::claims_of("dan");
    claims["sub"] = joins.clone().into();
    claims["email"] = joins.as_str().into();
    let token = foldwork_tests::issuer::signed_with(foldwork_tests::issuer::SECRET, &claims);
    let member = join(&server.engine, &workspace.owner, &token, &joins, Role::Viewer).await?;
    let invited = if mark == "main" { "dan@example.com" } else { "nobody@example.com" };
    let invitation = workspace.owner.invite(invited, Role::Viewer).await?;
    let caller = server.engine.authenticate(server.key(owner).expect("a key")).await?;
    let unlocker: Unlocker = server.engine.enter(caller).await?;
    let device = Device { instance_id: format!("device-of-{mark}"), name: Some(marked.clone()), ..Device::default() };
    let (activated, _) = unlocker.validate_device(device).await?;
    let type_name = format!("type_{mark}");
    let definition = json!({"type_name": type_name, "display_name": marked, "traits": [], "fields": []});
    let definition = serde_json::from_value(definition)?;
    workspace.writer.define_type(&definition, false).await?;
    let workspace_id = workspace.reader.record().id.to_string();
    let ids = BTreeMap::from([
        ("project", project.id.to_string()),
        ("article", article.id.to_string()),
        ("key", key.record.id.to_string()),
        ("member", member.user_id().to_owned()),
        ("invitation", invitation.id.to_string()),
        ("activation", activated.activation.expect("a device").id.to_string()),
        ("type", type_name),
    ]);
    let marks = ids.values().cloned().chain([marked, workspace_id]).collect();
    Ok(Things { ids, marks })
}

/// The result of a call.
struct Answered {
    status: u16,
    code: String,
    required: Value,
    text: String,
}

impl Cast {
    async fn call(&self, operation: &Operation, ids: &[String], token: Option<&str>) -> Result<Answered, String> {
        let mut path = operation.path.clone();
        for (name, id) in operation.parameters.iter().zip(ids) {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        let uri: poem::http::Uri = path.parse().map_err(|error| format!("{path}: {error}"))?;
        let mut request = Request::builder().method(operation.method.clone()).uri(uri);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = match &operation.body {
            Some((media_type, body)) => request.header("content-type", media_type).body(Body::from(body.clone())),
            None => request.finish(),
        };
        let answer = self.server.call(request).await;
        let status = answer.status();
        let request_id = answer.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let text = answer.into_body().into_string().await.map_err(|error| error.to_string())?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_client_error() || status.is_server_error() {
            let has_shape = body["error"].is_string()
                && (body["code"].is_string() || body["code"].is_i64())
                && body["request_id"].as_str() == request_id.as_deref();
            if !has_shape {
                return Err(format!("{status} has no error of the common shape: {text}"));
            }
        }
        let code = body["code"].as_str().unwrap_or_default().to_owned();
        Ok(Answered { status: status.as_u16(), code, required: body["required"].clone(), text })
    }

    fn token(&self, name: &str) -> Option<&str> {
        self.server.key(name)
    }
}

/// The expected response to a call.
enum Expected {
    /// This status with this error code.
    Refused(u16, &'static str),
    /// Success if the call is valid; otherwise any error that does not concern the caller.
    Served,
    /// Not found.
    Absent,
}

struct Case<'a> {
    name: &'static str,
    token: Option<String>,
    things: &'a Things,
    hidden: &'a Things,
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
            true => Scope::ALL.into_iter().filter(|scope| *scope != Scope::ExtensionUnlock).collect(),
            false => Scope::ALL.into_iter().filter(|scope| !scopes.contains(scope)).collect(),
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
    // The last case, because a successful call may delete records that the other cases use.
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
            failures.push(format!("{at}: {status} {text}"));
        }
        if let (Some(scopes), "insufficient_scope") = (&operation.scopes, code.as_str()) {
            let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
            if *required != json!(names) {
                failures.push(format!("{at}: required is {required}"));
            }
        }
        // A response may repeat ids of the request.
        let without_ids = ids.iter().fold(text.clone(), |text, id| text.replace(id.as_str(), ""));
        if let Some(mark) = case.hidden.marks.iter().find(|mark| without_ids.contains(mark.as_str())) {
            failures.push(format!("{at}: shows {mark} of another workspace: {text}"));
        }
        // An id of another workspace gets the same response as an unknown id.
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
                failures.push(format!("{at}: {text}, but an unknown id: {}", unknown.text));
            }
        }
    }
    Ok(failures)
}

#[test]
fn every_operation_gives_every_caller_the_documented_status() {
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
