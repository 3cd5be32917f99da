//! Pipelines over many folded states in memory: how long each takes.

use std::sync::Arc;
use std::time::Instant;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, Plugins, Settings, Store, Workspace};
use foldwork_plugins::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// The pipelines, by what they show.
const PIPELINES: [(&str, &str); 6] = [
    (
        "group with sum",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$group":{"_id":"$topic","n":{"$sum":"$n"}}}]"#,
    ),
    ("top 20 by a field", r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$sort":{"n":-1}},{"$limit":20}]"#),
    ("filter without hit", r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$match":{"n":-1}}]"#),
    (
        "range with projection",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$match":{"n":{"$gte":1000,"$lt":1100}}},{"$project":{"title":1,"n":1}}]"#,
    ),
    (
        "lookup of 20 rows",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$limit":20},{"$lookup":{"from":"article","localField":"slug","foreignField":"slug","as":"same"}},{"$project":{"slug":1,"count":{"$size":"$same"}}}]"#,
    ),
    (
        "count by tag",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$unwind":"$tags"},{"$group":{"_id":"$tags","n":{"$sum":1}}}]"#,
    ),
];

fn event(number: usize) -> NewEvent {
    let tags: Vec<Value> = (0..3).map(|tag| Value::from(format!("tag-{}", (number * 7 + tag * 13) % 40))).collect();
    let payload: Object = [
        ("topic", Value::from(format!("topic-{}", number % 20))),
        ("title", Value::from(format!("Title {number}"))),
        ("body", Value::from("x".repeat(216))),
        ("slug", Value::from(format!("slug-{number}"))),
        ("n", Value::Int((number * 7_919 % 200_003) as i64)),
        ("tags", Value::from(tags)),
    ]
    .into_iter()
    .collect();
    NewEvent {
        aggregate_id: format!("a-{number}"),
        aggregate_type: "article".into(),
        event_type: "article.created".into(),
        payload,
        ..NewEvent::default()
    }
}

async fn open(states: usize) -> Workspace {
    let store = Store::connect("mem://").await.expect("a store");
    let engine = Engine::open(store, Arc::new(SystemClock), Settings::default(), Plugins::none().expect("no plugins"))
        .await
        .expect("an engine");
    let first = engine.first_start(None).await.expect("a workspace").expect("new");
    let caller = engine.authenticate(&first.key).await.expect("a caller");
    let scopes = caller.scopes().to_vec();
    let workspace = engine.enter(caller, &scopes).await.expect("a workspace");
    for from in (0..states).step_by(1_000) {
        workspace.append_events((from..from + 1_000).map(event).collect()).await.expect("appended");
    }
    workspace
}

fn main() {
    let states = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(200_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let workspace = open(states).await;
        for (name, pipeline) in PIPELINES {
            let pipeline = json::parse(pipeline.as_bytes()).expect("a pipeline");
            let mut times = Vec::new();
            let mut rows = 0;
            for _ in 0..7 {
                let began = Instant::now();
                rows = workspace.query(Query::new(pipeline.clone())).await.expect("an answer").rows.len();
                times.push(began.elapsed());
            }
            times.sort();
            println!("{states} states, {name}: {:.1} ms, {rows} rows", times[3].as_secs_f64() * 1e3);
        }
    });
}
