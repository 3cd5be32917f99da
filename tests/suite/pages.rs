//! Tests pages of query results: later pages show the state at the time of the first page, even if they are computed
//! after the log has grown.

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::query::page::{Continuation, PageRequest};
use foldwork_engine::workspace::query::{Query, QueryOutput};
use foldwork_server::Config;
use foldwork_server::config::DataSize;
use foldwork_tests::handles::Handles;
use foldwork_tests::server::{Server, Setup, worked};

const PIPELINES: [&str; 11] = [
    r#"[{"$fold": {}}]"#,
    r#"[{"$match": {"aggregate_id": {"$in": ["n3", "n5", "n8", "n9", "none"]}}}, {"$fold": {}}]"#,
    r#"[{"$fold": {}}, {"$match": {"n": {"$gt": 4}}}, {"$project": {"n": 1, "now": "$$NOW", "luck": {"$rand": {}}}}]"#,
    r#"[{"$fold": {}}, {"$match": {"$expr": {"$lt": [{"$rand": {}}, 0.5]}, "n": {"$gt": 2}}}, {"$project": {"n": 1}}]"#,
    r#"[{"$fold": {}}, {"$sample": {"size": 12}}, {"$project": {"n": 1}}]"#,
    r#"[{"$fold": {}}, {"$group": {"_id": {"$mod": ["$n", 5]}, "all": {"$push": "$_id"}, "n": {"$sum": "$n"}}}]"#,
    r#"[{"$fold": {"deleted": true}}, {"$sort": {"n": -1}}, {"$project": {"n": 1, "_version": 1}}]"#,
    r#"[{"$match": {"version": {"$gte": 1}}}, {"$project": {"aggregate_id": 1, "payload": 1}}]"#,
    r#"[{"$fold": {}}, {"$lookup": {"from": "article", "localField": "n", "foreignField": "n", "as": "same"}}]"#,
    r#"[{"$fold": {}}, {"$match": {"n": {"$gte": 2}}}, {"$limit": 7}]"#,
    r#"[{"$fold": {}}, {"$lookup": {"from": "article", "let": {"n": "$n"}, "as": "next", "pipeline": [
        {"$match": {"$expr": {"$gt": ["$n", "$$n"]}}}, {"$limit": 2},
        {"$lookup": {"from": "article", "localField": "n", "foreignField": "n", "as": "same"}}]}}]"#,
];

async fn append(workspace: &Handles, id: &str, verb: &str, n: i64) {
    let payload = Object::from_iter([("title", Value::from("a note")), ("n", Value::Int(n))]);
    let event = NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: format!("article.{verb}"),
        payload: if verb == "deleted" { Object::new() } else { payload },
        ..NewEvent::default()
    };
    workspace.writer.append_events(vec![event]).await.expect("appended");
}

async fn ask(workspace: &Handles, pipeline: &str, after: Option<Continuation>) -> QueryOutput {
    let pipeline = json::parse(pipeline.as_bytes()).expect("JSON");
    let page = Some(PageRequest { limit: Some(3), after });
    workspace.reader.query(Query { page, ..Query::new(pipeline) }).await.expect("an answer")
}

