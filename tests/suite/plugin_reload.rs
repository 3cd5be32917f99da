//! Tests plugins whose files change while servers run: each event is processed by one version, and all servers of a
//! store use the same version.

use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::error::Error;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::hook::Hook;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::plugins::{ReloadOutcome, ReplayTally};
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Administrator, Engine, EngineSettings, Store};
use foldwork_server::Config;
use foldwork_server::config::Plugins;
use foldwork_server::serve::load_plugins;
use foldwork_server::serve::watch::PluginWatch;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::worked;
use tempfile::TempDir;

const NAME: &str = "counter";

/// A folder with one plugin.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(folder.0.path().join(NAME)).expect("a folder");
        folder.write("plugin.toml", &manifest("1.0.0", "enrich"));
        folder
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.path().join(NAME).join(file), text).expect("written");
    }

    /// Writes a script that marks each event with a version.
    fn mark(&self, version: i64) {
        self.write(
            "plugin.rhai",
            &format!("fn enrich(event, state, settings) {{ #{{ derived: #{{ by: {version} }} }} }}"),
        );
    }

    fn settings(&self) -> Plugins {
        let mut plugins = Plugins {
            enabled: vec![NAME.to_owned()],
            folder: self.0.path().to_string_lossy().into_owned(),
            ..Config::default().plugins
        };
        // Debug builds on a busy machine are slow.
        plugins.limits.deadline_ms = 10_000;
        plugins
    }
}

fn manifest(version: &str, hook: &str) -> String {
    format!("name = \"{NAME}\"\nversion = \"{version}\"\ndescription = \"Marks events.\"\nhooks = [\"{hook}\"]\n")
}

