//! Tests the depth limits of stored values: an accepted value can be loaded after a restart, and a deeper value is
//! rejected or parked.

use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::hook::{
    Candidates, EnrichInput, Hook, HookOutput, OnError, Outcome, Plugin, PluginAgent, PluginDescription, Subscription,
    WorkInput,
};
use foldwork_engine::model::depth::{MAX_CONTENT_DEPTH, MAX_KEPT_DEPTH};
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::facts::{Artifact, Assignee, EventFact, Facts, Product};
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::mailbox::tasks::NewTask;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, EngineSettings, Error, Plugins, Store};
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::{Server, worked};
use serde_json::json;

use crate::mailbox::board;

/// Returns lists nested in lists, with this many levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| vec![inner].into())
}

/// Returns an object that contains nested lists. The object and the lists have this many levels in total.
fn object(levels: usize) -> Object {
    Object::from_iter([("v", nested(levels - 1))])
}

fn event(aggregate_type: &str, id: &str, payload: Object) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: aggregate_type.into(),
        event_type: format!("{aggregate_type}.changed"),
        payload,
        ..NewEvent::default()
    }
}

/// Returns the states of all aggregates of the workspace, as JSON.
async fn rows(workspace: &Handles) -> Vec<String> {
    let query = Query::new(serde_json::from_str(r#"[{"$fold": {}}]"#).expect("JSON"));
    let rows = workspace.reader.query(query).await.expect("an answer").rows;
    rows.iter().map(foldwork_engine::model::json::text).collect()
}

/// A plugin that returns nested values: facts about an event, a derived event, and the output of a task. The payload of
/// the event sets the depth of the facts and of the derived event. The metadata of the task sets the depth of the
/// output.
struct Digger(PluginDescription);

impl Digger {
    fn plugins() -> Plugins {
        let digger = Digger(PluginDescription {
            name: "digger".into(),
            version: "1.0.0".into(),
            description: "Digs.".into(),
            hooks: vec![Hook::Enrich, Hook::Work],
            on: Subscription { events: vec!["note.*".into()], traits: Vec::new() },
            on_error: OnError::Park,
            settings: Object::new(),
            agent: Some(PluginAgent { description: "Digs.".into(), traits: Vec::new(), capabilities: Object::new() }),
            tool: None,
            candidates: Candidates::default(),
        });
        Plugins::new(vec![Arc::new(digger)], 1).expect("a thread")
    }
}

impl Plugin for Digger {
    fn about(&self) -> &PluginDescription {
        &self.0
    }

    fn enrich(&self, call: &EnrichInput<'_>) -> Outcome<Facts> {
        let levels = |name: &str| call.event.payload.get(name).and_then(Value::as_int).map(|levels| levels as usize);
        let made = |levels: usize| EventFact {
            event_type: "note.dug".into(),
            payload: Object::from_iter([("dug", nested(levels))]),
        };
        let facts = Facts {
            derived: levels("derived").map(object).unwrap_or_default(),
            events: levels("event").map(made).into_iter().collect(),
            ..Facts::default()
        };
        Ok(HookOutput { value: facts, operations: 0 })
    }

    fn work(&self, call: &WorkInput<'_>) -> Outcome<Product> {
        let levels = call.task.get("metadata").and_then(|metadata| metadata.get("levels")).and_then(Value::as_int);
        let data = nested(levels.unwrap_or(0) as usize);
        let artifact =
            Artifact { name: "hole".into(), parts: vec![Object::from_iter([("data", data)]).into()], effect: None };
        Ok(HookOutput {
            value: Product { artifacts: vec![artifact], review: true, ..Product::default() },
            operations: 0,
        })
    }
}

async fn engine(store: &Store) -> Arc<Engine> {
    let engine = Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), Digger::plugins()).await;
    engine.expect("an engine")
}

const TYPES: [&str; 2] = [
    r#"{"type_name": "note"}"#,
    r#"{"type_name": "pile", "fields": [
        {"name": "appended", "type": "array", "fold": "append"}, {"name": "united", "type": "array", "fold": "union"},
        {"name": "first", "type": "array", "fold": "first"}, {"name": "any", "type": "object"}]}"#,
];

