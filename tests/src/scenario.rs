//! HTTP scenarios: YAML files of requests with their responses. The requests of a file are sent in order to a new
//! server.
//!
//! A file is a list of steps between `---` lines. A step contains the caller (`as`), the request (`request`, `headers`,
//! `body` or `raw`), the parts of the response to save for later steps (`save`), and the plugin files to write before
//! the request (`files`). A step ends with the line `expect:` and the expected response, which `UPDATE=1` writes. The
//! response is compared as text, so the comparison includes the order of fields and the format of numbers. `${name}` is
//! replaced by a saved value, and `${'text' * 3}` by the text repeated three times.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use poem::http::{HeaderMap, Method};
use poem::{Body, Request};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::expectation::{read, root};
use crate::json::pretty;
use crate::server::{Server, Setup};

/// The line between two steps.
const STEP_SEPARATOR: &str = "\n---\n";
/// The line after which the rest of a step is generated.
const EXPECT_MARKER: &str = "\nexpect:\n";
const PLUGINS: &str = "# plugins:";
const AGENTS: &str = "# agents:";
/// The first line of each scenario file whose server has an archive of backups.
const BACKUP: &str = "# backup\n";
/// The YAML field with the plugin files that a step writes. If a scenario contains this field, its server loads copies
/// of the plugins, so that the original files do not change.
const FILES: &str = "\nfiles:";
/// The request id of every request whose step sets no `x-request-id` header.
const REQUEST_ID: &str = "request-of-a-test";
/// The maximum length of a body that is shown. For a longer body, only the length is shown, unless the step has `pick`.
const MAX_BODY_BYTES: usize = 30_000;

/// A step as written in its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// The name of the step: a sentence about the behavior that the step shows.
    name: String,
    /// The caller: the name of a key or of a user, a token, or `none` for a request without a credential. Without this
    /// field, the caller is `owner`.
    #[serde(default, rename = "as")]
    caller: Option<String>,
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<Value>,
    #[serde(default)]
    raw: Option<String>,
    /// The plugin files to write before the request: the content of each file by the path below the plugin folder.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The number of milliseconds by which the clock is advanced before the request.
    #[serde(default)]
    advance_ms: i64,
    /// The values to save for later steps, by name. The place of a value is a JSON pointer into the body of the
    /// response, or `header NAME`.
    #[serde(default)]
    save: BTreeMap<String, String>,
    /// The parts of a successful response's body to show, as JSON pointers. Without this list, the whole body is shown,
    /// or only its length if it is longer than [`MAX_BODY_BYTES`].
    #[serde(default)]
    pick: Option<Vec<String>>,
}

/// A request and its expected response.
pub struct Exchange {
    /// The name of the step.
    pub name: String,
    pub method: String,
    /// The path of the request, without the query. If the step requests a saved URL, this is the path of the URL. A
    /// placeholder that is only a part of the path is not replaced.
    pub path: String,
    /// The JSON body of the request. If the earlier responses in the file contain the values of all placeholders, the
    /// placeholders are replaced. Otherwise the body is as written.
    pub body: Option<Value>,
    pub status: String,
    /// The JSON body of the response. `None` if the step has `pick`, or if the file shows no body that can be parsed.
    pub answer: Option<Value>,
}

/// The headers and the body of the response that a step expects.
#[derive(Default)]
struct Expected {
    headers: BTreeMap<String, String>,
    body: Option<Value>,
}

