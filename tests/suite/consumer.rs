//! Tests the consumer of the log with dropped requests, failing plugins, concurrent rebuilds, and ids that are taken.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::Duration;

use foldwork_engine::clock::{Clock, SystemClock};
use foldwork_engine::error::ErrorCode;
use foldwork_engine::hook::{
    Candidates, EnrichInput, Failure, FailureKind, Hook, HookOutput, OnError, Outcome, Plugin, PluginAgent,
    PluginDescription, Subscription,
};
use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::facts::{EventFact, Facts};
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::aggregates::StateMoment;
use foldwork_engine::workspace::events::{EventLimit, ReadDirection};
use foldwork_engine::workspace::parked::StepChoice;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, EngineSettings, Error, Plugins, Store};
use foldwork_tests::clock::FixedClock;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::worked;

const NAME: &str = "native";
/// The time limit for operations that a bug could block forever.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The behavior of the plugin's calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Fail,
    Succeed,
    /// Succeeds and returns no facts about the event.
    FindNothing,
    /// Blocks the call with this number until the mode changes. Calls are counted from the last change of the mode.
    WaitAt(usize),
}

/// The state that a plugin shares with its test. Through this state, the test controls the plugin and counts the calls.
struct Handle {
    mode: Mutex<Mode>,
    changed: Condvar,
    calls: AtomicUsize,
    /// The notification that a call is blocked.
    reached: tokio::sync::Notify,
    /// The events that the plugin derives from each `note.changed`: the type of each event, and the value of the
    /// payload field `made`.
    derives: Vec<(&'static str, i64)>,
}

impl Handle {
    fn new(mode: Mode) -> Arc<Handle> {
        Handle::deriving(mode, Vec::new())
    }