async fn rest(workspace: &Handles, pipeline: &str, mut after: Option<Continuation>) -> Vec<Value> {
    let mut rows = Vec::new();
    while after.is_some() {
        let answer = ask(workspace, pipeline, after).await;
        rows.extend(answer.rows);
        after = answer.next;
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn later_pages_show_the_data_as_of_the_first_page() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    for n in 0..20 {
        append(&workspace, &format!("n{n}"), "created", n).await;
    }
    append(&workspace, "n1", "deleted", 0).await;
    let mut firsts = Vec::new();
    for pipeline in PIPELINES {
        let first = ask(&workspace, pipeline, None).await;
        assert!(first.next.is_some(), "{pipeline} has only one page");
        firsts.push((pipeline, first.next, rest(&workspace, pipeline, first.next).await));
    }
    for n in [3, 5, 7, 25] {
        append(&workspace, &format!("n{n}"), "revised", 100 + n).await;
    }
    append(&workspace, "n8", "deleted", 0).await;
    for minutes in [0, 10] {
        server.clock.advance(minutes * 60_000);
        for (pipeline, after, rows) in &firsts {
            assert!(!rows.is_empty());
            assert_eq!(rest(&workspace, pipeline, *after).await, *rows, "{pipeline} after {minutes} minutes");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_computation_of_a_later_page_keeps_only_fields_that_the_pipeline_reads() {
    let mut config = Config::default();
    config.pipeline.memory = DataSize(1 << 20);
    let server = Server::start_with(&config).await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let event = |number: usize, verb: &str| NewEvent {
        aggregate_id: format!("n{number}"),
        aggregate_type: "article".into(),
        event_type: format!("article.{verb}"),
        payload: Object::from_iter([("title", Value::from("long ".repeat(2_000))), ("n", Value::from(number as i64))]),
        ..NewEvent::default()
    };
    let all = |verb: &str| (0..200).map(|number| event(number, verb)).collect();
    workspace.writer.append_events(all("created")).await.expect("appended");
    let pipeline = r#"[{"$match": {"aggregate_type": "article"}}, {"$fold": {}}, {"$project": {"n": 1}}]"#;
    let first = ask(&workspace, pipeline, None).await;
    workspace.writer.append_events(all("revised")).await.expect("appended");
    server.clock.advance(600_000);
    assert_eq!(rest(&workspace, pipeline, first.next).await.len(), 197);
}

/// Appends an event to note `number`. Unless `verb` is `deleted`, the event links the note to note `to`. The slug of a
/// note contains its number.
async fn note(workspace: &Handles, number: u32, verb: &str, to: u32) {
    let fields =
        [("title", format!("note {number} to {to}")), ("slug", format!("s{number}")), ("to", format!("s{to}"))];
    let event = NewEvent {
        aggregate_id: format!("n{number}"),
        aggregate_type: "note".into(),
        event_type: format!("note.{verb}"),
        payload: if verb == "deleted" { Object::new() } else { Object::from_iter(fields) },
        ..NewEvent::default()
    };
    workspace.writer.append_events(vec![event]).await.expect("appended");
}

#[tokio::test(flavor = "multi_thread")]
async fn later_pages_show_the_edges_as_of_the_first_page() {
    let server = Setup::with_plugins(vec!["echo".into()]).start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    let fields = r#"[{"name": "title", "type": "string", "label": true}, {"name": "slug", "type": "string"}]"#;
    let definition = format!(r#"{{"type_name": "note", "traits": ["noted"], "fields": {fields}}}"#);
    let definition = serde_json::from_str(&definition).expect("JSON");
    workspace.writer.define_type(&definition, false).await.expect("a type");
    for number in 0..8 {
        note(&workspace, number, "created", (number + 1) % 8).await;
    }
    worked(&workspace).await.expect("the plugin's turn");
    let pipeline = r#"[{"$match": {"aggregate_type": "note"}}, {"$fold": {}},
        {"$lookup": {"edge": "names", "direction": "both", "depth": 2, "as": "near",
            "pipeline": [{"$project": {"title": 1, "_distance": 1}}]}},
        {"$project": {"title": 1, "near": 1}}]"#;
    let first = ask(&workspace, pipeline, None).await;
    let rows = rest(&workspace, pipeline, first.next).await;
    let near = |row: &Value| row.get("near").and_then(Value::as_array).map_or(0, <[Value]>::len);
    assert_eq!(rows.iter().map(near).collect::<Vec<_>>(), [4; 5]);

    // Edges are closed and opened, targets change and are deleted, and a new target is created.
    note(&workspace, 3, "revised", 0).await;
    note(&workspace, 4, "revised", 8).await;
    note(&workspace, 6, "deleted", 0).await;
    note(&workspace, 8, "created", 5).await;
    worked(&workspace).await.expect("the plugin's turn");
    server.clock.advance(600_000);
    assert_eq!(rest(&workspace, pipeline, first.next).await, rows);
    let now = workspace.reader.query(Query::new(json::parse(pipeline.as_bytes()).expect("JSON"))).await;
    assert_ne!(now.expect("an answer").rows[3..], rows, "the current rows equal the earlier rows");
}
