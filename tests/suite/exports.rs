//! Tests that an import restores an export completely: the API returns the same data for the exported workspace and for
//! its import into an empty store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::error::{Error, ErrorCode};
use foldwork_engine::model::access::{Membership, Role, UserRecord};
use foldwork_engine::model::event::{NewEvent, OriginalRecord};
use foldwork_engine::{Engine, EngineSettings, Plugins, Store};
use foldwork_server::Config;
use foldwork_server::cli::export::{ExportProgress, ExportSelection, write_file};
use foldwork_server::cli::input::LineInput;
use foldwork_server::cli::portable::restore::{ImportReport, restore};
use foldwork_server::cli::portable::source::ExportSource;
use foldwork_server::cli::portable::store::OpenStore;
use foldwork_server::cli::progress::ProgressIndicator;
use foldwork_tests::server::{Server, worked};
use poem::http::Method;
use poem::{Body, Request};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The aggregates whose events are compared.
const AGGREGATES: [&str; 5] = ["trip", "one", "two", "gone", "back"];

/// The paths below `/api/v1` whose responses are compared.
const LISTS: [&str; 10] = [
    "workspace",
    "events?limit=200",
    "aggregate-types",
    "projects",
    "agents",
    "mailbox",
    "files",
    "members",
    "keys",
    "system/storage",
];

/// The pipelines whose results are compared: all events, current states, and earlier states.
const PIPELINES: [&str; 5] = [
    "[]",
    r#"[{"$fold": {"deleted": true}}, {"$sort": {"_id": 1}}]"#,
    r#"[{"$fold": {"at": "2025-01-02T12:00:00Z"}}, {"$sort": {"_id": 1}}]"#,
    r#"[{"$fold": {"at": "2025-01-03T12:00:00Z"}}, {"$sort": {"_id": 1}}]"#,
    r#"[{"$fold": {"position": 9}}, {"$sort": {"_id": 1}}]"#,
];

pub fn config() -> Config {
    let mut config = Config::default();
    config.plugins.enabled = vec!["linker".into()];
    config
}