    fn deriving(mode: Mode, derives: Vec<(&'static str, i64)>) -> Arc<Handle> {
        let (mode, changed) = (Mutex::new(mode), Condvar::new());
        Arc::new(Handle { mode, changed, calls: AtomicUsize::new(0), reached: tokio::sync::Notify::new(), derives })
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock().expect("the mode") = mode;
        self.calls.store(0, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Counts a call of the plugin, and blocks the call while the mode is `WaitAt` with the call's number. Returns
    /// whether the call succeeds.
    fn call(&self) -> bool {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let mut mode = self.mode.lock().expect("the mode");
        while *mode == Mode::WaitAt(number) {
            self.reached.notify_one();
            mode = self.changed.wait(mode).expect("the mode");
        }
        *mode != Mode::Fail
    }
}

struct Native {
    about: PluginDescription,
    handle: Arc<Handle>,
}

impl Plugin for Native {
    fn about(&self) -> &PluginDescription {
        &self.about
    }

    fn enrich(&self, call: &EnrichInput<'_>) -> Outcome<Facts> {
        if !self.handle.call() {
            let message = "told to fail".to_owned();
            return Err(Failure { kind: FailureKind::Thrown, message, line: None, column: None });
        }
        if *self.handle.mode.lock().expect("the mode") == Mode::FindNothing {
            return Ok(HookOutput { value: Facts::default(), operations: 0 });
        }
        let derive = |(event_type, value): &(&str, i64)| EventFact {
            event_type: (*event_type).to_owned(),
            payload: Object::from_iter([("made", *value)]),
        };
        Ok(HookOutput {
            value: Facts {
                derived: Object::from_iter([("version", call.event.version as i64)]),
                events: self.handle.derives.iter().map(derive).collect(),
                ..Facts::default()
            },
            operations: 0,
        })
    }
}

fn about(hooks: Vec<Hook>, on_error: OnError) -> PluginDescription {
    let profile = PluginAgent { description: "Works.".into(), traits: Vec::new(), capabilities: Object::new() };
    PluginDescription {
        name: NAME.into(),
        version: "1.0.0".into(),
        description: "Acts according to the mode of the test.".into(),
        agent: hooks.contains(&Hook::Work).then_some(profile),
        tool: None,
        candidates: Candidates::default(),
        hooks,
        on: Subscription { events: vec!["note.changed".into()], traits: Vec::new() },
        on_error,
        settings: Object::new(),
    }
}

async fn engine(store: Store, about: PluginDescription, handle: &Arc<Handle>) -> Arc<Engine> {
    engine_at(Arc::new(SystemClock), store, about, handle).await
}

async fn engine_at(clock: Arc<dyn Clock>, store: Store, about: PluginDescription, handle: &Arc<Handle>) -> Arc<Engine> {
    let plugin: Arc<dyn Plugin> = Arc::new(Native { about, handle: handle.clone() });
    let plugins = Plugins::new(vec![plugin], 2).expect("threads");
    Engine::open(store, clock, EngineSettings::default(), plugins).await.expect("an engine")
}

/// Creates the first workspace of an engine, and defines the types of the tests. Returns the handles and the key.
async fn first(engine: &Arc<Engine>) -> (Handles, String) {
    let key = engine.first_start(None).await.expect("a start").expect("an empty store").key;
    let workspace = enter(engine, &key).await.expect("a workspace");
    for name in ["note", "other"] {
        let definition = serde_json::from_str(&format!(r#"{{"type_name": "{name}"}}"#)).expect("JSON");
        workspace.writer.define_type(&definition, false).await.expect("a type");
    }
    (workspace, key)
}

fn note(number: usize) -> NewEvent {
    NewEvent {
        aggregate_id: format!("n{number}"),
        aggregate_type: "note".into(),
        event_type: "note.changed".into(),
        ..NewEvent::default()
    }
}

/// Returns an event that no plugin handles.
fn other() -> NewEvent {
    NewEvent {
        aggregate_id: "o".into(),
        aggregate_type: "other".into(),
        event_type: "other.changed".into(),
        ..NewEvent::default()
    }
}

async fn append(workspace: &Handles, events: Vec<NewEvent>) {
    workspace.writer.append_events(events).await.expect("appended");
    worked(workspace).await.expect("the plugin's turn");
}

/// Returns the ids of the notes that have facts of the plugin.
async fn found(workspace: &Handles) -> Vec<String> {
    let pipeline = r#"[{"$match": {"aggregate_type": "note"}}, {"$fold": {}}, {"$project": {"_facts": 1}}]"#;
    let query = Query::new(serde_json::from_str(pipeline).expect("JSON"));
    let rows = workspace.reader.query(query).await.expect("an answer").rows;
    let rows = rows.iter().filter(|row| row.get("_facts").and_then(|facts| facts.get(NAME)).is_some());
    rows.filter_map(|row| row.get("_id").and_then(Value::as_str).map(str::to_owned)).collect()
}

async fn parked(workspace: &Handles) -> u64 {
    workspace.reader.plugin(NAME).await.expect("the plugin").parked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_replay_loses_neither_facts_nor_steps() {
    const NOTES: usize = 700;
    let handle = Handle::new(Mode::Fail);
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(store, about(vec![Hook::Enrich], OnError::Park), &handle).await;
    let (workspace, _) = first(&engine).await;
    append(&workspace, (0..NOTES).map(note).collect()).await;
    assert_eq!(parked(&workspace).await, NOTES as u64);

    // Blocks a call in the second page of the replay.
    handle.set(Mode::WaitAt(NOTES - 10));
    let replayed = workspace.clone();
    let replay = tokio::spawn(async move { replayed.writer.replay_plugin(NAME, None, 0).await });
    handle.reached.notified().await;
    replay.abort();
    let _ = replay.await;
    handle.set(Mode::Succeed);

    workspace.writer.resume_plugin(NAME).await.expect("resumed");
    append(&workspace, vec![note(NOTES)]).await;
    let found = found(&workspace).await;
    assert!(found.contains(&format!("n{NOTES}")), "the consumer did not process the event after the replay");
    let known = found.len() as u64 - 1 + parked(&workspace).await;
    assert_eq!(known, NOTES as u64, "each step is still parked, or its facts are applied");
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_request_does_not_stop_the_consumer() {
    let handle = Handle::new(Mode::Fail);
    // Uses a store on disk, because its commits take longer.
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::connect(&format!("surrealkv://{}", folder.path().display())).await.expect("a store");
    let engine = engine(store, about(vec![Hook::Enrich], OnError::Park), &handle).await;
    let (workspace, _) = first(&engine).await;
    append(&workspace, vec![note(0)]).await;
    let step = workspace.reader.list_parked(None, None, 1).await.expect("a list").remove(0).id.text();
    for steps in 1..40 {
        // The consumer processes this event without storing its checkpoint. The replay stores the checkpoint.
        append(&workspace, vec![other()]).await;
        let mut replay = Box::pin(workspace.writer.replay_parked(&step));
        let mut remaining = steps;
        // Stops polling after some wakeups, so that the replay does not process its last wakeup.
        poll_fn(|context| {
            if remaining == 0 {
                return Poll::Ready(());
            }
            remaining -= 1;
            replay.as_mut().poll(context).map(drop)
        })
        .await;
        drop(replay);
    }
    handle.set(Mode::Succeed);
    workspace.writer.resume_plugin(NAME).await.expect("resumed");
    append(&workspace, vec![note(1)]).await;
    assert!(found(&workspace).await.contains(&"n1".to_owned()));
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_skips_steps_that_another_request_has_completed() {
    let handle = Handle::new(Mode::Fail);
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(store, about(vec![Hook::Enrich], OnError::Park), &handle).await;
    let (workspace, _) = first(&engine).await;
    append(&workspace, vec![note(0)]).await;
    let step = workspace.reader.list_parked(None, None, 1).await.expect("a list").remove(0).id.text();
    let replay = || {
        let (workspace, step) = (workspace.clone(), step.clone());
        tokio::spawn(async move { workspace.writer.replay_parked(&step).await })
    };

    handle.set(Mode::WaitAt(0));
    let running = replay();
    handle.reached.notified().await;
    // This replay finds the step, and then waits until the running replay ends.
    let waiting = replay();
    tokio::time::sleep(Duration::from_millis(200)).await;
    handle.set(Mode::Succeed);
    assert_eq!(running.await.expect("no panic").expect("replayed").done, 1);
    match waiting.await.expect("no panic") {
        Ok(replayed) => assert_eq!((replayed.done, replayed.failed.len()), (0, 0)),
        // On a slow machine, the request looks for the step only after the first replay.
        Err(error) => assert!(matches!(error, Error::NotFound { .. }), "{error}"),
    }
    assert_eq!((parked(&workspace).await, handle.calls.load(Ordering::SeqCst)), (0, 0));
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_never_succeeds_blocks_neither_requests_nor_events() {
    let (handle, clock) = (Handle::new(Mode::Fail), Arc::new(FixedClock::default()));
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine_at(clock, store, about(vec![Hook::Enrich], OnError::Retry), &handle).await;
    let (workspace, _) = first(&engine).await;
    append(&workspace, vec![note(0)]).await;
    assert_eq!((parked(&workspace).await, handle.calls.load(Ordering::SeqCst)), (1, 1), "nothing waits for a retry");
    let requests = async {
        workspace.writer.resume_plugin(NAME).await.expect("resumed");
        let tally = workspace.writer.replay_plugin(NAME, None, 0).await.expect("replayed");
        assert_eq!((tally.events, tally.failed), (1, 1));
        workspace.writer.replay_selected(StepChoice::Plugin(None).into()).await.expect("replayed");
        workspace.writer.rebuild_graph().await.expect("rebuilt");
    };
    tokio::time::timeout(TIMEOUT, requests).await.expect("no request waits for the plugin");
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_step_survives_a_restart_and_does_not_replace_newer_facts() {
    let (handle, clock) = (Handle::new(Mode::Fail), Arc::new(FixedClock::default()));
    let store = Store::connect("mem://").await.expect("a store");
    let about = || about(vec![Hook::Enrich], OnError::Retry);
    let first_engine = engine_at(clock.clone(), store.share(), about(), &handle).await;
    let (workspace, key) = first(&first_engine).await;
    append(&workspace, vec![note(0), note(1)]).await;
    handle.set(Mode::Succeed);
    append(&workspace, vec![note(0)]).await;
    assert_eq!((parked(&workspace).await, found(&workspace).await), (2, vec!["n0".to_owned()]));
    drop(workspace);
    first_engine.close().await;

    let second = engine_at(clock.clone(), store.share(), about(), &handle).await;
    let workspace = enter(&second, &key).await.expect("a workspace");
    clock.advance(1_000);
    tokio::time::timeout(TIMEOUT, second.deadlines_passed()).await.expect("the steps are retried");
    assert_eq!((parked(&workspace).await, found(&workspace).await), (0, vec!["n0".to_owned(), "n1".to_owned()]));
    let (note, _) = workspace.reader.aggregate("n0", StateMoment::Now).await.expect("a note");
    let version = note.facts.get(NAME).and_then(|facts| facts.get("version")).and_then(Value::as_int);
    assert_eq!(version, Some(2), "the retried step of an earlier event does not replace the facts");
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_with_a_new_plugin_version_keeps_previously_derived_events() {
    let store = Store::connect("mem://").await.expect("a store");
    let old = Handle::deriving(Mode::Succeed, vec![("note.one", 1)]);
    let first_engine = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &old).await;
    let (workspace, key) = first(&first_engine).await;
    append(&workspace, vec![note(0)]).await;
    drop(workspace);
    first_engine.close().await;

    let new = Handle::deriving(Mode::Succeed, vec![("note.one", 2), ("note.two", 2)]);
    let second = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &new).await;
    let workspace = enter(&second, &key).await.expect("a workspace");
    worked(&workspace).await.expect("the plugin's turn");
    let tally = workspace.writer.replay_plugin(NAME, None, 0).await.expect("replayed");
    assert_eq!((tally.events, tally.failed), (1, 0));
    let stream = workspace
        .reader
        .stream("n0", None, EventLimit::events(10), ReadDirection::Forward)
        .await
        .expect("a stream")
        .items;
    let made = |event: &foldwork_engine::model::event::Event| {
        (event.event_type.to_string(), event.payload.get("made").and_then(Value::as_int))
    };
    let made: Vec<_> = stream.iter().map(made).collect();
    let expected = [("note.changed", None), ("note.one", Some(1)), ("note.two", Some(2))];
    assert_eq!(made, expected.map(|(name, made)| (name.to_owned(), made)));
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_replacement_for_a_taken_agent_id_is_the_same_after_each_start() {
    let store = Store::connect("mem://").await.expect("a store");
    let handle = Handle::new(Mode::Succeed);
    let without = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &handle).await;
    let (workspace, key) = first(&without).await;
    append(&workspace, vec![NewEvent { aggregate_id: format!("agent-{NAME}"), ..note(0) }]).await;
    drop(workspace);
    without.close().await;

    for _ in 0..2 {
        let works = engine(store.share(), about(vec![Hook::Work], OnError::Park), &handle).await;
        let workspace = enter(&works, &key).await.expect("the workspace opens");
        let id = format!("agent-{NAME}-2");
        let (agent, _) = workspace.reader.aggregate(&id, StateMoment::Now).await.expect("an agent");
        assert_eq!((&*agent.aggregate_type, agent.version), ("agent", 1), "the agent differs between starts");
        drop(workspace);
        works.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_rebuilds_fails_and_the_graph_is_complete() {
    let store = Store::connect("mem://").await.expect("a store");
    let (slow, fast) = (Handle::new(Mode::Succeed), Handle::new(Mode::Succeed));
    let one = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &slow).await;
    let (workspace, key) = first(&one).await;
    append(&workspace, (0..20).map(note).collect()).await;
    let other = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &fast).await;
    let elsewhere = enter(&other, &key).await.expect("a workspace");
    worked(&elsewhere).await.expect("the plugin's turn");

    slow.set(Mode::WaitAt(3));
    let held = {
        let mut rebuild = pin!(workspace.writer.rebuild_graph());
        tokio::select! {
            _ = &mut rebuild => panic!("the rebuild does not wait for the plugin"),
            () = slow.reached.notified() => {}
        }
        let again = workspace.writer.rebuild_graph().await;
        assert!(
            matches!(again, Err(Error::Conflict { code: ErrorCode::RebuildRunning, .. })),
            "a second rebuild on one server: {again:?}"
        );
        let rebuilt = elsewhere.writer.rebuild_graph().await.expect("the other server is faster");
        assert_eq!(rebuilt.nodes, 20);
        slow.set(Mode::Succeed);
        rebuild.await
    };
    assert!(
        matches!(held, Err(Error::Conflict { code: ErrorCode::RebuildOvertaken, .. })),
        "the slower rebuild fails: {held:?}"
    );
    drop((workspace, elsewhere));
    one.close().await;
    other.close().await;

    let third = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &Handle::new(Mode::Fail)).await;
    let workspace = enter(&third, &key).await.expect("a workspace");
    worked(&workspace).await.expect("the plugin's turn");
    assert_eq!(found(&workspace).await.len(), 20, "the graph in use is complete");
    third.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_prevents_repeated_plugin_calls() {
    let store = Store::connect("mem://").await.expect("a store");
    let handle = Handle::new(Mode::FindNothing);
    let running = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &handle).await;
    let (workspace, key) = first(&running).await;
    for number in 0..40 {
        workspace.writer.append_events(vec![note(number)]).await.expect("appended");
    }
    worked(&workspace).await.expect("all events are processed");
    assert_eq!(handle.calls.load(Ordering::SeqCst), 40);
    drop(workspace);
    running.close().await;

    handle.set(Mode::FindNothing);
    let again = engine(store.share(), about(vec![Hook::Enrich], OnError::Park), &handle).await;
    let workspace = enter(&again, &key).await.expect("a workspace");
    workspace.writer.append_events(vec![note(40)]).await.expect("appended");
    worked(&workspace).await.expect("the last event is processed");
    assert_eq!(handle.calls.load(Ordering::SeqCst), 1, "the plugin is called for the new event alone");
}
