//! Tests that a reopened store returns the same results as before, regardless of the positions that the followers of
//! the log have reached.

use foldwork_engine::Store;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::pipeline::SourceChoice;
use foldwork_engine::workspace::query::Query;
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::consumed;

/// The pipelines whose results must not change.
const PIPELINES: [&str; 4] = [
    r#"[]"#,
    r#"[{"$fold": {}}]"#,
    r#"[{"$fold": {"deleted": true}}]"#,
    r#"[{"$match": {"aggregate_type": "thing"}}, {"$fold": {}}, {"$match": {"total": {"$gt": 2}}}, {"$sort": {"total": -1}}]"#,
];

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Returns the results of all pipelines from all sources.
async fn answers(workspace: &Handles) -> Vec<String> {
    let mut answers = Vec::new();
    for pipeline in PIPELINES {
        for source in [SourceChoice::Resident, SourceChoice::Nodes, SourceChoice::Log] {
            let query = Query { source, ..Query::new(value(pipeline)) };
            let answer = workspace.reader.query(query).await.expect("an answer");
            answers.push(serde_json::to_string(&answer.rows).expect("rows"));
        }
    }
    answers
}

async fn append(workspace: &Handles, from: usize) {
    for number in from..from + 20 {
        let verb = if number % 7 == 6 { "deleted" } else { "changed" };
        let event = NewEvent {
            aggregate_id: format!("t{}", number % 5),
            aggregate_type: "thing".into(),
            event_type: format!("thing.{verb}"),
            payload: [("total", Value::Int(1)), ("n", Value::Int(number as i64))].into_iter().collect(),
            restore: true,
            ..NewEvent::default()
        };
        workspace.writer.append_events(vec![event]).await.expect("appended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reopened_store_returns_the_same_results() {
    let store = Store::connect("mem://").await.expect("a store");
    let running = engine(store.share()).await;
    let (workspace, key) = first(&running).await.expect("a workspace");
    let definition = r#"{"type_name": "thing", "fields": [{"name": "total", "type": "integer", "fold": "sum"}]}"#;
    workspace.writer.define_type(&value(definition), false).await.expect("a type");
    append(&workspace, 0).await;
    let before = answers(&workspace).await;

    // Opens the store again while the followers of the first engine may be at any position.
    let abrupt = enter(&engine(store.share()).await, &key).await.expect("a workspace");
    assert_eq!(answers(&abrupt).await, before);

    consumed(&workspace).await.expect("the followers catch up");
    append(&workspace, 20).await;
    let before = answers(&workspace).await;
    running.close().await;

    let orderly = enter(&engine(store.share()).await, &key).await.expect("a workspace");
    assert_eq!(answers(&orderly).await, before);
    assert_eq!(orderly.reader.position(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_fold_survives_a_restart() {
    let store = Store::connect("mem://").await.expect("a store");
    let running = engine(store.share()).await;
    let (workspace, key) = first(&running).await.expect("a workspace");
    let definition = |fold: &str| {
        value(&format!(
            r#"{{"type_name": "thing", "fields": [{{"name": "total", "type": "integer", "fold": "{fold}"}}]}}"#
        ))
    };
    workspace.writer.define_type(&definition("sum"), false).await.expect("a type");
    append(&workspace, 0).await;
    // Waits until the snapshots have the states of the first definition.
    consumed(&workspace).await.expect("the followers catch up");
    workspace.writer.define_type(&definition("last"), true).await.expect("a forced change");
    let before = answers(&workspace).await;
    assert!(before.iter().any(|rows| rows.contains("\"total\":1")), "{before:?}");
    let again = enter(&engine(store.share()).await, &key).await.expect("a workspace");
    assert_eq!(answers(&again).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_returns_the_same_rows_from_the_log_as_from_memory() {
    let store = Store::connect("mem://").await.expect("a store");
    let running = engine(store.share()).await;
    let (workspace, key) = first(&running).await.expect("a workspace");
    for page in 0..4 {
        let event = |number: i64| NewEvent {
            aggregate_id: format!("a{}", number % 37),
            aggregate_type: "article".into(),
            event_type: if number % 41 == 40 { "article.deleted".into() } else { "article.changed".into() },
            payload: [("n", Value::Int(number)), ("body", Value::from("long\n".repeat(50)))].into_iter().collect(),
            // The times are not in the order of the log.
            occurred_at: Some((number * 7919) % 1_000),
            restore: true,
            ..NewEvent::default()
        };
        workspace.writer.append_events((page * 300..page * 300 + 300).map(event).collect()).await.expect("appended");
    }
    let pipelines = [
        r#"[{"$fold": {"at": "1970-01-01T00:00:00.500Z"}}, {"$group": {"_id": "$n"}}]"#,
        r#"[{"$fold": {"at": "1970-01-01T00:00:00.100Z"}}]"#,
        r#"[{"$fold": {"version": 9, "deleted": true}}, {"$project": {"n": 1, "_version": 1}}]"#,
        r#"[{"$match": {"aggregate_type": "article"}}, {"$fold": {"position": 777}}, {"$sort": {"n": 1}}]"#,
        r#"[{"$match": {"payload.n": {"$gte": 500}}}, {"$fold": {}}, {"$project": {"n": 1}}]"#,
        r#"[{"$match": {"aggregate_type": "other"}}, {"$fold": {"position": 1100}}]"#,
        r#"[{"$match": {"payload.n": {"$gte": 1100}}}, {"$project": {"_id": 1, "version": 1}}]"#,
        r#"[{"$match": {"version": {"$lt": 5}}}, {"$group": {"_id": "$event_type", "n": {"$sum": "$position"}}}]"#,
        r#"[{"$skip": 900}, {"$limit": 3}]"#,
    ];
    let rows = async |workspace: &Handles, pipeline: &str| {
        workspace.reader.query(Query::new(value(pipeline))).await.expect("an answer").rows
    };
    // The first engine has all events in memory, and the second engine has none.
    let second = enter(&engine(store.share()).await, &key).await.expect("a workspace");
    for pipeline in pipelines {
        assert_eq!(rows(&second, pipeline).await, rows(&workspace, pipeline).await, "{pipeline}");
    }
    assert_eq!(rows(&second, pipelines[8]).await.len(), 3);
    assert_eq!(rows(&second, pipelines[5]).await.len(), 0);
}
