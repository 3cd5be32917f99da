//! Tests random states of random types. Each state survives a restart unchanged and equals the fold of its log.
//!
//! `PROPTEST_CASES` sets the number of cases. A failing case is shrunk and shown.

use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::aggregates::StateMoment;
use foldwork_engine::{Engine, EngineSettings, Error, Plugins, Store};
use foldwork_tests::clock::FixedClock;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::{close_down_to, consumed};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Runtime;

const TYPES: [&str; 8] = ["string", "number", "integer", "decimal", "boolean", "date", "object", "array"];
const FOLDS: [&str; 8] = ["last", "first", "sum", "count", "min", "max", "union", "append"];
const FIELDS: usize = 5;
const IDS: usize = 3;

/// Generates a type whose fields have random types and folds.
fn definition() -> impl Strategy<Value = String> {
    let field = (prop::sample::select(TYPES.to_vec()), prop::sample::select(FOLDS.to_vec()));
    prop::collection::vec(field, FIELDS).prop_map(|fields| {
        let field = |(number, (field_type, fold)): (usize, (&str, &str))| {
            // Only numbers have a sum.
            let is_number = ["number", "integer", "decimal"].contains(&field_type);
            let fold = if fold == "sum" && !is_number { "last" } else { fold };
            format!(r#"{{"name": "f{number}", "type": "{field_type}", "fold": "{fold}"}}"#)
        };
        let fields: Vec<String> = fields.into_iter().enumerate().map(field).collect();
        format!(r#"{{"type_name": "thing", "fields": [{}]}}"#, fields.join(", "))
    })
}

fn date() -> impl Strategy<Value = Value> {
    let texts =
        ["2025-02-01T00:00:00.000Z", "2025-02-01T02:00:00+02:00", "1969-12-31T23:59:59.9999Z", "9999-12-31T23:59:59Z"];
    prop_oneof![
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        (-2_000_000_000_000i64..4_000_000_000_000).prop_map(Value::Date),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    let doubles = [f64::MAX, f64::MIN, 1e308, -0.0, 0.1, 5e-324, f64::INFINITY, f64::NAN];
    prop_oneof![
        4 => date(),
        3 => prop::sample::select(doubles.to_vec()).prop_map(Value::Double),
        2 => any::<f64>().prop_map(Value::Double),
        2 => prop::sample::select(vec![i64::MAX, i64::MIN, 0, 1, -1, (1 << 53) + 1]).prop_map(Value::Int),
        2 => prop::sample::select(vec!["12.30", "-0.05", "0.1000", "7"]).prop_map(Value::from),
        2 => any::<String>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Null),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["$date", "$double", "$decimal", "$$", "a", "b", ""]);
    scalar().prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..3).prop_map(|fields| Object::from_iter(fields).into()),
        ]
    })
}

fn event() -> impl Strategy<Value = NewEvent> {
    let field =
        (0..FIELDS + 2, prop_oneof![scalar(), value()]).prop_map(|(number, value)| (format!("f{number}"), value));
    let unset = (0..FIELDS).prop_map(|number| ("$unset".to_owned(), Value::from(vec![format!("f{number}").into()])));
    let part = prop_oneof![8 => field, 1 => unset];
    (0..IDS, prop::collection::vec(part, 1..4)).prop_map(|(number, payload)| NewEvent {
        aggregate_id: format!("i{number}"),
        aggregate_type: "thing".into(),
        event_type: "thing.changed".into(),
        payload: payload.into_iter().collect(),
        ..NewEvent::default()
    })
}

async fn engine(store: &Store, clock: &Arc<FixedClock>) -> Arc<Engine> {
    let settings = EngineSettings { resident_bytes: 1, idle_ms: 0, ..EngineSettings::default() };
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), clock.clone(), settings, plugins).await.expect("an engine")
}

/// Returns the states in memory. Fails if a state differs from the fold of its whole stream.
async fn states(workspace: &Handles) -> Result<Vec<String>, TestCaseError> {
    let mut states = Vec::new();
    for number in 0..IDS {
        let id = format!("i{number}");
        let found = match workspace.reader.aggregate(&id, StateMoment::Now).await {
            Ok((found, _)) => found,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Err(failed(error)),
        };
        let (folded, _) = workspace.reader.aggregate(&id, StateMoment::Version(found.version)).await.map_err(failed)?;
        // Compares the debug format, because values that are equal may have different types.
        prop_assert_eq!(format!("{:?}", folded.state), format!("{:?}", found.state), "the fold of {}", id);
        states.push(format!("{id} {} {:?}", found.version, found.state));
    }
    Ok(states)
}

