//! Tests a server with a corpus of difficult content: appends, plugins, search, queries, exports and imports. Exports
//! and imports are tested twice: through a running server, and directly on the store of a stopped server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::{Engine, EngineSettings, Plugins, Store};
use foldwork_server::Config;
use foldwork_server::cli::client::Client as Caller;
use foldwork_server::cli::export::{ExportSelection, write_file};
use foldwork_server::cli::import::import_file;
use foldwork_server::cli::input::LineInput;
use foldwork_server::cli::portable::restore::restore;
use foldwork_server::cli::portable::source::ExportSource;
use foldwork_server::cli::portable::store::OpenStore;
use foldwork_server::cli::progress::ProgressIndicator;
use foldwork_tests::expectation::{files, read};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{Serving, TIMEOUT, serve_as_configured};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The deadline of a script. A debug build on a busy machine takes much longer than the usual deadline.
const DEADLINE_MS: u64 = 120_000;
/// The query for the states of the aggregates in the corpus. The query removes the fields whose values differ between
/// runs or depend on events of other aggregates.
const STATES: &str = r#"{"pipeline": [
    {"$match": {"aggregate_type": {"$in": ["article", "note"]}}}, {"$fold": {}},
    {"$project": {"_position": 0, "_facts": 0, "_created_at": 0, "_last_event_at": 0}}, {"$sort": {"_id": 1}}]}"#;

/// An aggregate of the corpus.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    payload: Map<String, Value>,
    /// The number of generated fields to add to the payload.
    #[serde(default)]
    fields: usize,
    /// The depth of a generated field to add to the payload.
    #[serde(default)]
    levels: usize,
    /// A query that finds the aggregate.
    #[serde(default)]
    search: Option<String>,
    /// The names of the plugins that have a parked step for this aggregate.
    #[serde(default)]
    parked: Vec<String>,
}

impl Case {
    fn payload(&self) -> Value {
        let mut payload: Map<String, Value> =
            self.payload.iter().map(|(name, value)| (name.clone(), written_out(value))).collect();
        payload.extend((0..self.fields).map(|number| (format!("more_{number}"), json!(number))));
        if self.levels > 0 {
            payload.insert("deep".into(), (0..self.levels).fold(Value::Null, |inner, _| json!([inner])));
        }
        payload.into()
    }
}

/// Expands a value that the corpus describes by `repeat` and `times` into a repeated text or a list of texts. Returns
/// other values unchanged.
fn written_out(value: &Value) -> Value {
    let (Some(text), Some(times)) = (value["repeat"].as_str(), value["times"].as_u64()) else { return value.clone() };
    let texts = (0..times).map(|number| text.replace("{n}", &number.to_string()));
    if value["list"] == true { texts.map(Value::from).collect() } else { texts.collect::<String>().into() }
}

/// Returns the cases of the corpus, each with the type of its aggregate.
fn corpus() -> Vec<(&'static str, Case)> {
    let cases = files("content", "yaml").into_iter().flat_map(|file| {
        let name = if file.ends_with("notes.yaml") { "note" } else { "article" };
        let cases: Vec<Case> = serde_saphyr::from_str(&read(&file)).expect("YAML of the corpus");
        cases.into_iter().map(move |case| (name, case))
    });
    cases.collect()
}

fn config() -> Config {
    let mut config = Config::default();
    config.plugins.limits.deadline_ms = DEADLINE_MS;
    config
}

/// Starts a server with its store and its files in a folder.
async fn serve(folder: &Path) -> Serving {
    let mut config = config();
    config.store.url = format!("surrealkv://{}", folder.join("db").display());
    config.files.url = format!("file://{}", folder.join("files").display());
    serve_as_configured(config).await
}

async fn call(serving: &Serving, method: &str, path: &str, body: &str) -> Value {
    let (status, text) = serving.client.send(method, &format!("/api/v1/{path}"), body).await;
    assert!((200..300).contains(&status), "{path}: {status} {text:.500}");
    serde_json::from_str(&text).expect("JSON that a usual parser reads")
}

