//! Tests with a workspace that contains damaged records or records of older programs. The workspace must open, and its
//! states must match the events in its log.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::key_range::KeyRange;
use super::workspace::append::EventWrite;
use super::workspace::nodes::ReadSnapshot;
use super::{Database, Store, convert};
use crate::clock::SystemClock;
use crate::error::ErrorCode;
use crate::model::event::{Event, NewEvent, StreamExpectation};
use crate::model::json;
use crate::model::value::{Object, Value};
use crate::state::NODES;
use crate::workspace::aggregates::StateMoment;
use crate::workspace::articles::ArticleChange;
use crate::{Engine, EngineSettings, Error, Plugins, Reader, Right, Writer};

const KEY: &str = "sk_7777777777777777777777777777777777777777777777777777777777777777";

async fn engine(store: &Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

async fn enter<R: Right>(engine: &Arc<Engine>) -> R {
    let caller = engine.authenticate(KEY).await.expect("the key");
    engine.enter(caller).await.expect("the workspace opens")
}

/// Returns a store with one workspace, and the workspace's database.
async fn store() -> (Store, Database) {
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(&store).await;
    engine.first_start(Some(KEY.into())).await.expect("a start");
    let caller = engine.authenticate(KEY).await.expect("the key");
    let log = store.workspace(&caller.workspace_id).await.expect("a database");
    engine.close().await;
    (store, log)
}

fn event(id: &str, version: u64, position: u64, payload: Object) -> Arc<Event> {
    Arc::new(Event { version, payload: Arc::new(payload), ..Event::sample(id, "article.changed", position) })
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| vec![inner].into())
}

/// Returns a snapshot record in the format of older programs.
fn older_node(id: &str, version: u64, state: &str) -> Record {
    convert::object([
        ("id", convert::record_id("node", id)),
        ("aggregate_id", convert::text(id)),
        ("aggregate_type", convert::text("article")),
        ("version", convert::integer(version)),
        ("position", convert::integer(version)),
        ("first_position", convert::integer(1)),
        ("created_at", convert::integer(0)),
        ("last_event_at", convert::integer(0)),
        ("deleted", Record::Bool(false)),
        ("revision", convert::integer(1)),
        ("text", Record::String(state.to_owned())),
        ("state", convert::object([("n", convert::integer(1))])),
    ])
}

async fn upsert(log: &Database, record: Record) {
    let statement = "UPSERT $record.id CONTENT $record RETURN NONE";
    log.query(statement, [("record", record)]).await.expect("written");
}

