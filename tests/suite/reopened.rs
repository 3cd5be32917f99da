//! A store that is opened again answers as before, wherever what follows the log stood when it was left.

use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::pipeline::SourceChoice;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, Plugins, Settings, Store, Workspace};
use foldwork_tests::server::{consumed, enter};

/// Pipelines whose answers must stay.
const ASKED: [&str; 4] = [
    r#"[]"#,
    r#"[{"$fold": {}}]"#,
    r#"[{"$fold": {"deleted": true}}]"#,
    r#"[{"$match": {"aggregate_type": "thing"}}, {"$fold": {}}, {"$match": {"total": {"$gt": 2}}}, {"$sort": {"total": -1}}]"#,
];

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

async fn engine(store: &Store) -> Arc<Engine> {
    Engine::open(store.share(), Arc::new(SystemClock), Settings::default(), Plugins::none().expect("no plugins"))
        .await
        .expect("an engine")
}

/// Answers of all pipelines from all sources.
async fn answers(workspace: &Workspace) -> Vec<String> {
    let mut answers = Vec::new();
    for pipeline in ASKED {
        for source in [SourceChoice::Resident, SourceChoice::Nodes, SourceChoice::Log] {
            let query = Query { source, ..Query::new(value(pipeline)) };
            let answer = workspace.query(query).await.expect("an answer");
            answers.push(serde_json::to_string(&answer.rows).expect("rows"));
        }
    }
    answers
}

async fn append(workspace: &Workspace, from: usize) {
    for number in from..from + 20 {
        let verb = if number % 7 == 6 { "deleted" } else { "changed" };
        let event = NewEvent {
            aggregate_id: format!("t{}", number % 5),
            aggregate_type: "thing".into(),
            event_type: format!("thing.{verb}"),
            payload: [("total", Value::Int(1)), ("n", Value::Int(number as i64))].into_iter().collect(),
            ..NewEvent::default()
        };
        workspace.append_events(vec![event]).await.expect("appended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_answers_as_before() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = engine(&store).await;
    let key = first.first_start(None).await.expect("a workspace").expect("the store is empty").key;
    let workspace = enter(&first, &key).await.expect("a workspace");
    let definition = r#"{"type_name": "thing", "fields": [{"name": "total", "type": "integer", "fold": "sum"}]}"#;
    workspace.define_type(&value(definition), false).await.expect("a type");
    append(&workspace, 0).await;
    let before = answers(&workspace).await;

    // Left while what follows the log may stand anywhere.
    let abrupt = enter(&engine(&store).await, &key).await.expect("a workspace");
    assert_eq!(answers(&abrupt).await, before);

    consumed(&workspace).await.expect("it catches up");
    append(&workspace, 20).await;
    let before = answers(&workspace).await;
    first.close().await;

    let orderly = enter(&engine(&store).await, &key).await.expect("a workspace");
    assert_eq!(answers(&orderly).await, before);
    assert_eq!(orderly.position(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_changed_is_kept() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = engine(&store).await;
    let key = first.first_start(None).await.expect("a workspace").expect("the store is empty").key;
    let workspace = enter(&first, &key).await.expect("a workspace");
    let definition = |fold: &str| {
        value(&format!(
            r#"{{"type_name": "thing", "fields": [{{"name": "total", "type": "integer", "fold": "{fold}"}}]}}"#
        ))
    };
    workspace.define_type(&definition("sum"), false).await.expect("a type");
    append(&workspace, 0).await;
    // The snapshots are those of the first definition.
    consumed(&workspace).await.expect("it catches up");
    workspace.define_type(&definition("last"), true).await.expect("a forced change");
    let before = answers(&workspace).await;
    assert!(before.iter().any(|rows| rows.contains("\"total\":1")), "{before:?}");
    let again = enter(&engine(&store).await, &key).await.expect("a workspace");
    assert_eq!(answers(&again).await, before);
}