/// Waits until every consumer has reached the end of the log.
async fn consumed(serving: &Serving) {
    let reached = async {
        loop {
            let system = call(serving, "GET", "system/consumers", "").await;
            let consumers = system["consumers"].as_array().expect("consumers");
            if consumers.iter().all(|consumer| consumer["lag"] == 0) {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    timeout(10 * TIMEOUT, reached).await.expect("the plugins reach the log's end");
}

/// Checks that every plugin runs, and that the parked steps are exactly those that the cases name.
async fn check_plugins(serving: &Serving, cases: &[(&str, Case)]) {
    let plugins = call(serving, "GET", "plugins", "").await;
    for plugin in plugins["data"].as_array().expect("plugins") {
        assert_eq!(plugin["status"], "running", "{plugin}");
    }
    let parked = call(serving, "GET", "parked?limit=200", "").await;
    let field = |step: &Value, name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<(String, String)> = parked["data"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| (field(step, "aggregate_id"), field(step, "plugin")))
        .collect();
    let named = |(_, case): &(&str, Case)| {
        case.parked.iter().map(|plugin| (case.id.clone(), plugin.clone())).collect::<Vec<_>>()
    };
    let mut expected: Vec<(String, String)> = cases.iter().flat_map(named).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{parked:#}");
}

async fn states(serving: &Serving) -> Vec<Value> {
    let rows = call(serving, "POST", "aggregates/query", STATES).await;
    rows["results"].as_array().expect("rows").clone()
}

fn assert_same(found: &[Value], expected: &[Value]) {
    for (found, expected) in found.iter().zip(expected) {
        let (found, expected) = (found.to_string(), expected.to_string());
        // Shows only the text around the difference, because whole states would be too long.
        let same = found.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
        let from = found.floor_char_boundary(same.saturating_sub(100));
        assert!(found == expected, "{:.300}\n{:.300}", &found[from..], &expected[from..]);
    }
    assert_eq!(found.len(), expected.len());
}

/// Copies a store without its lock. The copy is needed because a process that opens a store locks the store until the
/// process ends.
fn copy(from: &Path) -> TempDir {
    fn copy_into(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
            let to = to.join(entry.file_name());
            match entry.path().is_dir() {
                true => copy_into(&entry.path(), &to),
                false if entry.file_name() == "LOCK" => {}
                false => drop(std::fs::copy(entry.path(), to).expect("a copy")),
            }
        }
    }
    let to = tempfile::tempdir().expect("a folder");
    copy_into(from, to.path());
    to
}

async fn engine(store: &Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

fn caller(serving: &Serving) -> Caller {
    Caller::new(&format!("http://{}", serving.client.address), &serving.client.key).expect("a client")
}

async fn connect(folder: &Path) -> Store {
    Store::connect(&format!("surrealkv://{}", folder.join("db").display())).await.expect("a store")
}

async fn export_offline(store: &Store, file: &Path) {
    let opened = OpenStore::open(engine(store).await, None).await.expect("a workspace");
    let source = ExportSource::Store(&opened);
    let written =
        write_file(&source, &ExportSelection::default(), file, None, false, &ProgressIndicator::start(None)).await;
    opened.workspace.close().await.expect("closed");
    written.expect("exported");
}

/// Returns the lines of an export that contain definitions or events of the corpus.
fn lines(file: &Path) -> Vec<String> {
    let is_compared = |line: &&str| {
        line.starts_with(r#"{"definition""#)
            || [r#""aggregate_type":"article""#, r#""aggregate_type":"note""#].iter().any(|part| line.contains(part))
    };
    read(file).lines().filter(is_compared).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_content_can_be_stored_searched_and_imported_into_another_workspace() {
    let (folder, exports) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let serving = serve(folder.path()).await;
    let cases = corpus();
    assert!(cases.len() >= 25, "{} cases", cases.len());
    call(&serving, "POST", "aggregates/define", r#"{"type_name": "note", "traits": ["content-bearing"]}"#).await;
    for (name, case) in &cases {
        let event = json!({
            "aggregate_type": name, "event_type": format!("{name}.created"), "event_id": case.id,
            "payload": case.payload(),
        });
        call(&serving, "POST", &format!("aggregates/{}/events", case.id), &event.to_string()).await;
    }
    consumed(&serving).await;
    check_plugins(&serving, &cases).await;
    for (name, case) in &cases {
        let state = call(&serving, "GET", &format!("aggregates/{}", case.id), "").await;
        for (field, sent) in case.payload().as_object().expect("a payload") {
            assert!(state[field] == *sent || sent.is_number(), "{}: {field}", case.id);
        }
        let Some(query) = &case.search else { continue };
        let search = json!({"query": query, "type": name, "limit": 5}).to_string();
        let found = call(&serving, "POST", "aggregates/search", &search).await;
        let results = found["results"].as_array().expect("results");
        assert!(results.iter().any(|found| found["aggregate_id"] == *case.id), "{query}: {found:.500}");
    }
    let expected = states(&serving).await;
    assert_eq!(expected.len(), cases.len());

    // Exports through the server, and imports into another server with plugins.
    let by_server = exports.path().join("server.ndjson");
    let from = caller(&serving);
    let source = ExportSource::Server(&from, &|_: &str| {});
    let written =
        write_file(&source, &ExportSelection::default(), &by_server, None, false, &ProgressIndicator::start(None))
            .await;
    written.expect("exported");
    let other_folder = tempfile::tempdir().expect("a folder");
    let other = serve(other_folder.path()).await;
    for _ in 0..2 {
        import_file(&caller(&other), &by_server, None, &ProgressIndicator::start(None)).await.expect("imported");
    }
    consumed(&other).await;
    check_plugins(&other, &cases).await;
    assert_same(&states(&other).await, &expected);
    serving.end().await;
    other.end().await;

    // Exports from the stopped store, and imports into an empty store and into a workspace that a server has used.
    let stopped = copy(folder.path());
    let by_store = exports.path().join("store.ndjson");
    let store = connect(stopped.path()).await;
    export_offline(&store, &by_store).await;
    assert_eq!(lines(&by_server), lines(&by_store), "both exports have the same lines");
    let progress = ProgressIndicator::start(None);
    let empty = Store::connect("mem://").await.expect("a store");
    let input = LineInput::open(&by_store).expect("the export");
    let restored = restore(engine(&empty).await, None, false, input, None, &progress).await.expect("imported");
    assert_eq!(restored.left_out, 0);
    let again = exports.path().join("again.ndjson");
    export_offline(&empty, &again).await;
    let whole = |file: &Path| read(file).lines().map(Value::from).collect::<Vec<_>>();
    // An export of the imported workspace has the same content as the imported file.
    assert_same(&whole(&again), &whole(&by_store));

    let used_folder = tempfile::tempdir().expect("a folder");
    serve(used_folder.path()).await.end().await;
    let used = copy(used_folder.path());
    let store = connect(used.path()).await;
    let input = LineInput::open(&by_store).expect("the export");
    let restored =
        restore(engine(&store).await, Some("default"), false, input, None, &progress).await.expect("imported");
    assert!(restored.left_out > 0, "the import left out no events of the agents that already exist");
    let merged = exports.path().join("merged.ndjson");
    export_offline(&store, &merged).await;
    let without_positions = |file: &Path| -> Vec<Value> {
        let event = |line: &String| serde_json::from_str::<Value>(line).expect("JSON");
        let mut events: Vec<Value> = lines(file).iter().map(event).collect();
        events.iter_mut().for_each(|event| event["position"] = Value::Null);
        events
    };
    assert_same(&without_positions(&merged), &without_positions(&by_store));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_through_a_server_uploads_the_current_version_of_each_file_once() {
    let (folder, target_folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (serving, target) = (serve(folder.path()).await, serve(target_folder.path()).await);
    let project = call(&serving, "POST", "projects", r#"{"name": "The Docs", "slug": "docs"}"#).await;
    let article = json!({"aggregate_type": "article", "event_type": "article.created", "project_id": project["id"],
        "payload": {"title": "One"}});
    call(&serving, "POST", "aggregates/one/events", &article.to_string()).await;
    let stored = [("kept.txt", "SGVsbG8="), ("kept.txt", "V29ybGQh"), ("gone.txt", "R29uZQ==")];
    for (filename, data) in stored {
        let file = json!({"filename": filename, "data": data, "aggregate_id": "one", "project_id": "docs"});
        call(&serving, "POST", "files", &file.to_string()).await;
    }
    let plain = json!({"filename": "plain ü.md", "data": "UGxhaW4=", "mime_type": "text/markdown"});
    call(&serving, "POST", "files", &plain.to_string()).await;
    let listed = call(&serving, "GET", "files", "").await;
    let gone = listed["data"].as_array().expect("files").iter().find(|file| file["filename"] == "gone.txt");
    let gone = json!({"path": gone.expect("the file")["path"]}).to_string();
    assert_eq!(serving.client.send("POST", "/api/v1/files/delete", &gone).await.0, 204);

    let (export, bytes) = (folder.path().join("all.ndjson"), folder.path().join("bytes"));
    let (from, to) = (caller(&serving), caller(&target));
    let (source, progress) = (ExportSource::Server(&from, &|_: &str| {}), ProgressIndicator::start(None));
    let all = ExportSelection::default();
    write_file(&source, &all, &export, Some(&bytes), false, &progress).await.expect("exported");
    let first = import_file(&to, &export, Some(&bytes), &progress).await.expect("imported");
    let again = import_file(&to, &export, Some(&bytes), &progress).await.expect("imported again");
    assert_eq!((first.appended, first.repeated), (3, 0), "an article and two files");
    assert_eq!((again.appended, again.repeated), (0, 3));
    let shown = |listed: &Value| {
        let fields = ["filename", "mime_type", "size", "sha256", "aggregate_id", "version"];
        let shown = |file: &Value| fields.map(|name| file[name].clone());
        let mut files: Vec<_> = listed["data"].as_array().expect("files").iter().map(shown).collect();
        files.sort_by_key(|file| file[0].to_string());
        files
    };
    let there = call(&target, "GET", "files", "").await;
    let expected = [("kept.txt", "text/plain", 6, "one"), ("plain ü.md", "text/markdown", 5, "")];
    let found = shown(&there);
    assert_eq!(found.len(), 2, "{there}");
    for ([filename, mime_type, size, sha256, attached, version], wanted) in found.iter().zip(expected) {
        let attached = attached.as_str().unwrap_or_default();
        assert_eq!((filename.as_str(), mime_type.as_str()), (Some(wanted.0), Some(wanted.1)), "{there}");
        assert_eq!((size, attached, version), (&json!(wanted.2), wanted.3, &json!(1)), "{there}");
        assert_eq!(sha256.as_str().map(str::len), Some(64));
    }
    assert!(there["data"].as_array().expect("files").iter().any(|file| file["project_id"].is_string()));
    serving.end().await;
    target.end().await;
}
