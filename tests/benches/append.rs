//! Measures appends per second through the engine on a store on disk, from one writer and from many writers.
//!
//! `--seconds N` sets the duration of each measurement. `--keyed` compares plain appends with appends that have event
//! ids or idempotency keys. `--long` compares appends to logs of 10,000 and 1,000,000 events. `--memtable-bytes N` and
//! `--cache-bytes N` set the sizes of the store's memtable and cache.

use std::time::{Duration, Instant};

use foldwork_engine::AppendOutcome;
use foldwork_engine::model::event::{MAX_EVENTS_PER_APPEND, NewEvent, StreamExpectation};
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::responses::IdempotentRequest;
use foldwork_engine::{Sizes, Store};
use foldwork_plugins::memory::CountingAllocator;
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::handles::Handles;

#[global_allocator]
static ALLOCATOR: CountingAllocator<tikv_jemallocator::Jemalloc> = CountingAllocator(tikv_jemallocator::Jemalloc);

const WRITERS: usize = 64;
/// The number of streams that each writer spreads its events over.
const STREAMS: usize = 200;
const SHORT_LOG: u64 = 10_000;
const LONG_LOG: u64 = 1_000_000;

struct Arguments {
    seconds: u64,
    long: bool,
    keyed: bool,
    sizes: Sizes,
}

impl Arguments {
    /// Parses the arguments. Skips arguments that cargo adds.
    fn read() -> Arguments {
        let mut read = Arguments { seconds: 5, long: false, keyed: false, sizes: Sizes::default() };
        let number = |text: Option<String>| text.and_then(|text| text.parse::<usize>().ok()).expect("a number");
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--long" => read.long = true,
                "--keyed" => read.keyed = true,
                "--seconds" => {
                    read.seconds = number(arguments.next()) as u64;
                    assert!(read.seconds > 0, "--seconds takes a positive number");
                }
                "--memtable-bytes" => read.sizes.memtable_bytes = number(arguments.next()),
                "--cache-bytes" => read.sizes.cache_bytes = number(arguments.next()),
                _ => {}
            }
        }
        read
    }
}

/// Returns an event whose payload is about 300 bytes of JSON.
fn event(writer: usize, number: usize) -> NewEvent {
    let payload: Object = [
        ("title", Value::from(format!("Title {number}"))),
        ("body", Value::from("x".repeat(250))),
        ("n", Value::Int(number as i64)),
    ]
    .into_iter()
    .collect();
    NewEvent {
        aggregate_id: format!("note-{writer}-{}", number % STREAMS),
        aggregate_type: "article".into(),
        event_type: if number < STREAMS { "article.created".into() } else { "article.updated".into() },
        // An earlier measurement may have created the stream.
        expected: StreamExpectation::Any,
        payload,
        ..NewEvent::default()
    }
}

/// Appends single events from several writers for some time and returns the appends per second.
async fn rate(workspace: &Handles, writers: usize, time: Duration) -> f64 {
    rate_of(workspace, writers, time, event).await
}

/// Measures like [`rate`], with events from the function `event`. The arguments of `event` are the number of the writer
/// and the number of the event.
async fn rate_of(
    workspace: &Handles,
    writers: usize,
    time: Duration,
    event: impl Fn(usize, usize) -> NewEvent + Copy + Send + 'static,
) -> f64 {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..writers {
        let workspace = workspace.clone();
        tasks.push(tokio::spawn(async move {
            let mut number = 0;
            while began.elapsed() < time {
                let _: AppendOutcome =
                    workspace.writer.append_events(vec![event(writer, number)]).await.expect("appended");
                number += 1;
            }
            number
        }));
    }
    let mut appended = 0;
    for task in tasks {
        appended += task.await.expect("a writer");
    }
    appended as f64 / began.elapsed().as_secs_f64()
}

