//! Tests import and export against a stub server: retries, repeated events, error responses, and a round trip.

use std::io::Cursor;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::client::Client;
use super::export::{ExportProgress, ExportSelection};
use super::input::LineInput;
use super::portable::source::ExportSource;
use super::progress::ProgressIndicator;
use super::sender::{SendTally, deliver};
use super::stub::{Reply, Stub, StubRequest, StubStore};
use super::{export, import};

fn lines(count: usize) -> String {
    let line = |number: usize| {
        json!({
            "aggregate_id": format!("a-{}", number % 7), "aggregate_type": "article", "event_type": "article.updated",
            "project_id": "notes", "payload": {"number": number}, "metadata": {},
        })
    };
    (0..count).map(|number| format!("{}\n", line(number))).collect()
}

async fn import_text(client: &Client, text: String) -> anyhow::Result<SendTally> {
    let input = LineInput::from_reader(Cursor::new(text), None)?;
    deliver(client, &ProgressIndicator::start(None), |outlet| {
        import::read_lines(input, None, outlet, &ProgressIndicator::start(None))
    })
    .await
}

fn shared_store() -> (Arc<Mutex<StubStore>>, impl FnMut(&StubRequest) -> Reply + Send + 'static) {
    let store: Arc<Mutex<StubStore>> = Arc::default();
    let kept = Arc::clone(&store);
    (store, move |request: &StubRequest| kept.lock().expect("not poisoned").reply(request))
}

fn error_text(outcome: anyhow::Result<SendTally>) -> String {
    format!("{:#}", outcome.expect_err("refused"))
}

#[tokio::test]
async fn events_are_appended_once_in_order_and_their_project_is_created_once() {
    let (store, reply) = shared_store();
    let stub = Stub::start(reply).await;
    let first = import_text(&stub.client(), lines(600)).await.expect("imported");
    assert_eq!(first, SendTally { appended: 600, repeated: 0 });
    let again = import_text(&stub.client(), lines(601)).await.expect("imported");
    assert_eq!(again, SendTally { appended: 1, repeated: 600 });
    let numbers: Vec<Value> =
        store.lock().expect("not poisoned").events.iter().map(|event| event["payload"]["number"].clone()).collect();
    assert_eq!(numbers, (0..601).map(Value::from).collect::<Vec<_>>());
    assert_eq!(stub.requests("POST /api/v1/projects").len(), 1);
    let sent = stub.requests("POST /api/v1/events");
    assert_eq!(sent.len(), 6);
    assert!(sent[0].headers.contains("prefer: return=minimal"));
    assert!(sent[0].headers.contains("authorization: bearer sk_test"));
}

#[tokio::test]
async fn requests_are_retried_after_a_response_with_status_429_500_or_503() {
    let (_, mut reply) = shared_store();
    let mut failures = [(503, "Retry-After: 0\r\n"), (429, ""), (500, "")].into_iter();
    let stub = Stub::start(move |request| match request.target.as_str() {
        "/api/v1/events" => {
            failures.next().map_or_else(|| reply(request), |(status, wait)| (status, wait, Value::Null))
        }
        _ => reply(request),
    })
    .await;
    let tally = import_text(&stub.client(), lines(3)).await.expect("imported");
    assert_eq!(tally, SendTally { appended: 3, repeated: 0 });
    assert_eq!(stub.requests("POST /api/v1/events").len(), 4);
}

#[tokio::test]
async fn an_unavailable_server_ends_the_import_with_an_error_that_names_the_lines() {
    let (_, mut reply) = shared_store();
    let stub = Stub::start(move |request| match request.body["events"].as_array() {
        Some(events) if events[0]["payload"]["number"] != 0 => (503, "", json!({"error": "starting"})),
        _ => reply(request),
    })
    .await;
    let text = error_text(import_text(&stub.client(), lines(300)).await);
    let expected = "the import stopped after 256 events (0 more already in the log): lines 257 to 300 could not be \
                    appended after 4 attempts; the import can be repeated: starting (HTTP 503)";
    assert_eq!(text, expected);
    assert_eq!(stub.requests("POST /api/v1/events").len(), 5);
}

#[tokio::test]
async fn a_rejection_names_the_lines_and_is_not_retried() {
    let (_, mut reply) = shared_store();
    let stub = Stub::start(move |request| match request.target.as_str() {
        "/api/v1/events" => {
            (409, "", json!({"error": "version is 3", "code": "version_conflict", "request_id": "r-9", "index": 1}))
        }
        _ => reply(request),
    })
    .await;
    let text = error_text(import_text(&stub.client(), lines(5)).await);
    assert!(
        text.ends_with("line 2 could not be appended: version is 3 (HTTP 409 version_conflict, request r-9)"),
        "{text}"
    );
    assert_eq!(stub.requests("POST /api/v1/events").len(), 1);
}

#[tokio::test]
async fn lines_before_an_invalid_line_are_sent() {
    let (store, reply) = shared_store();
    let stub = Stub::start(reply).await;
    let text = error_text(import_text(&stub.client(), lines(4) + "{\"aggregate_id\": 1}\n").await);
    assert!(text.starts_with("the import stopped after 4 events (0 more already in the log): line 5: "), "{text}");
    assert_eq!(store.lock().expect("not poisoned").events.len(), 4);
}