async fn check_restarts(definition: String, batches: Vec<Vec<NewEvent>>) -> Result<(), TestCaseError> {
    let store = Store::connect("mem://").await.map_err(failed)?;
    let clock = Arc::new(FixedClock::default());
    let mut running = engine(&store, &clock).await;
    let key = running.first_start(None).await.map_err(failed)?.expect("an empty store").key;
    let definition = serde_json::from_str(&definition).expect("JSON");
    enter(&running, &key).await.map_err(failed)?.writer.define_type(&definition, false).await.map_err(failed)?;
    for (number, batch) in batches.into_iter().enumerate() {
        let workspace = enter(&running, &key).await.map_err(failed)?;
        for event in batch {
            match workspace.writer.append_events(vec![event]).await {
                Ok(_) | Err(Error::Invalid { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let before = states(&workspace).await?;
        if number % 2 == 0 {
            // The snapshot of a large state is delayed. After this time, the snapshot is written.
            clock.advance(3_600_000);
            consumed(&workspace).await.map_err(failed)?;
        }
        // Another engine reads the states while snapshots may be older than the log.
        let other_engine = engine(&store, &clock).await;
        prop_assert_eq!(&states(&enter(&other_engine, &key).await.map_err(failed)?).await?, &before, "two engines");
        other_engine.close().await;
        drop(workspace);
        clock.advance(60_000);
        // A workspace stays open until its timers have read the state, because a task may have a deadline.
        running.deadlines_passed().await;
        close_down_to(&running, 0).await.map_err(failed)?;
        prop_assert_eq!(&states(&enter(&running, &key).await.map_err(failed)?).await?, &before, "reopened");
        running.close().await;
        running = engine(&store, &clock).await;
        prop_assert_eq!(&states(&enter(&running, &key).await.map_err(failed)?).await?, &before, "restarted");
    }
    Ok(())
}

#[test]
fn random_states_survive_a_restart() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let runtime = Runtime::new().expect("a runtime");
    let batches = prop::collection::vec(prop::collection::vec(event(), 1..16), 1..3);
    let result = TestRunner::new(config)
        .run(&(definition(), batches), |(definition, batches)| runtime.block_on(check_restarts(definition, batches)));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Tests former bugs: a list of two dates and a sum beyond the range of numbers differed after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn infinite_sums_and_dates_in_lists_survive_a_restart() {
    let definition = r#"{"type_name": "thing", "fields": [{"name": "f0", "type": "date", "fold": "union"},
        {"name": "f1", "type": "number", "fold": "sum"}, {"name": "f2", "type": "date", "fold": "append"}]}"#;
    let event = |payload: [(&str, Value); 3]| NewEvent {
        aggregate_id: "i0".into(),
        aggregate_type: "thing".into(),
        event_type: "thing.changed".into(),
        payload: Object::from_iter(payload),
        ..NewEvent::default()
    };
    let date = || Value::from("2025-02-01T00:00:00.000Z");
    let large = || event([("f0", date()), ("f1", Value::Double(f64::MAX)), ("f2", date())]);
    check_restarts(definition.into(), vec![vec![large(), large()], vec![large()]]).await.expect("unchanged states");
}

/// A delayed snapshot of a large state is written after the delay. If the workspace is closed before the end of the
/// delay, the snapshot is written when the workspace is closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_snapshot_of_a_large_state_is_written_when_the_server_stops() {
    let store = Store::connect("mem://").await.expect("a store");
    let clock = Arc::new(FixedClock::default());
    let running = engine(&store, &clock).await;
    let key = running.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(&running, &key).await.expect("a workspace");
    let event = |payload: Object| NewEvent {
        aggregate_id: "large".into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload,
        ..NewEvent::default()
    };
    let changed = |number: i64| event(Object::from_iter([("n", number)]));
    let large = event(Object::from_iter([("body", "x".repeat(100_000))]));
    workspace.writer.append_events(vec![large]).await.expect("appended");
    consumed(&workspace).await.expect("the first snapshot is written without delay");
    workspace.writer.append_events(vec![changed(1)]).await.expect("appended");
    clock.advance(3_600_000);
    consumed(&workspace).await.expect("the delayed snapshot is written");
    workspace.writer.append_events(vec![changed(2)]).await.expect("appended");
    drop(workspace);
    running.close().await;

    let plugins = Plugins::none().expect("no plugins");
    let settings = EngineSettings::default();
    let again = Engine::open(store.share(), Arc::new(SystemClock), settings, plugins).await.expect("an engine");
    let workspace = enter(&again, &key).await.expect("a workspace");
    let followers = workspace.reader.followers().await.expect("the followers");
    let nodes = followers.iter().find(|follower| follower.name == "nodes").expect("the follower nodes");
    assert_eq!((nodes.position, nodes.lag), (3, 0));
}

fn failed(reason: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(reason.to_string())
}
