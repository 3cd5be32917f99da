//! Tests a type with a changed fold: its aggregates are folded again while the old states stay readable.

use std::sync::{Arc, Mutex, mpsc};

use foldwork_engine::clock::SystemClock;
use foldwork_engine::hook::{
    Candidates, EnrichInput, Hook, HookOutput, OnError, Outcome, Plugin, PluginDescription, Subscription,
};
use foldwork_engine::model::event::{MAX_EVENTS_PER_APPEND, NewEvent};
use foldwork_engine::model::facts::Facts;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::pipeline::SourceChoice;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, EngineSettings, Error, Plugins, Store};
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::worked;

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn definition(fold: &str) -> Value {
    value(&format!(r#"{{"type_name": "thing", "fields": [{{"name": "total", "type": "integer", "fold": "{fold}"}}]}}"#))
}

fn event(aggregate_type: &str, id: usize) -> NewEvent {
    NewEvent {
        aggregate_id: format!("{aggregate_type}-{id}"),
        aggregate_type: aggregate_type.into(),
        event_type: format!("{aggregate_type}.changed"),
        payload: [("total", Value::Int(1))].into_iter().collect(),
        ..NewEvent::default()
    }
}

async fn append(workspace: &Handles, events: impl Iterator<Item = NewEvent>) {
    let events: Vec<NewEvent> = events.collect();
    for some in events.chunks(MAX_EVENTS_PER_APPEND) {
        workspace.writer.append_events(some.to_vec()).await.expect("appended");
    }
}

/// Reads the states from a source, and returns the number of aggregates for each total, as JSON.
async fn totals(workspace: &Handles, source: SourceChoice) -> String {
    let pipeline = r#"[{"$match": {"aggregate_type": "thing"}}, {"$fold": {}},
        {"$group": {"_id": "$total", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]"#;
    let answer = workspace.reader.query(Query { source, ..Query::new(value(pipeline)) }).await.expect("an answer");
    serde_json::to_string(&answer.rows).expect("rows")
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_continue_while_a_type_is_folded_again() {
    const AGGREGATES: usize = 200;
    let store = Store::connect("mem://").await.expect("a store");
    let shared_store = store.share();
    let running = engine(store).await;
    let (workspace, key) = first(&running).await.expect("a workspace");
    for name in ["thing", "other"] {
        let body = if name == "thing" { definition("sum") } else { value(r#"{"type_name": "other"}"#) };
        workspace.writer.define_type(&body, false).await.expect("a type");
    }
    for _ in 0..2 {
        append(&workspace, (0..AGGREGATES).map(|id| event("thing", id))).await;
    }
    assert_eq!(totals(&workspace, SourceChoice::Resident).await, format!(r#"[{{"_id":2,"n":{AGGREGATES}}}]"#));

    let redefining = tokio::spawn({
        let workspace = workspace.clone();
        async move { workspace.writer.define_type(&definition("max"), true).await.map(drop) }
    });
    let mut meanwhile = 0;
    while !redefining.is_finished() {
        // Appends events of another type and of the changed type. The new fold includes events that are appended while
        // the states are folded again.
        append(&workspace, ["other", "thing"].into_iter().map(|name| event(name, meanwhile % AGGREGATES))).await;
        meanwhile += 1;
    }
    redefining.await.expect("no panic").expect("redefined");
    assert!(meanwhile >= 10, "only {meanwhile} appends succeeded during the change of the type");
    let after = format!(r#"[{{"_id":1,"n":{AGGREGATES}}}]"#);
    for source in [SourceChoice::Resident, SourceChoice::Log] {
        assert_eq!(totals(&workspace, source).await, after);
    }
    drop(workspace);
    running.close().await;
    let again = enter(&engine(shared_store).await, &key).await.expect("a workspace");
    assert_eq!(totals(&again, SourceChoice::Resident).await, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redefinition_of_a_type_applies_on_every_server() {
    let store = Store::connect("mem://").await.expect("a store");
    let (here, there) = (engine(store.share()).await, engine(store.share()).await);
    let (here, key) = first(&here).await.expect("a workspace");
    here.writer.define_type(&definition("sum"), false).await.expect("a type");
    for _ in 0..3 {
        append(&here, (0..5).map(|id| event("thing", id))).await;
    }
    let there = enter(&there, &key).await.expect("the same workspace");
    assert_eq!(totals(&there, SourceChoice::Resident).await, r#"[{"_id":3,"n":5}]"#);

    // The other server finds the new definition even if nothing is appended.
    here.writer.define_type(&definition("max"), true).await.expect("a forced change");
    assert_eq!(totals(&there, SourceChoice::Resident).await, r#"[{"_id":1,"n":5}]"#);

    // An append is checked against the definition in the store even if the server has not read it before.
    let text = value(r#"{"type_name": "thing", "fields": [{"name": "total", "type": "string"}]}"#);
    here.writer.define_type(&text, true).await.expect("a forced change");
    let refused = there.writer.append_events(vec![event("thing", 0)]).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");

    // Of two concurrent changes of one type, the second is checked against the result of the first.
    let field = |name: &str| {
        value(&format!(
            r#"{{"type_name": "thing", "fields": [{{"name": "total", "type": "string"}}, {{"name": "{name}", "type": "string"}}]}}"#
        ))
    };
    let (one, other) = (field("a"), field("b"));
    let (one, other) = tokio::join!(here.writer.define_type(&one, false), there.writer.define_type(&other, false));
    let refused = [one.is_err(), other.is_err()].into_iter().filter(|refused| *refused).count();
    assert_eq!(refused, 1, "the second change would remove the first one's field");
}

/// A plugin that records the total in each state that it gets. Each call waits until the test opens the gate.
struct Recorder {
    about: PluginDescription,
    totals: Mutex<Vec<i64>>,
    /// The notification that a call has begun.
    called: tokio::sync::Notify,
    gate: Mutex<mpsc::Receiver<()>>,
}

impl Recorder {
    /// Creates the plugin. Dropping the other end of `gate` opens the gate.
    fn new(gate: mpsc::Receiver<()>) -> Recorder {
        let about = PluginDescription {
            name: "recorder".into(),
            version: "1.0.0".into(),
            description: "Records totals.".into(),
            agent: None,
            tool: None,
            candidates: Candidates::default(),
            hooks: vec![Hook::Enrich],
            on: Subscription { events: vec!["thing.changed".into()], traits: Vec::new() },
            on_error: OnError::Park,
            settings: Object::new(),
        };
        Recorder { about, totals: Mutex::default(), called: tokio::sync::Notify::new(), gate: Mutex::new(gate) }
    }
}

impl Plugin for Recorder {
    fn about(&self) -> &PluginDescription {
        &self.about
    }

    fn enrich(&self, call: &EnrichInput<'_>) -> Outcome<Facts> {
        self.called.notify_one();
        let _ = self.gate.lock().expect("the gate").recv();
        self.totals.lock().expect("the totals").extend(call.aggregate.state.get("total").and_then(Value::as_int));
        Ok(HookOutput { value: Facts::default(), operations: 0 })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_that_lag_behind_get_states_of_the_new_definition() {
    let (closed, gate) = mpsc::channel();
    let recorder = Arc::new(Recorder::new(gate));
    let plugin: Arc<dyn Plugin> = recorder.clone();
    let plugins = Plugins::new(vec![plugin], 1).expect("a thread");
    let store = Store::connect("mem://").await.expect("a store");
    let running = Engine::open(store, Arc::new(SystemClock), EngineSettings::default(), plugins).await;
    let running = running.expect("an engine");
    let (workspace, _) = first(&running).await.expect("a workspace");
    workspace.writer.define_type(&definition("last"), false).await.expect("a type");
    let with_total =
        |total: i64| NewEvent { payload: [("total", Value::Int(total))].into_iter().collect(), ..event("thing", 0) };
    append(&workspace, [1, 2].into_iter().map(with_total)).await;
    recorder.called.notified().await;

    // The plugin works on the first two events while events are added and the type is redefined.
    append(&workspace, [4, 8].into_iter().map(with_total)).await;
    workspace.writer.define_type(&definition("sum"), true).await.expect("a forced change");
    drop(closed);
    worked(&workspace).await.expect("the plugin's turn");
    assert_eq!(*recorder.totals.lock().expect("the totals"), [1, 2, 7, 15]);
    running.close().await;
}
