//! Tests that a query reads no more of the log than its result needs.

use std::sync::Arc;

use foldwork_engine::model::event::{NewEvent, StreamExpectation};
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::feed::Delivery;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::agents::NewAgent;
use foldwork_engine::workspace::articles::{ArticleChange, NewArticle, Perspective};
use foldwork_engine::workspace::mailbox::tasks::NewTask;
use foldwork_engine::workspace::query::{Query, QueryOutput};
use foldwork_engine::workspace::recent_deliveries::DeliverySelection;
use foldwork_engine::{ContentReader, Error, Store};
use foldwork_tests::embedded;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::{Server, worked};
use serde_json::json;

const EVENTS: usize = 3_000;

fn event(id: &str, text: &str) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: "article.noted".into(),
        payload: Object::from_iter([("text", text)]),
        ..NewEvent::default()
    }
}

pub async fn append(workspace: &Handles, ids: &[&str], each: usize, text: &str) {
    let events: Vec<NewEvent> = (0..each).flat_map(|_| ids.iter().map(|id| event(id, text))).collect();
    for part in events.chunks(500) {
        workspace.writer.append_events(part.to_vec()).await.expect("appended");
    }
}

pub async fn ask(workspace: &Handles, pipeline: serde_json::Value) -> Result<QueryOutput, Error> {
    workspace.reader.query(Query::new(Value::from(pipeline))).await
}

