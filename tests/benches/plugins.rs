//! Measures the overhead of the host per script call: calls the same function through a plugin, and directly in the
//! interpreter.

use std::hint::black_box;
use std::time::{Duration, Instant};

use foldwork_engine::hook::{EnrichInput, Plugin};
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::builtin;
use foldwork_engine::model::event::Event;
use foldwork_plugins::PluginFolder;
use foldwork_plugins::limits::CallLimits;
use foldwork_plugins::memory::CountingAllocator;
use foldwork_plugins::script::Script;
use foldwork_tests::events::first_event;

#[global_allocator]
static ALLOCATOR: CountingAllocator<tikv_jemallocator::Jemalloc> = CountingAllocator(tikv_jemallocator::Jemalloc);

const MANIFEST: &str = "name = \"trivial\"\nversion = \"1.0.0\"\ndescription = \"Trivial.\"\nhooks = [\"enrich\"]\n";
const SCRIPT: &str = "fn enrich(event, state, settings) { #{ derived: #{ seen: state.title } } }";
const CALLS: u32 = 5_000;
const ROUNDS: usize = 7;

fn main() {
    let folder = PluginFolder {
        name: "trivial".into(),
        location: "scripts/trivial".into(),
        manifest: MANIFEST.into(),
        script: SCRIPT.into(),
        cases: String::new(),
    };
    let script = Script::load(&folder, CallLimits::default()).expect("a script");
    let bare = rhai::Engine::new();
    let ast = bare.compile(SCRIPT).expect("a script");
    let definition = builtin::definitions().swap_remove(0);
    for body_bytes in [200, 20_000, 200_000] {
        let event = event(body_bytes);
        let aggregate = Aggregate::fold(None, &event, &definition);
        let call = EnrichInput { event: &event, aggregate: &aggregate, definition: &definition };
        let hosted = median(|| drop(black_box(script.enrich(&call))));
        let state = rhai::Map::from([("title".into(), "Title".into())]);
        let alone = median(|| {
            let arguments = (rhai::Map::new(), state.clone(), rhai::Map::new());
            drop(black_box(bare.call_fn::<rhai::Map>(&mut rhai::Scope::new(), &ast, "enrich", arguments)));
        });
        let (hosted, alone) = (micros(hosted), micros(alone));
        let (over, ratio) = (hosted - alone, hosted / alone);
        println!("body of {body_bytes} bytes: {hosted:.1} us, bare {alone:.1} us: {over:.1} us more, {ratio:.1} times");
    }
}

fn event(body_bytes: usize) -> Event {
    let body = "word ".repeat(body_bytes / 5);
    let payload = [("title", "Title"), ("slug", "title"), ("body", body.as_str()), ("status", "draft")];
    first_event("article-1", "article.created", payload.into_iter().collect())
}

/// Returns the time of one call: the median over rounds of many calls.
fn median(call: impl Fn()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            (0..CALLS).for_each(|_| call());
            began.elapsed() / CALLS
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
