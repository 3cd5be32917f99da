//! Tests that no step is lost or done twice if a plugin fails for some events, is then stopped, and is later replaced
//! by a fixed version.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::parked::StepChoice;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, EngineSettings, Plugins, Store};
use foldwork_plugins::limits::CallLimits;
use foldwork_tests::expectation::root;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::worked;

const NAME: &str = "shaky";

/// Opens an engine with one plugin. Unless `fixed` is set, the plugin throws for events with the field `fail`.
async fn engine(store: &Store, fixed: bool) -> Arc<Engine> {
    let settings = BTreeMap::from([(NAME.to_owned(), Object::from_iter([("fixed", fixed)]))]);
    // Debug builds on a busy machine are slow.
    let limits = CallLimits { deadline_ms: 10_000, ..CallLimits::default() };
    let loaded = foldwork_plugins::load(&[NAME.to_owned()], &root().join("tests/plugins"), &settings, limits);
    let plugins = Plugins::new(loaded.expect("a plugin"), 2).expect("threads");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

async fn append(workspace: &Handles, numbers: std::ops::Range<usize>, fails: impl Fn(usize) -> bool) {
    let event = |number: usize| NewEvent {
        aggregate_id: format!("n{}", number % 10),
        aggregate_type: "note".into(),
        event_type: "note.changed".into(),
        payload: [("text", Value::from("word ".repeat(number))), ("fail", fails(number).into())].into_iter().collect(),
        ..NewEvent::default()
    };
    workspace.writer.append_events(numbers.map(event).collect()).await.expect("appended");
    worked(workspace).await.expect("the plugin's turn");
}

async fn facts(workspace: &Handles) -> Vec<Value> {
    let pipeline = r#"[{"$match": {"aggregate_type": "note"}}, {"$fold": {}}, {"$project": {"_facts": 1}}]"#;
    let query = Query::new(serde_json::from_str(pipeline).expect("JSON"));
    workspace.reader.query(query).await.expect("an answer").rows
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_steps_succeed_when_they_are_replayed_with_the_fixed_plugin() {
    let store = Store::connect("mem://").await.expect("a store");
    let broken = engine(&store, false).await;
    let key = broken.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(&broken, &key).await.expect("a workspace");
    let note = serde_json::from_str(r#"{"type_name": "note"}"#).expect("JSON");
    workspace.writer.define_type(&note, false).await.expect("a type");

    append(&workspace, 0..30, |number| number % 3 == 2).await;
    let plugin = workspace.reader.plugin(NAME).await.expect("the plugin");
    assert_eq!((plugin.parked, plugin.stopped_by), (10, None), "every third step is parked, and the others succeed");

    append(&workspace, 30..36, |_| true).await;
    append(&workspace, 36..40, |_| false).await;
    let plugin = workspace.reader.plugin(NAME).await.expect("the plugin");
    // The last of the first thirty events had failed as well, so four more failures in a row stop the plugin. The
    // remaining six steps are parked without a call.
    assert_eq!(plugin.parked, 20);
    assert!(plugin.stopped_by.is_some(), "five failures in a row stop the plugin");
    drop(workspace);
    broken.close().await;

    let fixed = engine(&store, true).await;
    let workspace = enter(&fixed, &key).await.expect("a workspace");
    let plugin = workspace.reader.plugin(NAME).await.expect("the plugin");
    assert!(plugin.stopped_by.is_some(), "the plugin stays stopped until it is resumed");
    assert!(workspace.writer.resume_plugin(NAME).await.expect("resumed"));
    let replayed =
        workspace.writer.replay_selected(StepChoice::Plugin(Some(NAME.into())).into()).await.expect("replayed");
    assert_eq!((replayed.done, replayed.failed.len(), replayed.more), (20, 0, false));
    assert_eq!(workspace.reader.plugin(NAME).await.expect("the plugin").parked, 0);
    append(&workspace, 40..41, |_| true).await;
    let found = facts(&workspace).await;

    // A replay of the whole log has no effect, because the replays of parked steps did not overwrite newer facts.
    let tally = workspace.writer.replay_plugin(NAME, None, 0).await.expect("replayed");
    assert_eq!((tally.events, tally.failed, tally.changed), (41, 0, 0));
    assert_eq!(facts(&workspace).await, found);
    let rebuilt = workspace.writer.rebuild_graph().await.expect("rebuilt");
    assert_eq!((rebuilt.nodes, rebuilt.parked), (10, 0));
    assert_eq!(facts(&workspace).await, found);
    fixed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replaying_parked_steps_reads_their_stream_only_a_few_times() {
    const STEPS: u64 = 200;
    let store = Store::connect("mem://").await.expect("a store");
    let broken = engine(&store, false).await;
    let key = broken.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(&broken, &key).await.expect("a workspace");
    let note = serde_json::from_str(r#"{"type_name": "note"}"#).expect("JSON");
    workspace.writer.define_type(&note, false).await.expect("a type");
    let events = (0..STEPS).map(|_| NewEvent {
        aggregate_id: "n".into(),
        aggregate_type: "note".into(),
        event_type: "note.changed".into(),
        payload: [("text", Value::from("word")), ("fail", true.into())].into_iter().collect(),
        ..NewEvent::default()
    });
    workspace.writer.append_events(events.collect()).await.expect("appended");
    worked(&workspace).await.expect("the plugin's turn");
    assert_eq!(workspace.reader.plugin(NAME).await.expect("the plugin").parked, STEPS);
    drop(workspace);
    broken.close().await;

    let fixed = engine(&store, true).await;
    let workspace = enter(&fixed, &key).await.expect("a workspace");
    workspace.writer.resume_plugin(NAME).await.expect("resumed");
    let before = workspace.reader.events_read();
    let replayed =
        workspace.writer.replay_selected(StepChoice::Plugin(Some(NAME.into())).into()).await.expect("replayed");
    assert_eq!((replayed.done, replayed.failed.len()), (STEPS, 0));
    let read = workspace.reader.events_read() - before;
    assert!(read <= 8 * STEPS, "{read} events were read for {STEPS} steps");
    fixed.close().await;
}
