//! Tests malicious scripts. Each script is stopped in time, uses limited memory, fails with a reason, and does not
//! affect other scripts.
//!
//! The first line of a script lists the accepted kinds of failure. `refused` means that the script is not loaded.
//! `result` means that the script ends without being stopped and returns an invalid result.

use std::path::Path;
use std::time::{Duration, Instant};

use foldwork_engine::hook::{EnrichInput, Failure, Plugin};
use foldwork_engine::model::aggregate::Aggregate;
use foldwork_engine::model::builtin;
use foldwork_engine::model::value::Value;
use foldwork_plugins::PluginFolder;
use foldwork_plugins::limits::CallLimits;
use foldwork_plugins::memory::peak_of;
use foldwork_plugins::script::Script;
use foldwork_tests::events::first_event;
use foldwork_tests::expectation::{all_well, files, read};

const MANIFEST: &str = "name = \"hostile\"\nversion = \"1.0.0\"\ndescription = \"Hostile.\"\nhooks = [\"enrich\"]\n";
/// The maximum time from the deadline of a call to the end of the call. A release build on an idle machine needs at
/// most 300 ms, but the tests may be a debug build on a busy machine.
const GRACE: Duration = Duration::from_millis(2_500);
const MAX_MEMORY: i64 = 256 << 20;
/// The number of threads that call scripts at the same time.
const THREADS: usize = 2;

#[test]
fn hostile_scripts_are_stopped_in_time_and_do_not_affect_other_scripts() {
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
fn a_call_that_allocates_too_much_memory_is_stopped() {
    let script = "fn enrich(event, state, settings) { let text = \"bomb\"; while true { text += text; } }";
    let script =
        loaded_with(script, CallLimits { memory_bytes: 256 << 10, ..CallLimits::default() }).expect("a script");
    let failure = called(&script).expect_err("too much memory");
    assert_eq!(failure.message, "the call used more than 262144 bytes of memory");
    assert_eq!((failure.kind.name(), failure.line), ("memory", Some(1)));
}

/// Runs one script and returns an error if the script did not end as expected.
fn stopped(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = read(path);
    let kinds = text.lines().next().and_then(|line| line.strip_prefix("// ")).unwrap_or_default();
    let script = match loaded(&text) {
        Ok(script) => script,
        Err(_) if kinds == "refused" => return Ok(()),
        Err(error) => return Err(format!("{name} is not loaded: {error}")),
    };
    let began = Instant::now();
    let (outcome, peak) = peak_of(|| called(&script));
    let took = began.elapsed();
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{name}: {} ms, {} KiB, {outcome:?}", took.as_millis(), peak >> 10);
    }
    let failure = outcome.err().ok_or_else(|| format!("{name} ends without a failure"))?;
    if !kinds.split('|').any(|kind| kind == failure.kind.name()) {
        return Err(format!("{name} fails with {failure:?}; expected {kinds}"));
    }
    if took > Duration::from_millis(CallLimits::default().deadline_ms) + GRACE {
        return Err(format!("{name} ends only after {} ms", took.as_millis()));
    }
    if peak > MAX_MEMORY {
        return Err(format!("{name} uses {peak} bytes of memory"));
    }
    // Checks that a call of another script still works.
    let peaceful = loaded("fn enrich(event, state, settings) { #{ derived: #{ seen: state.title } } }");
    let facts = called(&peaceful.map_err(|error| error.to_string())?).map_err(|failure| failure.to_string())?;
    match facts {
        Some(title) if title == Value::from("T") => Ok(()),
        other => Err(format!("after {name}, another script returns {other:?}")),
    }
}

fn loaded(script: &str) -> Result<Script, foldwork_plugins::LoadError> {
    loaded_with(script, CallLimits::default())
}

fn loaded_with(script: &str, limits: CallLimits) -> Result<Script, foldwork_plugins::LoadError> {
    let folder = PluginFolder {
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
    let event = first_event("article-1", "article.created", [("title", "T"), ("body", "B")].into_iter().collect());
    let aggregate = Aggregate::fold(None, &event, &definition);
    let call = EnrichInput { event: &event, aggregate: &aggregate, definition: &definition };
    script.enrich(&call).map(|done| done.value.derived.get("seen").cloned())
}
