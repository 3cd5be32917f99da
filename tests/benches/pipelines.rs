//! Measures pipelines over many folded states in memory: with columns, row by row, and during concurrent appends.
//!
//! Each argument is a number of states.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use foldwork_engine::clock::SystemClock;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::json;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, EngineSettings, Plugins, QueryLimits, Store};
use foldwork_plugins::memory::CountingAllocator;
use foldwork_tests::embedded::first;
use foldwork_tests::handles::Handles;

#[global_allocator]
static ALLOCATOR: CountingAllocator<tikv_jemallocator::Jemalloc> = CountingAllocator(tikv_jemallocator::Jemalloc);

/// The measured pipelines, each with its name.
const PIPELINES: [(&str, &str); 15] = [
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
    (
        "group by a part of a text",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$group":{"_id":{"$substrCP":["$topic",0,7]},"n":{"$sum":1}}}]"#,
    ),
    (
        "sum of a product",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$group":{"_id":"$topic","n":{"$sum":{"$multiply":["$n",2]}}}}]"#,
    ),
    (
        "group of a computed field",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$set":{"last":{"$mod":["$n",10]}}},{"$group":{"_id":"$last","n":{"$sum":1}}}]"#,
    ),
    (
        "best of each group",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$group":{"_id":"$topic","best":{"$top":{"sortBy":{"n":-1},"output":"$slug"}}}}]"#,
    ),
    (
        "running sum by topic",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$setWindowFields":{"partitionBy":"$topic","sortBy":{"n":1},"output":{"x":{"$sum":"$n","window":{"documents":["unbounded","current"]}}}}},{"$group":{"_id":null,"x":{"$sum":"$x"}}}]"#,
    ),
    (
        "moving average of 100 rows",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$setWindowFields":{"sortBy":{"n":1},"output":{"x":{"$avg":"$n","window":{"documents":[-99,0]}}}}},{"$group":{"_id":null,"x":{"$sum":"$x"}}}]"#,
    ),
    (
        "rank in each topic",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$setWindowFields":{"partitionBy":"$topic","sortBy":{"n":-1},"output":{"x":{"$rank":{}}}}},{"$group":{"_id":null,"x":{"$sum":"$x"}}}]"#,
    ),
    (
        "median of 1,000 rows",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$setWindowFields":{"sortBy":{"slug":1},"output":{"x":{"$median":{"input":"$n","method":"approximate"},"window":{"documents":[-999,0]}}}}},{"$group":{"_id":null,"x":{"$sum":"$x"}}}]"#,
    ),
    (
        "sum over 7 days",
        r#"[{"$match":{"aggregate_type":"article"}},{"$fold":{}},{"$set":{"at":{"$dateAdd":{"startDate":{"$date":"2026-01-01T00:00:00Z"},"unit":"minute","amount":"$n"}}}},{"$setWindowFields":{"sortBy":{"at":1},"output":{"x":{"$sum":"$n","window":{"range":[-7,0],"unit":"day"}}}}},{"$group":{"_id":null,"x":{"$sum":"$x"}}}]"#,
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

/// The limit on the memory of a pipeline, in bytes. A window keeps all its rows, which need more than the default.
const PIPELINE_BYTES: usize = 1 << 30;

async fn open(states: usize) -> Handles {
    let store = Store::connect("mem://").await.expect("a store");
    let queries = QueryLimits { workspace_bytes: PIPELINE_BYTES, key_bytes: PIPELINE_BYTES, ..QueryLimits::default() };
    let settings = EngineSettings { pipeline_bytes: PIPELINE_BYTES, queries, ..EngineSettings::default() };
    let plugins = Plugins::none().expect("no plugins");
    let engine = Engine::open(store, Arc::new(SystemClock), settings, plugins).await.expect("an engine");
    let (workspace, _) = first(&engine).await.expect("a workspace");
    for from in (0..states).step_by(1_000) {
        let events = (from..states.min(from + 1_000)).map(event);
        workspace.writer.append_events(events.collect()).await.expect("appended");
    }
    workspace
}

/// The number of runs of each pipeline in the measurement with columns and without appends. The median is reported.
const RUNS: usize = 9;
/// The number of events that are appended per second while the queries run.
const APPENDS: f64 = 5_000.0;
/// The number of events per append.
const BATCH: usize = 50;

/// Returns the median time of a query in milliseconds, and its number of rows.
async fn measure(workspace: &Handles, pipeline: &Value, columns: bool, runs: usize) -> (f64, usize) {
    let mut times = Vec::new();
    let mut rows = 0;
    for _ in 0..runs {
        let began = Instant::now();
        let query = Query { columns, ..Query::new(pipeline.clone()) };
        rows = workspace.reader.query(query).await.expect("an answer").rows.len();
        times.push(began.elapsed());
    }
    times.sort();
    (times[runs / 2].as_secs_f64() * 1e3, rows)
}

/// Appends events that create states and events that change existing states, until `stop` is set. Returns the number of
/// appended events per second.
async fn append(workspace: Handles, states: usize, stop: Arc<AtomicBool>) -> f64 {
    let began = Instant::now();
    let mut appended = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * APPENDS) as usize;
        while appended < due && !stop.load(Ordering::Relaxed) {
            let events = (appended..appended + BATCH).map(|number| match number % 2 {
                0 => event(states + number),
                _ => NewEvent { event_type: "article.changed".into(), ..event(number * 7_919 % states) },
            });
            workspace.writer.append_events(events.collect()).await.expect("appended");
            appended += BATCH;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    appended as f64 / began.elapsed().as_secs_f64()
}

/// Prints the number of states, the appends per second, and one line per pipeline with these values, separated by tabs:
/// the name, the milliseconds with columns, the milliseconds row by row, the milliseconds during appends, the
/// milliseconds of the first query, and the number of rows. Windows are not measured during appends.
async fn run(states: usize) {
    let workspace = open(states).await;
    let pipelines = PIPELINES.map(|(name, text)| (name, json::parse(text.as_bytes()).expect("a pipeline")));
    let mut lines = Vec::new();
    for (name, pipeline) in &pipelines {
        let (first, _) = measure(&workspace, pipeline, true, 1).await;
        let (columns, rows) = measure(&workspace, pipeline, true, RUNS).await;
        let (by_rows, same) = measure(&workspace, pipeline, false, 3).await;
        assert_eq!(rows, same, "{name}");
        lines.push((name, columns, by_rows, first, rows));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let appending = tokio::spawn(append(workspace.clone(), states, stop.clone()));
    let mut busy = Vec::new();
    for (_, pipeline) in &pipelines {
        // A window reads all states, whose number grows with the appends.
        let is_window = json::text(pipeline).contains("$setWindowFields");
        busy.push(match is_window {
            true => f64::NAN,
            false => measure(&workspace, pipeline, true, 4 * RUNS).await.0,
        });
    }
    stop.store(true, Ordering::Relaxed);
    let rate = appending.await.expect("appends");
    println!("states\t{states}\nappends/s\t{rate:.0}");
    for ((name, columns, by_rows, first, rows), busy) in lines.into_iter().zip(busy) {
        println!("{name}\t{columns:.3}\t{by_rows:.3}\t{busy:.3}\t{first:.3}\t{rows}");
    }
}

fn main() {
    let mut sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![200_000, 1_000_000];
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for states in sizes {
        runtime.block_on(run(states));
    }
}