#[tokio::test]
async fn the_error_about_an_unreachable_server_contains_the_cause() {
    let stub = Stub::start(|_| (200, "", Value::Null)).await;
    let client = Client::new("http://127.0.0.1:1", "sk_test").expect("valid address");
    let client = client.with_retry_policy(stub.client().retry_policy);
    let text = error_text(import_text(&client, lines(1)).await);
    assert!(text.contains("listed: the server cannot be reached, or its response is incomplete: "), "{text}");
}

/// A temporary folder for one file. Dropping the value removes the folder.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("foldwork-export-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Self(folder)
    }

    fn file(&self) -> std::path::PathBuf {
        self.0.join("events.ndjson.zst")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn export(stub: &Stub, selection: &ExportSelection, file: &std::path::Path) -> ExportProgress {
    let (client, note) = (stub.client(), |_: &str| {});
    let source = ExportSource::Server(&client, &note);
    export::write_file(&source, selection, file, None, false, &ProgressIndicator::start(None)).await.expect("exported")
}

#[tokio::test]
async fn an_export_can_be_imported_into_another_server() {
    let (store, reply) = shared_store();
    let stub = Stub::start(reply).await;
    import_text(&stub.client(), lines(7)).await.expect("imported");
    let managed = json!({
        "event_id": "m", "aggregate_id": "t", "aggregate_type": "task", "event_type": "task.created", "position": 8,
        "payload": {}, "metadata": null, "project_id": null, "occurred_at": null,
    });
    {
        let mut store = store.lock().expect("not poisoned");
        store.events.push(managed);
        store.types.push(json!({"type_name": "trip", "fields": [], "builtin": false, "managed": false}));
        store.types.push(json!({"type_name": "task", "fields": [], "builtin": true, "managed": true}));
        store.projects[0]["description"] = "All notes.".into();
    }
    let scratch = Scratch::new();
    let written = export(&stub, &ExportSelection::default(), &scratch.file()).await;
    assert_eq!((written.events, written.left_out, written.position), (8, 0, 8));
    assert_eq!(stub.requests("GET /api/v1/projects").len(), 2, "once by the import, once by the export");

    let (other_store, other_reply) = shared_store();
    let other = Stub::start(other_reply).await;
    for (appended, repeated) in [(7, 0), (0, 7)] {
        let input = LineInput::open(&scratch.file()).expect("readable");
        let source = |outlet: &mut _| import::read_lines(input, None, outlet, &ProgressIndicator::start(None));
        let tally = deliver(&other.client(), &ProgressIndicator::start(None), source).await.expect("imported");
        assert_eq!(tally, SendTally { appended, repeated });
    }
    let there = other_store.lock().expect("not poisoned");
    assert_eq!(there.events, store.lock().expect("not poisoned").events[..7]);
    assert_eq!(
        (&there.projects[0]["slug"], &there.projects[0]["description"]),
        (&json!("notes"), &json!("All notes."))
    );
    assert_eq!(there.types.len(), 1);
    assert_eq!(other.requests("POST /api/v1/aggregates/define").len(), 1);
}

#[tokio::test]
async fn an_export_keeps_event_fields_that_this_program_does_not_know() {
    let (store, reply) = shared_store();
    let stub = Stub::start(reply).await;
    import_text(&stub.client(), lines(1)).await.expect("imported");
    store.lock().expect("not poisoned").events[0]["of_later"] = json!({"a": [1]});
    let scratch = Scratch::new();
    export(&stub, &ExportSelection::default(), &scratch.file()).await;
    let mut input = LineInput::open(&scratch.file()).expect("readable");
    let mut all = Vec::new();
    while let Some((_, line)) = input.next_line().expect("readable") {
        all.push(line.to_owned());
    }
    assert!(all.iter().any(|line| line.contains(r#""of_later":{"a":[1]}"#)), "{all:?}");
}

#[tokio::test]
async fn an_import_of_a_newer_or_truncated_export_fails() {
    let (store, reply) = shared_store();
    let stub = Stub::start(reply).await;
    let newer = format!("{}\n{}", r#"{"foldwork_export":9,"program":"7.0.0"}"#, lines(1));
    let text = error_text(import_text(&stub.client(), newer).await);
    assert!(text.starts_with("line 1: ") && text.contains("format 9") && text.contains("7.0.0"), "{text}");
    assert!(store.lock().expect("not poisoned").events.is_empty());
    let torn = format!("{}\n{}", r#"{"foldwork_export":1,"program":"0.1.0"}"#, lines(3));
    let text = error_text(import_text(&stub.client(), torn).await);
    assert!(text.contains("cut off"), "{text}");
}

#[tokio::test]
async fn an_import_allows_the_server_to_change_slugs() {
    let stub = Stub::start(|request: &StubRequest| match request.method.as_str() {
        "GET" => (200, "", json!({"data": [{"id": "1", "slug": "notes"}], "next_cursor": null})),
        _ => {
            let renamed = json!([{"index": 1, "aggregate_id": "a-1", "slug": "x-2"}]);
            (201, "", json!({"appended": 3, "repeated": 0, "renamed": renamed}))
        }
    })
    .await;
    let imported = import_text(&stub.client(), lines(3)).await.expect("imported");
    assert_eq!(imported, SendTally { appended: 3, repeated: 0 });
    assert_eq!(stub.requests("POST /api/v1/events")[0].body["rename_slugs"], json!(true));
}
