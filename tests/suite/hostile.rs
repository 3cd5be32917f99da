//! Malicious scripts: each is stopped in time, uses bounded memory, fails with a reason, and harms nothing else.
//!
//! The first line of a script names the kinds of failure that may stop it, `refused` if it is not even loaded, and
//! `result` if it ends by itself with an invalid result.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldwork_engine::hook::{Enrich, Failure, Plugin};
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::builtin;
use foldwork_engine::model::event::Event;
use foldwork_engine::model::id::AggregateId;
use foldwork_engine::model::value::Value;
use foldwork_plugins::Folder;
use foldwork_plugins::limits::Limits;
use foldwork_plugins::memory::peak_of;
use foldwork_plugins::script::Script;
use foldwork_tests::expectation::{all_well, files, read};

const MANIFEST: &str = "name = \"hostile\"\nversion = \"1.0.0\"\ndescription = \"Hostile.\"\nhooks = [\"enrich\"]\n";
/// How long after its deadline a call may end. An optimized program that runs alone needs at most 300 ms; this program
/// may be a debug build on a busy machine.
const GRACE: Duration = Duration::from_millis(2_500);
const MAX_MEMORY: i64 = 256 << 20;
/// The number of threads that call scripts at the same time.
const THREADS: usize = 2;

#[test]
fn hostile_scripts_are_stopped() {
    let files = files("plugins/hostile", "rhai");
    let failures = std::thread::scope(|scope| {
        let files = &files;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let files = files.iter().skip(thread).step_by(THREADS);
                    files.filter_map(|path| stopped(path).err()).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no script ends a thread")).collect()
    });
    all_well(failures);
}

#[test]
fn allocations_of_a_call_are_counted() {
    let script = "fn enrich(event, state, settings) { let text = \"bomb\"; while true { text += text; } }";
    let script = loaded_with(script, Limits { memory_bytes: 256 << 10, ..Limits::default() }).expect("a script");
    let failure = called(&script).expect_err("too much memory");
    assert_eq!(failure.message, "stopped with more than 262144 bytes of memory");
    assert_eq!((failure.kind.name(), failure.line), ("memory", Some(1)));
}

/// Runs one script and returns an error if it did not end as expected.
fn stopped(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = read(path);
    let kinds = text.lines().next().and_then(|line| line.strip_prefix("// ")).unwrap_or_default();
    let script = match loaded(&text) {
        Ok(script) => script,
        Err(_) if kinds == "refused" => return Ok(()),
        Err(error) => return Err(format!("{name} is refused: {error}")),
    };
    let began = Instant::now();
    let (outcome, peak) = peak_of(|| called(&script));
    let took = began.elapsed();
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{name}: {} ms, {} KiB, {outcome:?}", took.as_millis(), peak >> 10);
    }
    let failure = outcome.err().ok_or_else(|| format!("{name} ends well"))?;
    if !kinds.split('|').any(|kind| kind == failure.kind.name()) {
        return Err(format!("{name} fails with {failure:?}, not as {kinds}"));
    }
    if took > Duration::from_millis(Limits::default().deadline_ms) + GRACE {
        return Err(format!("{name} took {} ms", took.as_millis()));
    }
    if peak > MAX_MEMORY {
        return Err(format!("{name} took {peak} bytes"));
    }
    // A call of another script still works.
    let peaceful = loaded("fn enrich(event, state, settings) { #{ derived: #{ seen: state.title } } }");
    let facts = called(&peaceful.map_err(|error| error.to_string())?).map_err(|failure| failure.to_string())?;
    match facts {
        Some(title) if title == Value::from("T") => Ok(()),
        other => Err(format!("after {name} another plugin finds {other:?}")),
    }
}

fn loaded(script: &str) -> Result<Script, foldwork_plugins::LoadError> {
    loaded_with(script, Limits::default())
}

fn loaded_with(script: &str, limits: Limits) -> Result<Script, foldwork_plugins::LoadError> {
    let folder = Folder {
        name: "hostile".into(),
        location: "scripts/hostile".into(),
        manifest: MANIFEST.into(),
        script: script.into(),
        cases: String::new(),
    };
    Script::load_with(&folder, limits, |engine| {
        engine.register_fn("panic_in_the_host", || "x".parse::<i64>().expect("a number"));
    })
}

/// Calls `enrich` and returns the derived field `seen`.
fn called(script: &Script) -> Result<Option<Value>, Failure> {
    let definition = builtin::definitions().swap_remove(0);
    let event = Event {
        event_id: "event-1".into(),
        aggregate_id: AggregateId::from(Arc::from("article-1")),
        aggregate_type: "article".into(),
        event_type: "article.created".into(),
        project_id: None,
        version: 1,
        position: 1,
        payload: Arc::new([("title", "T"), ("body", "B")].into_iter().collect()),
        metadata: Arc::default(),
        actor: "system".into(),
        occurred_at: 0,
        recorded_at: 0,
        sent: Default::default(),
    };
    let aggregate = Aggregate::fold(None, &event, &definition);
    let call = Enrich { event: &event, aggregate: &aggregate, definition: &definition };
    script.enrich(&call).map(|done| done.value.derived.get("seen").cloned())
}