/// Returns the requests and responses written in a file, without running them.
pub fn exchanges(path: &Path) -> Vec<Exchange> {
    let text = read(path);
    let mut exchanges = Vec::new();
    let mut saved = BTreeMap::new();
    for (head, expectation) in steps(&text) {
        let step: Step = parse(head, path).unwrap_or_else(|error| panic!("{error:#}"));
        let (method, target) = step.request.split_once(' ').unwrap_or_default();
        let target = target_of(target, &saved);
        let status = expectation.lines().find_map(|line| line.trim().strip_prefix("status: ")).unwrap_or_default();
        let body = step.body.as_ref().map(Value::to_string);
        let body =
            body.map(|text| filled(&text, &saved).unwrap_or(text)).and_then(|text| serde_json::from_str(&text).ok());
        let mut answer = expected(expectation);
        save(&step, &answer, &mut saved);
        if status.starts_with(['4', '5'])
            && let Some(error) = answer.body.as_mut().and_then(Value::as_object_mut)
        {
            error.insert("request_id".into(), REQUEST_ID.into());
        }
        exchanges.push(Exchange {
            method: method.into(),
            path: target.split('?').next().unwrap_or_default().into(),
            body,
            status: status.into(),
            answer: answer.body.filter(|_| step.pick.is_none()),
            name: step.name,
        });
    }
    exchanges
}

/// Returns the target of a request. If the target is a URL saved by an earlier step, returns the part after the host.
fn target_of(target: &str, saved: &BTreeMap<String, String>) -> String {
    let url = target.strip_prefix("${").and_then(|rest| saved.get(rest.strip_suffix('}')?));
    let behind = url.and_then(|url| url.split_once("://")).and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
    behind.unwrap_or(target).to_owned()
}

/// Parses the text after `expect:`. The headers and the body are JSON. A body that is nested too deeply to parse counts
/// as absent.
fn expected(expectation: &str) -> Expected {
    let (head, body) = expectation.split_once("\n  body: ").unwrap_or((expectation, ""));
    let headers = head.split_once("\n  headers: ").and_then(|(_, headers)| serde_json::from_str(headers).ok());
    Expected { headers: headers.unwrap_or_default(), body: serde_json::from_str(body).ok() }
}

/// Saves each value that the step lists in `save`. Skips values that the response does not contain.
fn save(step: &Step, answer: &Expected, saved: &mut BTreeMap<String, String>) {
    for (name, place) in &step.save {
        let found = match place.strip_prefix("header ") {
            Some(header) => answer.headers.get(header).cloned(),
            None => answer.body.as_ref().and_then(|body| body.pointer(place)).map(plain),
        };
        if let Some(found) = found {
            saved.insert(name.clone(), found);
        }
    }
}

/// Runs a file against a new server and returns the text that the file should contain. With `on_two`, runs the file
/// against two servers on one store, and sends the requests to the two servers in turn.
pub async fn run(path: &Path, on_two: bool) -> anyhow::Result<String> {
    let text = read(path);
    let folder = tempfile::tempdir()?;
    let setup = match (plugins(&text), agents(&text)) {
        (Some(names), _) if text.contains(FILES) => {
            copy_plugins(&names, folder.path())?;
            Setup::with_plugins_in(folder.path(), names)
        }
        (Some(names), _) => Setup::with_plugins(names),
        (None, Some(names)) => Setup::with_agents(&names),
        (None, None) if text.starts_with(BACKUP) => Setup::with_backup(),
        (None, None) => Setup::without_plugins(),
    };
    let server = if on_two { setup.start_two().await? } else { setup.start().await? };
    let mut saved: BTreeMap<String, String> =
        server.keys.iter().map(|(name, key)| (format!("key.{name}"), key.clone())).collect();
    let mut out: Vec<String> = Vec::new();
    for (head, _) in steps(&text) {
        let step: Step = parse(head, path)?;
        if plugins(&text).is_some() {
            server.worked().await?;
        }
        for (file, text) in &step.files {
            std::fs::write(folder.path().join(file), text).with_context(|| format!("{file} cannot be written"))?;
        }
        let answer = answer(&server, &step, &mut saved).await.with_context(|| format!("in '{}'", step.name))?;
        out.push(format!("{}{EXPECT_MARKER}{}", head.trim_end(), answer.trim_end()));
    }
    Ok(out.join(STEP_SEPARATOR) + "\n")
}