/// Returns the rows of a pipeline and the number of events that the query read.
pub async fn read(workspace: &Handles, pipeline: serde_json::Value) -> (Vec<Value>, u64) {
    let before = workspace.reader.events_read();
    let rows = ask(workspace, pipeline).await.expect("an answer").rows;
    (rows, workspace.reader.events_read() - before)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_query_over_streams_reads_a_limited_number_of_events() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    append(&workspace, &["a", "b", "c"], EVENTS / 3, "x").await;
    let one = json!({"$match": {"aggregate_id": "a"}});
    let some = json!({"$match": {"aggregate_id": {"$in": ["c", "a", "none"]}}});
    let show = json!({"$project": {"_id": 0, "aggregate_id": 1, "version": 1}});

    let (rows, events) = read(&workspace, json!([one, {"$limit": 1}, show])).await;
    assert_eq!(rows, [Value::from(json!({"aggregate_id": "a", "version": 1}))]);
    assert_eq!(events, 1);
    let (rows, events) = read(&workspace, json!([some, {"$limit": 4}, show])).await;
    let places: Vec<Value> = [("a", 1), ("c", 1), ("a", 2), ("c", 2)]
        .map(|(id, version)| json!({"aggregate_id": id, "version": version}).into())
        .into();
    assert_eq!(rows, places);
    assert_eq!(events, 4);
    // The limit follows a condition that the store cannot evaluate.
    let odd = json!({"$match": {"$expr": {"$eq": [{"$mod": ["$version", 2]}, 1]}}});
    let (rows, events) = read(&workspace, json!([one, odd, {"$skip": 2}, {"$limit": 2}, show])).await;
    assert_eq!(rows.len(), 2);
    assert!(events <= 200, "{events} events were read");
    // The query reads only the part of the stream that the condition selects.
    let late = json!({"$match": {"aggregate_id": "b", "position": {"$gt": EVENTS - 30}}});
    let (rows, events) = read(&workspace, json!([late, show])).await;
    assert_eq!(rows.len(), 10);
    assert!(events <= 60, "{events} events were read");
    // Without a limit the whole stream is read.
    assert_eq!(read(&workspace, json!([one, {"$count": "n"}])).await.0, [json!({"n": EVENTS / 3}).into()]);
    let (rows, _) = read(&workspace, json!([some, show])).await;
    assert_eq!(rows.len(), 2 * EVENTS / 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_a_published_article_reads_no_events() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = embedded::engine(store.share()).await;
    let (workspace, key) = embedded::first(&first).await.expect("a workspace");
    let new = NewArticle { title: "Draft 0".into(), ..NewArticle::default() };
    let id = workspace.writer.create_article(new).await.expect("an article").0.id.clone();
    let change = async |workspace: &Handles, number: usize| {
        let change = ArticleChange { title: Some(format!("Draft {number}")), ..ArticleChange::default() };
        workspace.writer.change_article(id.as_str(), change, StreamExpectation::Any).await.expect("changed");
    };
    let published = async |engine: &Arc<foldwork_engine::Engine>| {
        let caller = engine.authenticate(&key).await.expect("a caller");
        let reader: ContentReader = engine.enter(caller).await.expect("a right");
        let article = reader.article(id.as_str(), Perspective::Published).await.expect("an article");
        article.state.get("title").and_then(Value::as_str).map(str::to_owned)
    };
    for number in 1..=40 {
        change(&workspace, number).await;
    }
    workspace.writer.publish_article(id.as_str(), StreamExpectation::Any).await.expect("published");
    for number in 41..=80 {
        change(&workspace, number).await;
    }
    // The second engine has none of the events in memory.
    let second = embedded::engine(store.share()).await;
    let elsewhere = enter(&second, &key).await.expect("a workspace");
    for (engine, workspace) in [(&first, &workspace), (&second, &elsewhere)] {
        workspace.reader.aggregate(id.as_str(), Default::default()).await.expect("read");
        worked(workspace).await.expect("the plugins catch up");
        let before = workspace.reader.events_read();
        for _ in 0..3 {
            assert_eq!(published(engine).await.as_deref(), Some("Draft 40"));
        }
        assert_eq!(workspace.reader.events_read(), before);
    }
    workspace.writer.publish_article(id.as_str(), StreamExpectation::Any).await.expect("published");
    change(&workspace, 81).await;
    assert_eq!(published(&first).await.as_deref(), Some("Draft 80"));
    assert_eq!(published(&second).await.as_deref(), Some("Draft 80"));
    workspace.writer.unpublish_article(id.as_str(), StreamExpectation::Any).await.expect("unpublished");
    change(&workspace, 82).await;
    workspace.writer.publish_article(id.as_str(), StreamExpectation::Any).await.expect("published");
    change(&workspace, 83).await;
    assert_eq!(published(&second).await.as_deref(), Some("Draft 82"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_for_an_agent_reads_only_the_end_of_its_feed() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = embedded::engine(store.share()).await;
    let (workspace, key) = embedded::first(&first).await.expect("a workspace");
    let new = NewAgent { name: "one".into(), ..NewAgent::default() };
    let agent = workspace.writer.create_agent(new).await.expect("registered").0.agent;
    for number in 0..200 {
        let assignee = Some(Assignee::Agent(agent.id.text()));
        let new = NewTask { title: format!("Task {number}"), assignee, ..NewTask::default() };
        workspace.writer.create_task(new).await.expect("made");
    }
    // The second engine has none of the feed in memory.
    let second = embedded::engine(store.share()).await;
    let elsewhere = enter(&second, &key).await.expect("a workspace");
    worked(&elsewhere).await.expect("the plugins catch up");
    let listener = second.listen(&key).await.expect("a right");
    let agent = listener.agent(agent.id.as_str()).await.expect("the agent");
    let titles = async |again: DeliverySelection| {
        let deliveries = listener.acknowledged_deliveries(&agent, again).await.expect("deliveries");
        let title = |delivery: &Delivery| delivery.task.state.get("title").and_then(Value::as_str).map(str::to_owned);
        deliveries.iter().filter_map(title).collect::<Vec<_>>()
    };
    let all = DeliverySelection { after: agent.first_position, until: u64::MAX, since: None, most: 100 };
    let before = elsewhere.reader.events_read();
    let some = titles(DeliverySelection { most: 3, since: Some(0), ..all }).await;
    assert_eq!(some, ["Task 197", "Task 198", "Task 199"]);
    let read = elsewhere.reader.events_read() - before;
    assert!(read <= 130, "{read} events were read");
    let before = elsewhere.reader.events_read();
    assert_eq!(titles(DeliverySelection { since: Some(i64::MAX), ..all }).await, [""; 0]);
    let read = elsewhere.reader.events_read() - before;
    assert!(read <= 130, "{read} events were read");
    let every = titles(all).await;
    assert_eq!((every.len(), every.first().map(String::as_str)), (100, Some("Task 100")));
    let position = agent.first_position + 10;
    assert_eq!(titles(DeliverySelection { until: position, ..all }).await.len(), 10);
    assert_eq!(titles(DeliverySelection { after: position, until: position + 4, ..all }).await.len(), 4);
}
