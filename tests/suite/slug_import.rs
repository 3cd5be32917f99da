//! Tests the slugs of articles that are imported into the store of a stopped server.

use std::path::Path;
use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::{Engine, EngineSettings, Plugins, Store};
use foldwork_server::cli::input::LineInput;
use foldwork_server::cli::portable::restore::{ImportReport, restore};
use foldwork_server::cli::portable::store::OpenStore;
use foldwork_server::cli::progress::ProgressIndicator;
use serde_json::{Value, json};

async fn engine(store: &Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

async fn store() -> Store {
    let store = Store::connect("mem://").await.expect("a store");
    engine(&store).await.first_start(None).await.expect("started");
    store
}

/// Imports lines into the store's workspace.
async fn import(store: &Store, folder: &Path, lines: &[Value]) -> ImportReport {
    let file = folder.join("events.ndjson");
    std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("written");
    let input = LineInput::open(&file).expect("the file");
    restore(engine(store).await, None, false, input, None, &ProgressIndicator::start(None)).await.expect("imported")
}

/// Returns the slugs in the events of the log, in order, each with the id of its article.
async fn slugs(store: &Store) -> Vec<(String, String)> {
    let opened = OpenStore::open(engine(store).await, None).await.expect("a workspace");
    let events = opened.workspace.events_after(0, 100).await.expect("events");
    opened.workspace.close().await.expect("closed");
    let slug = |event: &foldwork_engine::model::event::Event| {
        Some((event.aggregate_id.to_string(), event.payload.get("slug")?.as_str()?.to_owned()))
    };
    events.iter().filter_map(|event| slug(event)).collect()
}

fn line(id: &str, verb: &str, slug: &str) -> Value {
    json!({"event_id": format!("{id}-{verb}"), "aggregate_id": id, "aggregate_type": "article",
        "event_type": format!("article.{verb}"), "payload": {"title": id, "slug": slug}})
}

/// Returns a line of an event that another log has recorded.
fn recorded(id: &str, verb: &str, slug: &str) -> Value {
    let mut line = line(id, verb, slug);
    line["actor"] = "user:ann".into();
    line["recorded_at"] = "2025-01-01T00:00:00Z".into();
    line
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, slug)| ((*id).to_owned(), (*slug).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_of_an_export_do_not_take_the_slugs_of_the_workspace() {
    let (store, folder) = (store().await, tempfile::tempdir().expect("a folder"));
    import(&store, folder.path(), &[line("own", "created", "a")]).await;
    let lines = [
        recorded("one", "created", "a"),
        recorded("one", "changed", "a"),
        recorded("two", "created", "b"),
        // Logs of old versions have articles that share a slug.
        recorded("three", "created", "b"),
    ];
    let first = import(&store, folder.path(), &lines).await;
    assert_eq!((first.tally.appended, first.renamed), (4, 2));
    let expected = [("own", "a"), ("one", "a-2"), ("one", "a-2"), ("two", "b"), ("three", "b")];
    assert_eq!(slugs(&store).await, pairs(&expected));
    let again = import(&store, folder.path(), &lines).await;
    assert_eq!((again.tally.appended, again.tally.repeated, again.renamed), (0, 4, 0));
    // An import that ended before its last line is continued.
    let next = [&lines[..], &[recorded("four", "created", "b")]].concat();
    let rest = import(&store, folder.path(), &next).await;
    assert_eq!((rest.tally.appended, rest.renamed), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_with_taken_or_invalid_slugs_get_other_slugs() {
    let (store, folder) = (store().await, tempfile::tempdir().expect("a folder"));
    let lines = [line("one", "created", "a"), line("two", "created", "a"), line("three", "created", "not valid")];
    let first = import(&store, folder.path(), &lines).await;
    assert_eq!((first.tally.appended, first.renamed), (3, 2));
    assert_eq!(slugs(&store).await, pairs(&[("one", "a"), ("two", "a-2"), ("three", "not-valid")]));
    let again = import(&store, folder.path(), &lines).await;
    assert_eq!((again.tally.repeated, again.renamed), (3, 0));
}