/// A field name, a function from a number of levels to a value, and the maximum number of accepted levels.
type NestedField = (&'static str, fn(usize) -> Value, usize);

#[tokio::test(flavor = "multi_thread")]
async fn data_at_the_depth_limit_loads_after_a_restart_and_deeper_data_is_rejected() {
    let store = Store::connect("mem://").await.expect("a store");
    let running = engine(&store).await;
    let key = running.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(&running, &key).await.expect("a workspace");
    for definition in TYPES {
        workspace.writer.define_type(&serde_json::from_str(definition).expect("JSON"), false).await.expect("a type");
    }
    let payload = |name: &str, value: Value| Object::from_iter([(name, value)]);
    // The state itself counts as a level, and so does the list in which a fold collects objects.
    let most = MAX_KEPT_DEPTH - 1;
    let ways: [NestedField; 6] = [
        ("undeclared", nested, most),
        ("first", nested, most),
        ("any", |levels| object(levels).into(), most),
        ("appended", nested, most),
        ("appended", |levels| object(levels).into(), most - 1),
        ("united", |levels| object(levels).into(), most - 1),
    ];
    for (number, (name, value, most)) in ways.into_iter().enumerate() {
        let id = format!("p{number}");
        for _ in 0..2 {
            let accepted = event("pile", &id, payload(name, value(most)));
            workspace.writer.append_events(vec![accepted]).await.expect("appended");
        }
        let refused = event("pile", &id, payload(name, value(most + 1)));
        match workspace.writer.append_events(vec![refused.clone()]).await {
            Err(Error::Invalid { violations, .. }) => {
                assert_eq!(violations[0].pointer, format!("/payload/{name}"));
                assert_eq!(violations[0].message, format!("nested more than {most} levels deep"));
            }
            other => panic!("{name}: the append returned {other:?}"),
        }
        let one_of_two = vec![event("pile", &id, Object::new()), refused];
        match workspace.writer.append_events(one_of_two).await {
            Err(error @ Error::Invalid { index: Some(1), .. }) => {
                assert_eq!(error.to_string(), format!("/events/1/payload/{name}: nested more than {most} levels deep"));
            }
            other => panic!("{name}: the append returned {other:?}"),
        }
    }
    let with = |levels| NewEvent { metadata: object(levels), ..event("pile", "m", Object::new()) };
    workspace.writer.append_events(vec![with(MAX_KEPT_DEPTH)]).await.expect("appended");
    match workspace.writer.append_events(vec![with(MAX_KEPT_DEPTH + 1)]).await {
        Err(Error::Invalid { violations, .. }) => assert_eq!(violations[0].pointer, "/metadata"),
        other => panic!("metadata: the append returned {other:?}"),
    }

    // The output of plugins has the same limits. A step whose output exceeds a limit is parked with the reason.
    let depth_request = |name: &str, levels: usize| payload(name, Value::Int(levels as i64));
    let notes = [
        ("n0", depth_request("derived", MAX_KEPT_DEPTH)),
        ("n1", depth_request("event", most)),
        ("n2", depth_request("derived", MAX_KEPT_DEPTH + 1)),
        ("n3", depth_request("event", most + 1)),
    ];
    for (id, payload) in notes {
        workspace.writer.append_events(vec![event("note", id, payload)]).await.expect("appended");
    }
    for levels in [MAX_CONTENT_DEPTH - 1, MAX_CONTENT_DEPTH] {
        let task = NewTask {
            title: "Dig".into(),
            assignee: Some(Assignee::Agent("agent-digger".into())),
            metadata: depth_request("levels", levels),
            ..NewTask::default()
        };
        workspace.writer.create_task(task).await.expect("a task");
    }
    worked(&workspace).await.expect("the plugin's turn");
    let parked = workspace.reader.list_parked(Some("digger"), None, 10).await.expect("steps");
    let reasons: Vec<_> = parked.iter().map(|parked| &*parked.reason.message).collect();
    assert_eq!(
        reasons,
        [
            "derived: nested more than 160 levels deep",
            "the plugin's events were rejected: /payload/dug: nested more than 159 levels deep",
            "product.artifacts[0].parts: nested more than 140 levels deep",
        ]
    );

    let before = rows(&workspace).await;
    assert!(before.iter().any(|row| row.contains(r#""_facts":{"digger":{"v":[["#)), "no state has the plugin's facts");
    // Opens the workspace while the first engine still runs, so that snapshots may be older than the log. Opens the
    // workspace again after both engines were closed.
    let abrupt = engine(&store).await;
    let again = enter(&abrupt, &key).await.expect("the workspace opens");
    worked(&again).await.expect("the plugin's turn");
    assert_eq!(rows(&again).await, before);
    drop((workspace, again));
    running.close().await;
    abrupt.close().await;
    let again = enter(&engine(&store).await, &key).await.expect("the workspace opens");
    worked(&again).await.expect("the plugin's turn");
    assert_eq!(rows(&again).await, before);
}

/// Returns JSON with this many levels, for requests to the server.
fn deep(levels: usize) -> serde_json::Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_at_the_depth_limit_load_after_a_restart_and_deeper_values_are_rejected() {
    let server = board::server().await;
    let most = 140;
    let refused = async |path: &str, body: serde_json::Value, pointer: &str| {
        let (status, answer) = board::post(&server, path, &body).await;
        assert_eq!((status, answer["details"][0]["pointer"].as_str()), (400, Some(pointer)), "{path}: {answer}");
    };
    let task = |metadata: usize, source: usize| {
        json!({"title": "Dig", "metadata": {"v": deep(metadata)}, "source": {"v": deep(source)},
            "assignee_type": "agent", "assignee_id": board::DRAFTER})
    };
    refused("/mailbox", task(most, 1), "/metadata").await;
    refused("/mailbox", task(1, most), "/source").await;
    let (status, _) = board::post(&server, "/mailbox", &task(most - 1, most - 1)).await;
    assert_eq!(status, 201);
    // Selects one field, because the full response nests deeper than the test's JSON parser allows.
    let pipeline = r#"[{"$match": {"aggregate_type": "task"}}, {"$fold": {}}, {"$project": {"_id": 1}}]"#;
    let query = Query::new(serde_json::from_str(pipeline).expect("JSON"));
    let workspace = server.workspace("owner").await.expect("a workspace");
    let rows = workspace.reader.query(query).await.expect("an answer").rows;
    let id = rows[0].get("_id").and_then(Value::as_str).expect("an id");
    let path = |act: &str| format!("/mailbox/{id}/{act}");

    board::act(&server, id, "claim", json!({"agent_id": board::DRAFTER, "lease_seconds": 60})).await;
    let message = |levels: usize| json!({"parts": [{"data": deep(levels)}]});
    refused(&path("messages"), message(most), "/parts/0").await;
    board::act(&server, id, "messages", message(most - 1)).await;
    let draft = |levels: usize| json!({"name": "a", "data": deep(levels)});
    refused(&path("artifacts"), draft(most + 1), "/data").await;
    board::act(&server, id, "artifacts", draft(most)).await;
    let effect = |levels: usize| {
        let effect = json!({"event_type": "article.changed", "aggregate_id": "a", "payload": {"v": deep(levels)}});
        json!({"name": "b", "text": "b", "effect": effect})
    };
    refused(&path("artifacts"), effect(most), "/effect/payload").await;
    board::act(&server, id, "artifacts", effect(most - 1)).await;
    let question = |levels: usize| json!({"message": "which?", "schema": {"default": deep(levels)}});
    refused(&path("request-input"), question(most), "/schema").await;
    // A schema has a lower limit.
    board::act(&server, id, "request-input", question(60)).await;
    board::act(&server, id, "ask", json!({"message": "go on"})).await;
    refused(&path("edit"), json!({"content": deep(most + 1)}), "/content").await;
    refused(&path("edit"), json!({"modifications": {"v": deep(most)}}), "/modifications").await;
    board::act(&server, id, "edit", json!({"modifications": {"v": deep(most - 1)}})).await;

    drop(workspace);
    assert_reopens(&server).await;
}

/// Opens a server's store with another engine, once while the server runs and once after the server was closed. Both
/// times, checks that all states equal the states on the server.
async fn assert_reopens(server: &Server) {
    let before = rows(&server.workspace("owner").await.expect("a workspace")).await;
    let key = server.key("owner").expect("the owner");
    for close in [false, true] {
        if close {
            server.engine.close().await;
        }
        let engine = foldwork_tests::embedded::engine(server.store.share()).await;
        let again = enter(&engine, key).await.expect("the workspace opens");
        assert_eq!(rows(&again).await, before);
    }
}
