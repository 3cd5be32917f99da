//! Tests random pipelines over random states: each source returns the same rows, with and without columns, and no JSON
//! causes an internal error.
//!
//! `PROPTEST_CASES` sets the number of cases. A failing case is shrunk and shown.

mod model;
mod pipelines;
mod previews;
mod states;
mod windows;

use foldwork_engine::Error;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::pipeline::SourceChoice;
use foldwork_engine::workspace::query::Query;
use foldwork_tests::handles::Handles;
use foldwork_tests::server::Server;
use poem::Request;
use poem::http::Method;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::{Handle, Runtime};

/// The options of a query: its source, whether optimizer rules apply, and whether columns are used.
type Execution = (SourceChoice, bool, bool);

const EXECUTIONS: [Execution; 5] = [
    (SourceChoice::Log, false, false),
    (SourceChoice::Resident, false, false),
    (SourceChoice::Auto, true, false),
    (SourceChoice::Auto, true, true),
    (SourceChoice::Nodes, true, true),
];

fn config(cases: u32) -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() }
}

/// A sequence of appends, each with the queries to run after it.
type Story = Vec<(Vec<NewEvent>, Vec<Value>)>;

fn story() -> impl Strategy<Value = Story> {
    let queries = prop::collection::vec(pipelines::pipeline(), 1..8);
    prop::collection::vec((prop::collection::vec(states::event(), 1..24), queries), 1..4)
}