async fn engine(store: &Store, folder: &Folder) -> Arc<Engine> {
    let plugins = load_plugins(&folder.settings()).expect("plugins");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

/// Opens an engine on an empty store and defines the type `note`. Returns the engine and the owner's key.
async fn first(store: &Store, folder: &Folder) -> (Arc<Engine>, String) {
    let engine = engine(store, folder).await;
    let key = engine.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(&engine, &key).await.expect("a workspace");
    let note = serde_json::from_str(r#"{"type_name": "note"}"#).expect("JSON");
    workspace.writer.define_type(&note, false).await.expect("a type");
    (engine, key)
}

async fn append(workspace: &Handles, id: &str) {
    let event = NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "note".into(),
        event_type: "note.created".into(),
        ..NewEvent::default()
    };
    workspace.writer.append_events(vec![event]).await.expect("appended");
}

async fn reload(engine: &Engine, key: &str) -> Result<ReloadOutcome, Error> {
    let caller = engine.authenticate(key).await.expect("a caller");
    let operator: Administrator = engine.enter(caller).await.expect("an operator");
    operator.reload_plugin(NAME).await
}

/// Waits for the plugins. Returns the versions that processed the notes, in the order of the notes' ids.
async fn marks(workspace: &Handles) -> Vec<i64> {
    worked(workspace).await.expect("the plugins' turn");
    let pipeline = r#"[{"$match": {"aggregate_type": "note"}}, {"$fold": {}}, {"$sort": {"_id": 1}},
        {"$project": {"_id": 0, "by": "$_facts.counter.by"}}]"#;
    let query = Query::new(serde_json::from_str(pipeline).expect("JSON"));
    let rows = workspace.reader.query(query).await.expect("an answer").rows;
    rows.iter().filter_map(|row| row.get("by").and_then(Value::as_int)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reloaded_plugin_processes_the_events_after_its_position() {
    let (store, folder) = (Store::connect("mem://").await.expect("a store"), Folder::new());
    folder.mark(1);
    let (engine, key) = first(&store, &folder).await;
    let workspace = enter(&engine, &key).await.expect("a workspace");
    append(&workspace, "a").await;
    assert_eq!(marks(&workspace).await, [1]);
    let before = reload(&engine, &key).await.expect("unchanged files");
    assert_eq!((before.has_changed, before.adopted.from_position), (false, 1));

    folder.mark(2);
    let reloaded = reload(&engine, &key).await.expect("reloaded");
    assert_eq!((reloaded.has_changed, reloaded.adopted.from_position), (true, 2));
    assert_ne!(reloaded.adopted.digest, before.adopted.digest);
    append(&workspace, "b").await;
    assert_eq!(marks(&workspace).await, [1, 2]);
    let status = workspace.reader.plugin(NAME).await.expect("a status");
    assert_eq!(status.adopted, Some(reloaded.adopted.clone()));

    // A restart with the same files has no effect. The plugin is not called again for any event.
    drop(workspace);
    engine.close().await;
    let again = self::engine(&store, &folder).await;
    let workspace = enter(&again, &key).await.expect("a workspace");
    append(&workspace, "c").await;
    assert_eq!(marks(&workspace).await, [1, 2, 2]);
    assert_eq!(workspace.reader.plugin(NAME).await.expect("a status").adopted, Some(reloaded.adopted));
    again.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_with_invalid_files_keeps_the_current_version_of_the_plugin() {
    let (store, folder) = (Store::connect("mem://").await.expect("a store"), Folder::new());
    folder.mark(1);
    let (engine, key) = first(&store, &folder).await;
    let workspace = enter(&engine, &key).await.expect("a workspace");
    folder.write("plugin.rhai", "fn enrich(event, state, settings) {\n    word_cout(\"x\")\n}");
    let Err(Error::Conflict { code, message, details, .. }) = reload(&engine, &key).await else {
        panic!("the invalid files were loaded");
    };
    assert_eq!(code, ErrorCode::PluginRefused);
    assert!(message.starts_with("counter/plugin.rhai:2:5: unknown function 'word_cout'; did you mean"), "{message}");
    assert_eq!(details.get("file"), Some(&Value::from("counter/plugin.rhai")));
    assert_eq!((details.get("line"), details.get("column")), (Some(&Value::Int(2)), Some(&Value::Int(5))));

    // A reload also runs the cases of the plugin.
    folder.mark(2);
    folder.write("cases.toml", "[[case]]\nname = \"one\"\nevent = {}\nexpect = { derived = { by = 1 } }\n");
    let refused = reload(&engine, &key).await.expect_err("a case fails").to_string();
    assert!(refused.starts_with("counter/cases.toml:1: the case 'one' fails"), "{refused}");
    append(&workspace, "a").await;
    assert_eq!(marks(&workspace).await, [1]);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_servers_of_a_store_load_the_released_version_of_a_plugin() {
    let store = Store::connect("mem://").await.expect("a store");
    let (folder, other_folder) = (Folder::new(), Folder::new());
    folder.mark(1);
    other_folder.mark(1);
    let (one, key) = first(&store, &folder).await;
    let two = engine(&store, &other_folder).await;
    let on_one = enter(&one, &key).await.expect("a workspace");
    append(&on_one, "a").await;
    assert_eq!(marks(&on_one).await, [1]);

    // Only the first server has the new files. The second server gets the new version from the store.
    folder.mark(2);
    assert!(reload(&one, &key).await.expect("reloaded").has_changed);
    worked(&on_one).await.expect("the plugins' turn");
    let on_two = enter(&two, &key).await.expect("a workspace");
    for id in ["b", "c", "d", "e"] {
        append(if id < "d" { &on_one } else { &on_two }, id).await;
        worked(&on_two).await.expect("the plugins' turn");
    }
    drop(on_one);
    one.close().await;
    append(&on_two, "f").await;
    assert_eq!(marks(&on_two).await, [1, 2, 2, 2, 2, 2]);
    drop(on_two);
    two.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_plugin_is_reloaded_after_its_files_stop_changing() {
    let (store, folder) = (Store::connect("mem://").await.expect("a store"), Folder::new());
    folder.mark(1);
    let (engine, key) = first(&store, &folder).await;
    let workspace = enter(&engine, &key).await.expect("a workspace");
    let mut watch = PluginWatch::new(engine.clone(), &folder.settings());
    watch.check().await;
    // Changes the size of the file, because the modification time may have a low resolution.
    folder.mark(20);
    watch.check().await;
    append(&workspace, "a").await;
    assert_eq!(marks(&workspace).await, [1], "the files may still be changing");
    watch.check().await;
    append(&workspace, "b").await;
    assert_eq!(marks(&workspace).await, [1, 20]);
    // Rejected files have no effect, and the next change of the files is loaded.
    folder.write("plugin.rhai", "fn enrich(event, state, settings) {");
    watch.check().await;
    watch.check().await;
    append(&workspace, "c").await;
    assert_eq!(marks(&workspace).await, [1, 20, 20]);
    folder.mark(300);
    watch.check().await;
    watch.check().await;
    append(&workspace, "d").await;
    assert_eq!(marks(&workspace).await, [1, 20, 20, 300]);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_replay_assigns_no_work() {
    let (store, folder) = (Store::connect("mem://").await.expect("a store"), Folder::new());
    folder.write("plugin.toml", &manifest("1.0.0", "route"));
    folder.write("plugin.rhai", "fn route(event, state, facts, aggregate_type, agents, settings) { }");
    let (engine, key) = first(&store, &folder).await;
    let workspace = enter(&engine, &key).await.expect("a workspace");
    append(&workspace, "a").await;
    append(&workspace, "b").await;
    worked(&workspace).await.expect("the plugins' turn");
    let owner = workspace.reader.record().owner_id.clone();
    let script = |title: &str| {
        format!(
            "fn route(event, state, facts, aggregate_type, agents, settings) {{
                if event.aggregate_type == \"note\" {{ [#{{ user_id: \"{owner}\", title: \"{title}\" }}] }}
            }}"
        )
    };
    folder.write("plugin.rhai", &script("Read it"));
    reload(&engine, &key).await.expect("reloaded");
    let replay = async || workspace.writer.replay_plugin(NAME, Some(Hook::Route), 0).await.expect("replayed");
    assert_eq!(replay().await, ReplayTally { events: 2, assigned: 2, ..ReplayTally::default() });
    // The new version would assign other work for the same events.
    folder.write("plugin.rhai", &script("Read it again"));
    reload(&engine, &key).await.expect("reloaded");
    // The plugin is also called for the events of the new tasks, but assigns no work for these events.
    worked(&workspace).await.expect("the plugins' turn");
    assert_eq!(replay().await, ReplayTally { events: 2, assigned_before: 2, ..ReplayTally::default() });
    engine.close().await;
}
