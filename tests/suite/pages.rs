//! Pages of answers: those of rows that are kept, and those of rows that are read again after the log went on.

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::query::page::{Continuation, Paging};
use foldwork_engine::workspace::query::{Answer, Query};
use foldwork_tests::entered::Entered;
use foldwork_tests::server::Server;

const PIPELINES: [&str; 9] = [
    r#"[{"$fold": {}}]"#,
    r#"[{"$match": {"aggregate_id": {"$in": ["n3", "n5", "n8", "n9", "none"]}}}, {"$fold": {}}]"#,
    r#"[{"$fold": {}}, {"$match": {"n": {"$gt": 4}}}, {"$project": {"n": 1, "now": "$$NOW", "luck": {"$rand": {}}}}]"#,
    r#"[{"$fold": {}}, {"$match": {"$expr": {"$lt": [{"$rand": {}}, 0.5]}, "n": {"$gt": 2}}}, {"$project": {"n": 1}}]"#,
    r#"[{"$fold": {}}, {"$sample": {"size": 12}}, {"$project": {"n": 1}}]"#,
    r#"[{"$fold": {}}, {"$group": {"_id": {"$mod": ["$n", 5]}, "all": {"$push": "$_id"}, "n": {"$sum": "$n"}}}]"#,
    r#"[{"$fold": {"deleted": true}}, {"$sort": {"n": -1}}, {"$project": {"n": 1, "_version": 1}}]"#,
    r#"[{"$match": {"version": {"$gte": 1}}}, {"$project": {"aggregate_id": 1, "payload": 1}}]"#,
    r#"[{"$fold": {}}, {"$lookup": {"from": "article", "localField": "n", "foreignField": "n", "as": "same"}}]"#,
];

async fn append(workspace: &Entered, id: &str, verb: &str, n: i64) {
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

async fn ask(workspace: &Entered, pipeline: &str, after: Option<Continuation>) -> Answer {
    let pipeline = json::parse(pipeline.as_bytes()).expect("JSON");
    let page = Some(Paging { limit: Some(3), after });
    workspace.reader.query(Query { page, ..Query::new(pipeline) }).await.expect("an answer")
}

async fn rest(workspace: &Entered, pipeline: &str, mut after: Option<Continuation>) -> Vec<Value> {
    let mut rows = Vec::new();
    while after.is_some() {
        let answer = ask(workspace, pipeline, after).await;
        rows.extend(answer.rows);
        after = answer.next;
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_of_the_moment_of_the_first() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    for n in 0..20 {
        append(&workspace, &format!("n{n}"), "created", n).await;
    }
    append(&workspace, "n1", "deleted", 0).await;
    let mut firsts = Vec::new();
    for pipeline in PIPELINES {
        let first = ask(&workspace, pipeline, None).await;
        assert!(first.next.is_some(), "{pipeline} has more than a page");
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
