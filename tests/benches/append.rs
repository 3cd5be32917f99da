//! Appends through the engine, on a store on disk: how many a second, from one writer and from many.

use std::sync::Arc;
use std::time::Instant;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::append::Appended;
use foldwork_engine::{Engine, Settings, Store, Workspace};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn event(writer: usize, number: usize) -> NewEvent {
    let text = "x".repeat(216);
    let payload: Object = [
        ("title", Value::from(format!("Title {number}"))),
        ("body", Value::from(text)),
        ("n", Value::Int(number as i64)),
    ]
    .into_iter()
    .collect();
    NewEvent {
        aggregate_id: format!("note-{writer}-{}", number % 200),
        aggregate_type: "article".into(),
        event_type: if number < 200 { "article.created".into() } else { "article.updated".into() },
        payload,
        ..NewEvent::default()
    }
}

fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields[11..13].iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10
}

async fn run(workspace: Workspace, writers: usize, each: usize, from: usize) -> f64 {
    let cpu = cpu_ms();
    let began = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..writers {
        let workspace = workspace.clone();
        tasks.push(tokio::spawn(async move {
            for number in from..from + each {
                let _: Appended = workspace.append_events(vec![event(writer, number)]).await.expect("appended");
            }
        }));
    }
    for task in tasks {
        task.await.expect("a writer");
    }
    println!("cpu us/event {:.1}", (cpu_ms() - cpu) as f64 * 1000.0 / (writers * each) as f64);
    (writers * each) as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = std::env::temp_dir().join(format!("foldwork-bench-{}", std::process::id()));
    runtime.block_on(async {
        let store = Store::connect(&format!("surrealkv://{}", folder.display())).await.expect("a store");
        let engine = Engine::open(store, Arc::new(SystemClock), Settings::default()).await.expect("an engine");
        let first = engine.first_start(None).await.expect("a workspace").expect("new");
        let caller = engine.authenticate(&first.key).await.expect("a caller");
        let scopes = caller.scopes().to_vec();
        let workspace = engine.enter(caller, &scopes).await.expect("a workspace");
        println!("64 writers: {:.0}/s", run(workspace.clone(), 64, 1_000, 0).await);
        println!("64 writers: {:.0}/s", run(workspace.clone(), 64, 2_000, 1_000).await);
        println!("1 writer: {:.0}/s", run(workspace.clone(), 1, 4_000, 3_000).await);
        let began = Instant::now();
        engine.close().await;
        println!("closed in {:?}", began.elapsed());
    });
    let _ = std::fs::remove_dir_all(folder);
}