async fn call(server: &Server, method: Method, path: &str, body: Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri_str(format!("/api/v1/{path}"))
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", server.key("owner").expect("an owner")));
    let request = if body.is_null() { request.finish() } else { request.body(Body::from_string(body.to_string())) };
    let response = server.call(request).await;
    let (status, text) = (response.status(), response.into_body().into_string().await.expect("a text"));
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

pub async fn post(server: &Server, path: &str, body: Value) -> Value {
    call(server, Method::POST, path, body).await
}

async fn get(server: &Server, path: &str) -> Value {
    call(server, Method::GET, path, Value::Null).await
}

fn event(id: &str, event_type: &str, day: u32, payload: Value) -> Value {
    let aggregate_type = event_type.split('.').next().unwrap_or_default();
    json!({
        "aggregate_id": id, "aggregate_type": aggregate_type, "event_type": event_type, "payload": payload,
        "occurred_at": format!("2025-01-{day:02}T00:00:00Z"),
    })
}

/// Starts a server with a workspace that contains records of every kind.
pub async fn mixed() -> Server {
    let server = Server::start_with(&config()).await.expect("a server");
    post(&server, "projects", json!({"name": "The Docs", "slug": "docs", "description": "All of it."})).await;
    post(&server, "projects", json!({"name": "Empty"})).await;
    let amount = |fold: &str| json!({"name": "amount", "type": "number", "required": fold == "sum", "fold": fold});
    let of = |fold: &str| json!({"type_name": "trip", "fields": [amount(fold)]});
    post(&server, "aggregates/define", of("sum")).await;
    post(
        &server,
        "events",
        json!({"events": [
            event("trip", "trip.created", 1, json!({"amount": 2})),
            event("trip", "trip.changed", 3, json!({"amount": 3})),
        ]}),
    )
    .await;
    // The import needs both definitions: the next event is invalid under the first definition, and the first event
    // folds differently under the second definition.
    post(&server, "aggregates/define?force=true", of("last")).await;
    let mut one = event("one", "article.created", 1, json!({"title": "One", "slug": "one", "body": "See [two](two)."}));
    one["project_id"] = "docs".into();
    let mut two = event("two", "article.created", 2, json!({"title": "Two", "slug": "two"}));
    two["project_id"] = "docs".into();
    let mut restored = event("back", "article.changed", 4, json!({"title": "Back again"}));
    restored["restore"] = true.into();
    post(
        &server,
        "events",
        json!({"events": [
            one, two,
            event("trip-2", "trip.created", 2, json!({})),
            event("gone", "article.created", 1, json!({"title": "Gone"})),
            event("gone", "article.deleted", 2, json!({})),
            event("back", "article.created", 1, json!({"title": "Back"})),
            event("back", "article.deleted", 2, json!({})),
            restored,
        ]}),
    )
    .await;
    for (name, data) in [("kept.txt", "SGVsbG8="), ("kept.txt", "V29ybGQh"), ("gone.txt", "R29uZQ==")] {
        post(&server, "files", json!({"filename": name, "data": data, "aggregate_id": "one"})).await;
    }
    let files = get(&server, "files").await;
    let gone = files["data"].as_array().expect("files").iter().find(|file| file["filename"] == "gone.txt");
    post(&server, "files/delete", json!({"path": gone.expect("the file")["path"]})).await;
    let agent = post(&server, "agents", json!({"name": "Writer", "description": "Writes."})).await;
    post(&server, "keys", json!({"name": "writer", "scopes": ["api:read"], "agent_ids": [agent["id"]]})).await;
    let task = json!({"title": "Review", "assignee_type": "agent", "assignee_id": agent["id"], "project_id": "docs"});
    let task = post(&server, "mailbox", task).await;
    post(&server, &format!("mailbox/{}/read", task["id"].as_str().expect("an id")), json!({})).await;
    let workspace = server.workspace("owner").await.expect("a workspace");
    worked(&workspace).await.expect("the plugins catch up");
    server
}

/// Returns the results to compare: the responses to requests, the rows of pipelines, and the bytes of files.
pub async fn shown(server: &Server) -> Vec<(String, Value)> {
    worked(&server.workspace("owner").await.expect("a workspace")).await.expect("the plugins catch up");
    let mut all = Vec::new();
    for path in LISTS {
        all.push((path.to_owned(), get(server, path).await));
    }
    for id in AGGREGATES {
        let path = format!("aggregates/{id}/events");
        all.push((path.clone(), get(server, &path).await));
    }
    for id in ["one", "two"] {
        let path = format!("aggregates/{id}/graph");
        all.push((path.clone(), get(server, &path).await));
    }
    for pipeline in PIPELINES {
        let query = json!({"pipeline": serde_json::from_str::<Value>(pipeline).expect("JSON")});
        all.push((pipeline.to_owned(), post(server, "aggregates/query", query).await["results"].clone()));
    }
    for file in get(server, "files").await["data"].as_array().expect("files") {
        let path = file["path"].as_str().expect("a path");
        let link = get(server, &format!("files/{}", path.replace('/', "%2F"))).await;
        let url = link["url"].as_str().expect("a link");
        let at = url.find("/files-dl").map_or(url, |at| &url[at..]);
        let response = server.call(Request::builder().uri_str(at).finish()).await;
        assert!(response.status().is_success(), "{at}: {}", response.status());
        let bytes = response.into_body().into_string().await.expect("text");
        all.push((format!("the bytes of {path}"), bytes.into()));
    }
    all
}

/// Opens an engine on a store, without a server.
pub async fn engine(store: &Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

/// A folder with exports of a workspace, and with the files of the workspace.
struct Exported {
    folder: TempDir,
}

impl Exported {
    fn new() -> Exported {
        Exported { folder: tempfile::tempdir().expect("a folder") }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn bytes(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    async fn write(&self, store: &Store, name: &str, selection: &ExportSelection) -> ExportProgress {
        let opened = OpenStore::open(engine(store).await, Some("default")).await.expect("a workspace");
        let (source, bytes) = (ExportSource::Store(&opened), self.bytes());
        let written =
            write_file(&source, selection, &self.file(name), Some(&bytes), true, &ProgressIndicator::start(None)).await;
        opened.workspace.close().await.expect("closed");
        written.expect("exported")
    }

    async fn import(&self, store: &Store, name: &str) -> anyhow::Result<ImportReport> {
        import(store, &self.file(name), Some(&self.bytes())).await
    }

    /// Imports a file with its members and keys into a workspace that may already exist.
    async fn import_with_members(&self, store: &Store, name: &str) -> ImportReport {
        let (input, bytes) = (LineInput::open(&self.file(name)).expect("the file"), self.bytes());
        let progress = ProgressIndicator::start(None);
        restore(engine(store).await, None, true, input, Some(&bytes), &progress).await.expect("imported")
    }

    fn lines(&self, name: &str) -> Vec<String> {
        std::fs::read_to_string(self.file(name)).expect("the export").lines().map(str::to_owned).collect()
    }
}

async fn import(store: &Store, file: &Path, files: Option<&Path>) -> anyhow::Result<ImportReport> {
    let (input, progress) = (LineInput::open(file).expect("the file"), ProgressIndicator::start(None));
    restore(engine(store).await, None, false, input, files, &progress).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_imported_into_an_empty_store_has_the_same_data() {
    let server = mixed().await;
    let before = shown(&server).await;
    let exported = Exported::new();
    let written = exported.write(&server.store, "all.ndjson", &ExportSelection::default()).await;
    assert_eq!(written.left_out, 0);
    let lines = exported.lines("all.ndjson");
    assert!(lines[0].starts_with(r#"{"foldwork_export":2,"#), "{}", lines[0]);
    assert_eq!(lines.iter().filter(|line| line.starts_with(r#"{"project":"#)).count(), 2);
    assert_eq!(lines.iter().filter(|line| line.starts_with(r#"{"definition":"#)).count(), 2);
    assert_eq!(std::fs::read_dir(exported.bytes()).expect("a folder").count(), 1, "the number of exported contents");

    let store = Store::connect("mem://").await.expect("a store");
    let first = exported.import(&store, "all.ndjson").await.expect("imported");
    assert_eq!((first.tally.appended, first.tally.repeated), (written.events, 0));
    assert!(!first.has_new_key && first.people.members == 1 && first.people.keys > 1);
    let again = exported.import(&store, "all.ndjson").await.expect("imported again");
    assert_eq!((again.tally.appended, again.tally.repeated), (0, written.events));
    assert_eq!((again.people.members, again.people.keys), (0, 0));
    assert_eq!(again.people.left_out, first.people.members + first.people.keys);

    let copy = Exported::new();
    copy.write(&store, "all.ndjson", &ExportSelection::default()).await;
    assert_eq!(copy.lines("all.ndjson"), lines, "an export of the import is the same file");

    let owner = server.key("owner").expect("an owner").to_owned();
    let target = Server::start_over(&config(), store, &owner).await.expect("a server");
    for ((path, before), (_, after)) in before.into_iter().zip(shown(&target).await) {
        assert_eq!(after, before, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_of_later_events_restores_a_deleted_aggregate() {
    let server = mixed().await;
    let exported = Exported::new();
    exported.write(&server.store, "first.ndjson", &ExportSelection::default()).await;
    let after = server.workspace("owner").await.expect("a workspace").reader.position();
    let mut restored = event("gone", "article.changed", 5, json!({"title": "Here"}));
    restored["restore"] = true.into();
    post(&server, "events", json!({"events": [restored]})).await;
    let selection = ExportSelection { after, ..ExportSelection::default() };
    assert_eq!(exported.write(&server.store, "second.ndjson", &selection).await.events, 1);
    assert!(exported.lines("second.ndjson").iter().any(|line| line.contains(r#""restore":true"#)));

    let store = Store::connect("mem://").await.expect("a store");
    exported.import(&store, "first.ndjson").await.expect("imported");
    exported.import(&store, "second.ndjson").await.expect("imported");
    let copy = Exported::new();
    copy.write(&store, "all.ndjson", &ExportSelection::default()).await;
    exported.write(&server.store, "all.ndjson", &ExportSelection::default()).await;
    assert_eq!(copy.lines("all.ndjson"), exported.lines("all.ndjson"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_of_an_incomplete_file_fails_and_can_be_continued() {
    let server = mixed().await;
    let exported = Exported::new();
    let written = exported.write(&server.store, "all.ndjson", &ExportSelection::default()).await;
    let lines = exported.lines("all.ndjson");
    let store = Store::connect("mem://").await.expect("a store");
    for count in [lines.len() / 2, lines.len() * 2 / 3, lines.len() - 1] {
        std::fs::write(exported.file("part.ndjson"), lines[..count].join("\n")).expect("written");
        let refused = exported.import(&store, "part.ndjson").await.expect_err("cut off").to_string();
        assert!(refused.contains("stopped after"), "{refused}");
    }
    let rest = exported.import(&store, "all.ndjson").await.expect("imported");
    assert_eq!((rest.tally.appended, rest.tally.repeated), (0, written.events));
    let mut shorter = lines.clone();
    shorter.remove(lines.len() - 2);
    std::fs::write(exported.file("shorter.ndjson"), shorter.join("\n")).expect("written");
    let refused = format!("{:#}", exported.import(&store, "shorter.ndjson").await.expect_err("a line is missing"));
    let expected = format!("the export had {} events, but the file has {}", written.events, written.events - 1);
    assert!(refused.contains(&expected), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_line_is_reported_by_number_and_the_preceding_lines_are_imported() {
    let server = mixed().await;
    let exported = Exported::new();
    exported.write(&server.store, "all.ndjson", &ExportSelection::default()).await;
    let lines = exported.lines("all.ndjson");
    let trip = lines.iter().position(|line| line.contains("trip.changed")).expect("the event");
    let kept = lines.iter().position(|line| line.contains(r#""bytes":true"#)).expect("the file");
    let last = lines.len() - 1;
    let cases: [(usize, &str, &str, &str); 9] = [
        (trip, r#""aggregate_type":"trip""#, r#""aggregate_type":"trap""#, "unknown aggregate type 'trap'"),
        (trip, r#""event_type":"trip.changed""#, r#""event_type":"trip.""#, "expected trip.<verb>"),
        (trip, r#""occurred_at":"2025"#, r#""occurred_at":"x2025"#, "expected a time like"),
        (trip, r#""version":2"#, r#""version":1"#, "the stream is at version 1"),
        (trip, r#""actor":"#, r#""someone":"#, "expected both or neither"),
        (trip, r#""payload":{"#, r#""payload":{"_a":1,"#, "a field name must not be empty, start with _"),
        (kept, r#""sha256":""#, r#""sha256":"x"#, "expected 64 lower-case hexadecimal digits"),
        (kept, r#""path":"019"#, r#""path":"119"#, "belongs to the workspace"),
        (last, r#"{"end""#, r#"{"fin""#, "missing field"),
    ];
    for (index, from, to, expected) in cases {
        let mut changed = lines.clone();
        assert!(changed[index].contains(from), "{from} in {}", changed[index]);
        changed[index] = changed[index].replacen(from, to, 1);
        std::fs::write(exported.file("bad.ndjson"), changed.join("\n")).expect("written");
        let store = Store::connect("mem://").await.expect("a store");
        let refused = format!("{:#}", exported.import(&store, "bad.ndjson").await.expect_err("refused"));
        assert!(refused.contains(&format!("line {}: ", index + 1)), "{to}: {refused}");
        assert!(refused.contains(expected), "{to}: {refused}");
        let rest = exported.import(&store, "all.ndjson").await.expect("the rest");
        let before = lines[..index].iter().filter(|line| line.starts_with(r#"{"actor""#)).count() as u64;
        assert_eq!(rest.tally.repeated, before, "{to}");
    }
    let store = Store::connect("mem://").await.expect("a store");
    let refused = import(&store, &exported.file("all.ndjson"), None).await.expect_err("refused");
    assert!(format!("{refused:#}").contains("--files"), "{refused:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_import_of_events_without_an_export_header_appends_nothing() {
    let store = Store::connect("mem://").await.expect("a store");
    engine(&store).await.first_start(None).await.expect("started");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("old.ndjson");
    let line = json!({"aggregate_id": "a", "aggregate_type": "article", "event_type": "article.created",
        "payload": {"title": "Old"}, "occurred_at": "2020-01-01T00:00:00Z"});
    std::fs::write(&file, format!("{line}\n{line}\n")).expect("written");
    let first = import(&store, &file, None).await.expect("imported");
    assert_eq!((first.tally.appended, first.tally.repeated), (2, 0));
    let again = import(&store, &file, None).await.expect("imported");
    assert_eq!((again.tally.appended, again.tally.repeated), (0, 2));
    // An event without the actor and the time of another log is checked like any appended event.
    let event = r#"{"aggregate_id": "b", "aggregate_type": "article", "event_type": "article.created", "payload": {"title": 1}}"#;
    std::fs::write(&file, event).expect("written");
    let refused = format!("{:#}", import(&store, &file, None).await.expect_err("refused"));
    assert!(refused.contains("line 1: ") && refused.contains("/payload/title"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_cannot_set_the_original_actor_and_time_of_an_event() {
    let server = Server::start().await.expect("a server");
    let event = NewEvent {
        aggregate_id: "a".into(),
        aggregate_type: "article".into(),
        event_type: "article.created".into(),
        recorded: Some(OriginalRecord { actor: "key:somebody".into(), at: 1 }),
        ..NewEvent::default()
    };
    let writer = server.workspace("owner").await.expect("a workspace").writer;
    let refused = writer.append_events(vec![event]).await.expect_err("refused");
    assert!(matches!(refused, Error::Forbidden { code: ErrorCode::RecordedElsewhere, .. }), "{refused}");
}

/// Returns whether a key is valid in the store.
async fn opens(store: &Store, key: &str) -> bool {
    engine(store).await.authenticate(key).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_does_not_restore_removed_members_or_revoked_keys() {
    let server = mixed().await;
    let made = post(&server, "keys", json!({"name": "lent", "scopes": ["api:read"]})).await;
    let (lent, lent_id) = (made["key"].as_str().expect("a key").to_owned(), made["id"].as_str().expect("an id"));
    let control = server.store.control().await.expect("the control database");
    let workspace: Arc<str> = server.workspace("owner").await.expect("a workspace").reader.record().id.clone();
    let (gone, lowered) = ("00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b");
    for id in [gone, lowered] {
        let user = UserRecord { id: id.into(), email: None, email_verified: false, name: None, plan: None };
        let (workspace_id, user_id) = (workspace.clone(), user.id.clone());
        let member = Membership { workspace_id, user_id, role: Role::Owner, joined_at: 1 };
        control.restore_member(&member, &user).await.expect("a member");
    }
    let exported = Exported::new();
    exported.write(&server.store, "older.ndjson", &ExportSelection::default()).await;
    let copy = Store::connect("mem://").await.expect("a store");
    exported.import(&copy, "older.ndjson").await.expect("imported");
    assert!(opens(&copy, &lent).await);

    call(&server, Method::DELETE, &format!("keys/{lent_id}"), Value::Null).await;
    call(&server, Method::DELETE, &format!("members/{gone}"), Value::Null).await;
    call(&server, Method::PATCH, &format!("members/{lowered}"), json!({"role": "viewer"})).await;
    exported.write(&server.store, "newer.ndjson", &ExportSelection::default()).await;

    // Imports the older export into the store itself. Imports the newer export, and then the older export again, into
    // the copy.
    exported.import(&server.store, "older.ndjson").await.expect("imported");
    let back = exported.import_with_members(&server.store, "older.ndjson").await;
    assert_eq!((back.people.members, back.people.keys, back.people.refused), (0, 0, 3), "{:?}", back.people);
    let left = exported.import(&copy, "newer.ndjson").await.expect("imported").people;
    assert!(left.left_out > 0 && left.ended == 0 && opens(&copy, &lent).await, "{left:?}");
    let newer = exported.import_with_members(&copy, "newer.ndjson").await.people;
    assert_eq!((newer.ended, newer.refused), (3, 0), "{newer:?}");
    let older = exported.import_with_members(&copy, "older.ndjson").await.people;
    assert_eq!((older.members, older.keys, older.refused), (0, 0, 3), "{older:?}");
    for store in [&server.store, &copy] {
        assert!(!opens(store, &lent).await);
        let control = store.control().await.expect("the control database");
        assert_eq!(control.read_membership(&workspace, gone).await.expect("read"), None);
        let member = control.read_membership(&workspace, lowered).await.expect("read").expect("a member");
        assert_eq!(member.role, Role::Viewer);
    }
    // In a copy that is made from the newer export alone, the revoked key stays revoked as well.
    let other = Store::connect("mem://").await.expect("a store");
    exported.import(&other, "newer.ndjson").await.expect("imported");
    exported.import_with_members(&other, "older.ndjson").await;
    assert!(!opens(&other, &lent).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_keeps_numbers_as_they_were_written() {
    let store = Store::connect("mem://").await.expect("a store");
    engine(&store).await.first_start(None).await.expect("started");
    let exported = Exported::new();
    let payload = r#""payload":{"title":"Long","n":18446744073709551617,"in":[0.1000000000000000055]}"#;
    let line = r#"{"aggregate_id":"a","aggregate_type":"article","event_type":"article.created","event_id":"e","#;
    std::fs::write(exported.file("long.ndjson"), format!("{line}{payload}}}\n")).expect("written");
    assert_eq!(imported(&exported, &store, "long.ndjson").await, (1, 0));
    assert_eq!(imported(&exported, &store, "long.ndjson").await, (0, 1));
    exported.write(&store, "again.ndjson", &ExportSelection::default()).await;
    assert!(exported.lines("again.ndjson").iter().any(|line| line.contains("18446744073709551617")));
    assert_eq!(imported(&exported, &store, "again.ndjson").await.0, 0);
}

/// Imports a file. Returns the number of new events, and the number of events that the store already had.
async fn imported(exported: &Exported, store: &Store, name: &str) -> (u64, u64) {
    let ImportReport { tally, .. } = import(store, &exported.file(name), None).await.expect("imported");
    (tally.appended, tally.repeated)
}