/// Appends with idempotency keys from several writers for some time and returns the appends per second.
async fn keyed_rate(workspace: &Handles, writers: usize, time: Duration, run: &str) -> f64 {
    let began = Instant::now();
    let writing = (0..writers).map(|writer| async move {
        let mut number = 0;
        while began.elapsed() < time {
            let key = format!("{run}-{writer}-{number}");
            let request = IdempotentRequest::new("user", &key, "append", b"body").expect("a key");
            let events = vec![event(writer, number)];
            let appended = workspace.writer.append_requested(events, Some(&request)).await.expect("appended");
            assert!(!appended.is_repeat());
            number += 1;
        }
        number
    });
    let appended: usize = futures_util::future::join_all(writing).await.into_iter().sum();
    appended as f64 / began.elapsed().as_secs_f64()
}

/// Returns the CPU time of this process so far in milliseconds.
fn cpu_ms() -> f64 {
    const MS_PER_TICK: f64 = 10.0;
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the process status on Linux");
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * MS_PER_TICK
}

/// Returns the appends per second and the CPU time per append as text. The CPU time does not depend on other load on
/// the machine.
async fn report(name: &str, time: Duration, rate: impl Future<Output = f64>) -> String {
    let before = cpu_ms();
    let rate = rate.await;
    format!("{name}: {rate:.0}/s, {:.2} ms of CPU time each", (cpu_ms() - before) / (rate * time.as_secs_f64()))
}

/// Compares plain appends with appends that have event ids or idempotency keys, in alternating turns, because the
/// machine's performance varies over time.
async fn compare_keyed(workspace: &Handles, time: Duration) {
    for turn in 0..3 {
        let without = report("64 writers", time, rate(workspace, WRITERS, time)).await;
        let named = move |writer, number| {
            let event_id = Some(format!("{turn}-{writer}-{number}"));
            NewEvent { event_id, ..event(writer, number) }
        };
        let named = report("with event ids", time, rate_of(workspace, WRITERS, time, named)).await;
        let run = turn.to_string();
        let with = report("with idempotency keys", time, keyed_rate(workspace, WRITERS, time, &run)).await;
        println!("{without}; {named}; {with}");
    }
}

/// Appends large batches until the log has this length.
async fn fill(workspace: &Handles, length: u64) {
    let mut number = 0;
    while workspace.reader.position() < length {
        let remaining = usize::try_from(length - workspace.reader.position()).unwrap_or(usize::MAX);
        let batch = remaining.min(MAX_EVENTS_PER_APPEND);
        let events = (number..number + batch).map(|number| event(number % WRITERS, number / WRITERS)).collect();
        workspace.writer.append_events(events).await.expect("appended");
        number += batch;
    }
}

async fn measure(workspace: &Handles, arguments: &Arguments) {
    let time = Duration::from_secs(arguments.seconds);
    if arguments.keyed {
        return compare_keyed(workspace, time).await;
    }
    if !arguments.long {
        println!("64 writers: {:.0}/s", rate(workspace, WRITERS, time).await);
        println!("1 writer: {:.0}/s", rate(workspace, 1, time).await);
        return;
    }
    let mut costs = Vec::new();
    for length in [SHORT_LOG, LONG_LOG] {
        fill(workspace, length).await;
        let cost_us = 1e6 / rate(workspace, WRITERS, time).await;
        println!("at {length} events: {cost_us:.1} us");
        costs.push(cost_us);
    }
    println!("growth: {:.2}", costs[1] / costs[0]);
}

fn main() {
    let arguments = Arguments::read();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = std::env::temp_dir().join(format!("foldwork-bench-{}", std::process::id()));
    runtime.block_on(async {
        let url = format!("surrealkv://{}", folder.display());
        let store = Store::connect_with(&url, &arguments.sizes).await.expect("a store");
        let engine = engine(store).await;
        let (workspace, _) = first(&engine).await.expect("a workspace");
        measure(&workspace, &arguments).await;
        engine.close().await;
    });
    let _ = std::fs::remove_dir_all(folder);
}