#[test]
fn every_execution_strategy_returns_the_same_rows() {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(Server::start()).expect("a server");
    let handle = runtime.handle();
    let mut runner = TestRunner::new(config(16));
    let number = std::cell::Cell::new(0);
    let result = runner.run(&story(), |story| {
        number.set(number.get() + 1);
        let name = format!("w{}", number.get());
        handle.block_on(run_story(&server, &name, story))
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Runs a story in a new workspace, and compares the results of each query.
async fn run_story(server: &Server, name: &str, story: Story) -> Result<(), TestCaseError> {
    let (_, key) = server.engine.provision(name, None).await.map_err(failed)?;
    let workspace = foldwork_tests::handles::enter(&server.engine, &key).await.map_err(failed)?;
    for definition in states::TYPES {
        let definition = serde_json::from_str(definition).map_err(failed)?;
        workspace.writer.define_type(&definition, false).await.map_err(failed)?;
    }
    for (events, pipelines) in story {
        workspace.writer.append_events(events).await.map_err(failed)?;
        for pipeline in pipelines {
            compare(&workspace, &pipeline, &EXECUTIONS).await?;
        }
    }
    Ok(())
}

/// Checks that a query returns the same rows or the same error in each of the `executions`. Also checks the previews of
/// the query, and that moving filters does not change the rows.
async fn compare(workspace: &Handles, pipeline: &Value, executions: &[Execution]) -> Result<(), TestCaseError> {
    let mut first: Option<String> = None;
    for &(source, push_down, columns) in executions {
        let query = Query { source, push_down, columns, ..Query::new(pipeline.clone()) };
        let answer = answered(workspace, query).await?.unwrap_or_else(|error| error);
        match &first {
            None => first = Some(answer),
            Some(first) => prop_assert_eq!(
                first,
                &answer,
                "{} from {:?}, rules {}, columns {}",
                json::text(pipeline),
                source,
                push_down,
                columns
            ),
        }
    }
    let moved = first.unwrap_or_default();
    previews::compare(workspace, pipeline, &moved).await?;
    // Compares with a pipeline in which `$skip: 0` prevents the optimizer from moving filters. Moving filters must not
    // change the rows.
    let mut stages = Vec::new();
    for stage in pipeline.as_array().unwrap_or_default() {
        let barrier = stages.iter().any(is_fold).then(|| Object::from_iter([("$skip", Value::Int(0))]).into());
        stages.extend(barrier);
        stages.push(stage.clone());
    }
    let query = Query { source: executions[0].0, push_down: false, columns: false, ..Query::new(stages.into()) };
    if let Ok(unmoved) = answered(workspace, query).await? {
        prop_assert_eq!(unmoved, moved, "{} with its filters moved", json::text(pipeline));
    }
    Ok(())
}

fn is_fold(stage: &Value) -> bool {
    stage.get("$fold").is_some()
}

/// Returns the rows of a query, or its pipeline error as a text. Fails the test on any other error.
async fn answered(workspace: &Handles, query: Query) -> Result<Result<String, String>, TestCaseError> {
    let pipeline = query.pipeline.clone();
    match workspace.reader.query(query).await {
        Ok(answer) => Ok(Ok(answer.rows.iter().map(|row| json::text(row) + "\n").collect())),
        Err(Error::Pipeline(error)) => Ok(Err(format!("{:?} in {:?}: {}", error.code, error.stage, error.message))),
        Err(error) => Err(TestCaseError::fail(format!("{}: {error}", json::text(&pipeline)))),
    }
}

/// The number of aggregates: more than fit into one segment.
const AGGREGATES: usize = 4_500;
const LARGE_PIPELINES: [&str; 24] = [
    r#"{"$group": {"_id": "$k", "n": {"$sum": "$n"}, "a": {"$avg": "$x"}, "m": {"$max": "$n"}, "l": {"$last": "$s"}}}"#,
    r#"{"$group": {"_id": {"k": "$k", "x": "$x"}, "n": {"$count": {}}}}, {"$sort": {"n": -1, "_id": 1}}, {"$limit": 30}"#,
    r#"{"$sort": {"n": -1}}, {"$limit": 20}, {"$project": {"n": 1}}"#,
    r#"{"$sort": {"s": 1, "n": -1}}, {"$skip": 4090}, {"$limit": 20}, {"$project": {"s": 1}}"#,
    r#"{"$sort": {"x": -1}}, {"$project": {"x": 1}}, {"$limit": 25}"#,
    r#"{"$group": {"_id": {"k": "$k", "x": "$x"}, "f": {"$first": "$x"}}}"#,
    r#"{"$unwind": "$t"}, {"$group": {"_id": {"t": "$t", "x": "$x"}, "m": {"$min": "$x"}}}"#,
    r#"{"$sort": {"x": -1, "k": 1}}, {"$limit": 25}, {"$project": {"x": 1}}"#,
    r#"{"$sort": {"x": 1, "t": -1}}, {"$limit": 4200}, {"$group": {"_id": null, "x": {"$push": "$s"}}}"#,
    r#"{"$sort": {"t": 1}}, {"$limit": 25}, {"$project": {"t": 1}}"#,
    r#"{"$sort": {"_created_at": -1, "k": 1}}, {"$limit": 5}, {"$project": {"_id": 1}}"#,
    r#"{"$match": {"n": {"$gte": 100, "$lt": 120}}}, {"$project": {"n": 1, "k": 1}}"#,
    r#"{"$match": {"$or": [{"s": "s-4400"}, {"t": "t-3", "k": {"$ne": "k-1"}}]}}, {"$count": "n"}"#,
    r#"{"$match": {"s": {"$regex": "^s-44"}}}, {"$count": "n"}"#,
    r#"{"$unwind": "$t"}, {"$sortByCount": "$t"}"#,
    r#"{"$unwind": {"path": "$t", "preserveNullAndEmptyArrays": true}}, {"$group": {"_id": "$t", "k": {"$addToSet": "$k"}}}"#,
    r#"{"$group": {"_id": {"$toUpper": "$k"}, "n": {"$sum": {"$multiply": ["$n", 2]}}}}"#,
    r#"{"$group": {"_id": {"k": {"$substrCP": ["$k", 2, 1]}, "x": {"$type": "$x"}}, "t": {"$top": {"sortBy": {"n": -1}, "output": "$s"}}}}"#,
    r#"{"$set": {"z": {"$concat": ["$k", "-", {"$toString": "$x"}]}}}, {"$group": {"_id": "$z", "n": {"$sum": 1}}}"#,
    r#"{"$project": {"z": {"$mod": ["$n", 7]}, "s": 1}}, {"$group": {"_id": "$z", "s": {"$maxN": {"n": 3, "input": "$s"}}}}"#,
    r#"{"$group": {"_id": "$k", "s": {"$sum": {"$cond": [{"$gt": ["$n", 4400]}, {"$divide": ["$n", 0]}, 1]}}}}"#,
    r#"{"$unwind": "$t"}, {"$group": {"_id": {"$toUpper": "$t"}, "n": {"$sum": {"$strLenCP": "$s"}}}}"#,
    r#"{"$sortByCount": {"$toLower": "$k"}}"#,
    r#"{"$limit": 30}, {"$lookup": {"from": "other", "localField": "s", "foreignField": "s", "as": "j"}}, {"$project": {"j.n": 1}}"#,
];

#[tokio::test(flavor = "multi_thread")]
async fn queries_over_many_segments_return_the_same_rows_with_and_without_columns() {
    let server = Server::start().await.expect("a server");
    let workspace = server.workspace("owner").await.expect("a workspace");
    workspace
        .writer
        .define_type(&serde_json::from_str(states::TYPES[1]).expect("a type"), false)
        .await
        .expect("defined");
    for round in 0..2 {
        for from in (0..AGGREGATES).step_by(500) {
            // The second round changes some of the states after columns were built.
            let events = (from..from + 500).filter(|number| round == 0 || number % 9 == 0);
            let events: Vec<_> = events.map(|number| states::numbered(number, round)).collect();
            workspace.writer.append_events(events).await.expect("appended");
        }
        for stages in LARGE_PIPELINES {
            let pipeline = format!(r#"[{{"$match": {{"aggregate_type": "other"}}}}, {{"$fold": {{}}}}, {stages}]"#);
            let pipeline = serde_json::from_str(&pipeline).expect("a pipeline");
            compare(&workspace, &pipeline, &EXECUTIONS[2..4]).await.expect("the same rows");
        }
    }
}

#[test]
fn a_query_with_any_json_returns_rows_or_an_error() {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(Server::start()).expect("a server");
    let workspace = runtime.block_on(server.workspace("owner")).expect("a workspace");
    let event = NewEvent {
        aggregate_id: "a".into(),
        aggregate_type: "article".into(),
        event_type: "article.created".into(),
        payload: [("title", "one")].into_iter().collect(),
        ..NewEvent::default()
    };
    runtime.block_on(workspace.writer.append_events(vec![event])).expect("appended");
    let result = TestRunner::new(config(256))
        .run(&pipelines::anything(), |pipeline| send_query(runtime.handle(), &server, &pipeline));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

fn send_query(handle: &Handle, server: &Server, pipeline: &serde_json::Value) -> Result<(), TestCaseError> {
    let body = serde_json::json!({ "pipeline": pipeline }).to_string();
    let request = Request::builder()
        .method(Method::POST)
        .uri_str("/api/v1/aggregates/query")
        .header("authorization", format!("Bearer {}", server.key("owner").unwrap_or_default()))
        .content_type("application/json")
        .body(body.clone());
    let status = handle.block_on(server.call(request)).status().as_u16();
    prop_assert!(matches!(status, 200 | 400), "status {} for {}", status, body);
    Ok(())
}

fn failed(reason: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(reason.to_string())
}