/// Copies the folders of plugins that are not shipped, so that a scenario can change their files.
fn copy_plugins(names: &[String], to: &Path) -> anyhow::Result<()> {
    for name in names {
        let from = root().join("tests/plugins").join(name);
        if !from.is_dir() {
            continue;
        }
        std::fs::create_dir(to.join(name))?;
        for file in std::fs::read_dir(&from)? {
            let file = file?;
            std::fs::copy(file.path(), to.join(name).join(file.file_name()))?;
        }
    }
    Ok(())
}

/// Returns the plugins in the first line of a file, `# plugins: name, name`. With such a line, each step first waits
/// until the plugins have been called for every appended event.
fn plugins(text: &str) -> Option<Vec<String>> {
    listed(text, PLUGINS)
}

/// Returns the agents in the first line of a file, `# agents: name, name`. The steps of the file do the work of the
/// agents, whose ids are `agent-<name>`.
fn agents(text: &str) -> Option<Vec<String>> {
    listed(text, AGENTS)
}

fn listed(text: &str, what: &str) -> Option<Vec<String>> {
    let names = text.lines().next()?.strip_prefix(what)?;
    Some(names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
}

/// Splits each step into its handwritten part and the text from `expect:` on, which is empty in a new step.
fn steps(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let cut = |step| -> (&str, &str) {
        let step: &str = step;
        match step.find(EXPECT_MARKER) {
            Some(at) => step.split_at(at),
            None => (step, ""),
        }
    };
    text.split(STEP_SEPARATOR).map(cut)
}

fn parse(head: &str, path: &Path) -> anyhow::Result<Step> {
    serde_saphyr::from_str(head).with_context(|| format!("{} has a step that cannot be read:\n{head}", path.display()))
}

async fn answer(server: &Server, step: &Step, saved: &mut BTreeMap<String, String>) -> anyhow::Result<String> {
    server.pass(step.advance_ms).await?;
    let request = request(server, step, saved)?;
    let sent_id = request.header("x-request-id").unwrap_or_default().to_owned();
    let response = server.call(request).await;
    let status = response.status();
    let headers = response.headers().clone();
    // Removes the body from a response to HEAD. A server with a socket leaves this to its HTTP library.
    let is_head = step.request.starts_with("HEAD ");
    let bytes = if is_head { Vec::new() } else { response.into_body().into_vec().await? };
    let mut body: Option<Value> = match bytes.as_slice() {
        [] => None,
        bytes if bytes.len() > MAX_BODY_BYTES && step.pick.is_none() => Some(format!("{} bytes", bytes.len()).into()),
        bytes => {
            let text = || Value::from(String::from_utf8_lossy(bytes).into_owned());
            Some(serde_json::from_slice(bytes).unwrap_or_else(|_| text()))
        }
    };
    // Checks that the body of an error has the request id of the header, and leaves the id out of the shown body.
    if status.is_client_error() || status.is_server_error() {
        let named = body.as_mut().and_then(Value::as_object_mut).and_then(|body| body.shift_remove("request_id"));
        let of_header = headers.get("x-request-id").and_then(|id| id.to_str().ok());
        if body.is_some() && named.as_ref().and_then(Value::as_str) != of_header {
            bail!("the error has the request id {named:?}, but the header x-request-id is {of_header:?}: {body:?}");
        }
    }
    for (name, place) in &step.save {
        let found = match place.strip_prefix("header ") {
            Some(header) => headers.get(header).and_then(|value| value.to_str().ok()).map(str::to_owned),
            None => body.as_ref().and_then(|body| body.pointer(place)).map(plain),
        };
        saved.insert(name.clone(), found.with_context(|| format!("{place} is not in response {status}: {body:?}"))?);
    }
    // Selects parts only of successful responses. Errors are shown completely.
    if let (Some(places), Some(whole), true) = (&step.pick, &body, status.is_success()) {
        let part = |place: &String| (place.clone(), whole.pointer(place).cloned().unwrap_or_default());
        body = Some(places.iter().map(part).collect::<Map<_, _>>().into());
    }
    let mut text = format!("  status: {}\n", status.as_u16());
    let shown = shown_headers(&headers, &sent_id);
    if !shown.is_empty() {
        text += &format!("  headers: {}\n", pretty(&shown.into(), 2));
    }
    if let Some(body) = body {
        text += &format!("  body: {}\n", pretty(&body, 2));
    }
    Ok(text)
}

fn request(server: &Server, step: &Step, saved: &BTreeMap<String, String>) -> anyhow::Result<Request> {
    let fill = |text: &str| filled(text, saved);
    let (method, target) = step.request.split_once(' ').context("the request needs a method and a path")?;
    let target: poem::http::Uri = fill(target)?.parse().with_context(|| format!("{target} is not a path"))?;
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes())?).uri(target);
    match step.caller.as_deref().unwrap_or("owner") {
        "none" => {}
        caller => {
            let token = server.key(caller).map_or_else(|| fill(caller), |key| Ok(key.to_owned()))?;
            request = request.header("authorization", format!("Bearer {token}"));
        }
    }
    let has = |name: &str| step.headers.keys().any(|known| known.eq_ignore_ascii_case(name));
    if !has("x-request-id") {
        request = request.header("x-request-id", REQUEST_ID);
    }
    let text = match (&step.raw, &step.body) {
        (Some(raw), _) => Some(fill(raw)?),
        (None, Some(body)) => Some(fill(&body.to_string())?),
        (None, None) => None,
    };
    if text.is_some() && !has("content-type") {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in &step.headers {
        request = request.header(name.as_str(), fill(value)?);
    }
    Ok(request.body(text.map_or_else(Body::empty, Body::from_string)))
}