async fn snapshots(log: &Database) -> Vec<ReadSnapshot> {
    log.read_nodes(KeyRange::default(), |_| None).await.expect("records")
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_and_snapshots_with_values_deeper_than_the_request_limit_are_opened() {
    let (store, log) = store().await;
    let payload = Object::from_iter([("deep", nested(180))]);
    log.append_events(&[event("a", 1, 1, payload.clone()).into()]).await.expect("written");
    upsert(&log, older_node("a", 1, &json::text(&Value::from(payload.clone())))).await;
    log.append_events(&[event("b", 1, 2, payload.clone()).into()]).await.expect("written");
    log.write_nodes(&[], None, Some((NODES, 1)), None).await.expect("written");

    let engine = engine(&store).await;
    let reader: Reader = enter(&engine).await;
    for id in ["a", "b"] {
        let (found, _) = reader.aggregate(id, StateMoment::Now).await.expect("the aggregate");
        assert_eq!(*found.state, payload);
    }
    // Further appends within the depth limit of events are accepted.
    let writer: Writer = enter(&engine).await;
    let more = |field: &str, levels: usize| NewEvent {
        aggregate_id: "a".into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload: Object::from_iter([(field, nested(levels))]),
        ..NewEvent::default()
    };
    writer.append_events(vec![more("other", 159)]).await.expect("appended");
    writer.append_events(vec![more("other", 160)]).await.expect_err("refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_with_unreadable_snapshots_are_folded_from_the_log_and_stored_again() {
    let (store, log) = store().await;
    let payload = |number: i64| Object::from_iter([("n", number)]);
    let events = [event("a", 1, 1, payload(1)), event("b", 1, 2, payload(2)), event("a", 2, 3, payload(3))];
    log.append_events(&events.map(EventWrite::from)).await.expect("written");
    upsert(&log, older_node("a", 2, "{\"n\":")).await;
    upsert(&log, convert::object([("id", convert::record_id("node", "b"))])).await;
    log.write_nodes(&[], None, Some((NODES, 3)), None).await.expect("written");
    assert!(snapshots(&log).await.iter().all(Result::is_err));

    let engine = engine(&store).await;
    let reader: Reader = enter(&engine).await;
    for (id, version, n) in [("a", 2, 3), ("b", 1, 2)] {
        let (found, _) = reader.aggregate(id, StateMoment::Now).await.expect("the aggregate");
        assert_eq!((found.version, &*found.state), (version, &payload(n)));
    }
    // The snapshots are written again, and each contains the state only once.
    engine.close().await;
    assert!(snapshots(&log).await.iter().all(Result::is_ok));
    let left = log.query("SELECT * FROM node WHERE text != NONE OR state != NONE", []).await.expect("records");
    assert_eq!(convert::list(left.first()).expect("a list").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_with_an_unreadable_definition_can_be_opened() {
    let (store, log) = store().await;
    let stored = async |name: &str, text: &str| {
        let statement = "UPSERT $id CONTENT { text: $text, revision: 3 } RETURN NONE";
        let values = [("id", convert::record_id("definition", name)), ("text", convert::text(text))];
        log.query(statement, values).await.expect("written");
    };
    // The first definition was accepted under older rules. The second definition is damaged.
    let fields = r#"[{"name": "_secret", "type": "string"}, {"name": "total", "type": "integer", "fold": "sum"}]"#;
    stored("older", &format!(r#"{{"type_name": "older", "fields": {fields}}}"#)).await;
    stored("damaged", "{").await;
    let engine = engine(&store).await;
    let reader: Reader = enter(&engine).await;
    let types = reader.list_types().await.expect("types");
    let found = |name: &str| types.iter().find(|known| &*known.type_name == name).expect("the type");
    assert_eq!(found("older").fields().iter().map(|field| &*field.name).collect::<Vec<_>>(), ["total"]);
    assert_eq!((found("older").revision, found("damaged").revision), (3, 0));
    assert!(found("damaged").fields().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_facts_do_not_affect_the_facts_about_other_aggregates() {
    let (_, log) = store().await;
    let deep = json::text(&nested(170));
    for (id, text) in
        [("a", format!(r#"{{"linker":{{"derived":{{"deep":{deep}}}}}}}"#)), ("b", "{".to_owned()), ("c", "{}".into())]
    {
        let key = vec![convert::integer(0), convert::text(id)];
        let id = convert::record_id("finding", surrealdb::types::RecordIdKey::Array(key.into()));
        upsert(&log, convert::object([("id", id), ("text", Record::String(text))])).await;
    }
    let found = log.read_facts(0, KeyRange::default()).await.expect("records");
    let counts: Vec<_> =
        found.iter().map(|(id, facts)| (&**id, facts.as_ref().map(|facts| facts.iter().count()).ok())).collect();
    assert_eq!(counts, [("a", Some(1)), ("b", None), ("c", Some(0))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn articles_of_older_logs_keep_a_shared_slug_but_cannot_take_a_slug_in_use() {
    let (store, log) = store().await;
    for (position, (id, slug)) in [("a", "x"), ("b", "x"), ("c", "Not Valid")].into_iter().enumerate() {
        let events = [event(id, 1, position as u64 + 1, Object::from_iter([("slug", slug)]))];
        log.append_events(&events.map(EventWrite::from)).await.expect("written");
    }
    let engine = engine(&store).await;
    let writer: Writer = enter(&engine).await;
    let update = async |id: &str, name: &str, value: &str| {
        let event = NewEvent {
            aggregate_id: id.into(),
            aggregate_type: "article".into(),
            event_type: "article.changed".into(),
            payload: Object::from_iter([(name, value)]),
            ..NewEvent::default()
        };
        writer.append_events(vec![event]).await.map(drop)
    };
    let holder = |outcome: Result<(), Error>| match outcome {
        Err(Error::Conflict { code: ErrorCode::SlugTaken, details, .. }) => details.get("aggregate_id").cloned(),
        other => panic!("{other:?}"),
    };
    for id in ["a", "b", "c"] {
        update(id, "title", "new").await.expect("appended");
    }
    for (id, slug) in [("a", "x"), ("b", "x"), ("c", "Not Valid")] {
        update(id, "slug", slug).await.expect("an article keeps its slug");
        let change = ArticleChange { slug: Some(slug.into()), title: Some("newer".into()), ..ArticleChange::default() };
        if id != "c" {
            writer.change_article(id, change, StreamExpectation::Any).await.expect("changed");
        }
    }
    assert_eq!(holder(update("c", "slug", "x").await), Some(Value::from("a")));
    update("b", "slug", "y").await.expect("the slugs differ now");
    assert_eq!(holder(update("b", "slug", "x").await), Some(Value::from("a")));
    assert_eq!(holder(update("a", "slug", "y").await), Some(Value::from("b")));
}