/// Replaces each `${…}` with its value. Fails if a placeholder is unknown.
fn filled(text: &str, saved: &BTreeMap<String, String>) -> anyhow::Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        // A repeated text may contain braces.
        let ends = after.match_indices('}').map(|(end, _)| end);
        let meant = |end: usize| meaning(&after[..end], saved).map(|text| (text, end));
        let (text, end) =
            ends.into_iter().find_map(meant).with_context(|| format!("unknown placeholder ${{{after:.60}"))?;
        out.push_str(before);
        out.push_str(&text);
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the value of a placeholder: a saved value, or a repeated text.
fn meaning(inside: &str, saved: &BTreeMap<String, String>) -> Option<String> {
    if let Some(value) = saved.get(inside) {
        return Some(value.clone());
    }
    let (repeated, times) = inside.rsplit_once(" * ")?;
    Some(repeated.trim_matches('\'').repeat(times.parse().ok()?))
}

/// Returns the headers to show, without the usual headers that every response has.
fn shown_headers(headers: &HeaderMap, sent_id: &str) -> Map<String, Value> {
    let mut shown: Vec<(String, Value)> = Vec::new();
    for (name, value) in headers {
        let value = value.to_str().unwrap_or("(no text)");
        let usual = match name.as_str() {
            "content-type" => value == "application/json",
            "content-length" | "foldwork-workspace" => true,
            "x-request-id" => value == sent_id && sent_id == REQUEST_ID,
            _ => false,
        };
        // Lists of allowed headers and methods are sorted, because their order differs between runs.
        let is_new_id = name == "x-request-id" && value != sent_id;
        let is_set = matches!(
            name.as_str(),
            "access-control-allow-headers" | "access-control-allow-methods" | "access-control-expose-headers"
        );
        let mut parts: Vec<&str> = value.split(',').map(str::trim).collect();
        if is_set {
            parts.sort_unstable();
        }
        // A tag of 32 digits is a hash of a document that the program generates, and changes with every text in the
        // document.
        let is_hash = name == "etag" && value.trim_matches('"').len() == 32;
        let value = match value {
            _ if is_set => parts.join(", "),
            _ if is_new_id => "(a new one)".to_owned(),
            _ if is_hash => "(a hash)".to_owned(),
            _ => value.to_owned(),
        };
        if !usual {
            shown.push((name.to_string(), value.into()));
        }
    }
    shown.sort_by(|a, b| a.0.cmp(&b.0));
    shown.into_iter().collect()
}

/// Returns a value as text for a path or a header.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
