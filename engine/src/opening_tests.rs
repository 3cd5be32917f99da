//! Tests that opening a workspace either produces a complete runtime or leaves nothing running, and that a server opens
//! the workspaces that a stopped server led.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::poll;

use crate::clock::SystemClock;
use crate::hook::{Candidates, OnError, Plugin, PluginAgent, PluginDescription, Subscription};
use crate::model::definition::{Definition, Field, FieldType};
use crate::model::event::{Event, NewEvent};
use crate::model::value::{Object, Value};
use crate::store::workspace::append::AppendBatch;
use crate::{Engine, EngineSettings, Error, Plugins, Store, Writer};

/// The time limit for tasks to end on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A plugin without hooks. A workspace registers the plugin's agent when the workspace is opened.
struct Agent(PluginDescription);

impl Plugin for Agent {
    fn about(&self) -> &PluginDescription {
        &self.0
    }
}

fn plugins() -> Plugins {
    let agent = PluginAgent { description: "d".into(), traits: Vec::new(), capabilities: Object::new() };
    let about = PluginDescription {
        name: "probe".into(),
        version: "1.0.0".into(),
        description: "d".into(),
        agent: Some(agent),
        hooks: Vec::new(),
        on: Subscription { events: Vec::new(), traits: Vec::new() },
        on_error: OnError::Park,
        settings: Object::new(),
        tool: None,
        candidates: Candidates::default(),
    };
    Plugins::new(vec![Arc::new(Agent(about))], 1).expect("plugins")
}

/// Returns an engine with its own store, and a second handle on that store. Tests write to the store through the second
/// handle. Tests count the running tasks by the references to `clock`, because every task that works on a workspace
/// holds a reference.
async fn engine(clock: &Arc<SystemClock>) -> (Arc<Engine>, Store) {
    let store = Store::connect("mem://").await.expect("a store");
    let beside = store.share();
    // Unused workspaces may be closed right away.
    let settings = EngineSettings { resident_bytes: 1, idle_ms: -1, ..EngineSettings::default() };
    let engine = Engine::open(store, clock.clone(), settings, plugins()).await.expect("an engine");
    (engine, beside)
}

async fn enter(engine: &Arc<Engine>, key: &str) -> crate::Result<Writer> {
    let caller = engine.authenticate(key).await?;
    engine.enter(caller).await
}

/// Waits until the clock has at most `before` references.
async fn released(clock: &Arc<SystemClock>, before: usize) {
    let began = Instant::now();
    while Arc::strong_count(clock) > before {
        assert!(began.elapsed() < TIMEOUT, "{} more tasks hold the clock", Arc::strong_count(clock) - before);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn note(id: &str) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload: Object::from_iter([("title", Value::from(id))]),
        ..NewEvent::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_opening_of_a_workspace_stops_its_background_tasks() {
    let clock = Arc::new(SystemClock);
    let (engine, beside) = engine(&clock).await;
    let (record, key) = engine.provision("w", None).await.expect("a workspace");
    // The agent's id is already taken by an aggregate whose type has no definition.
    let log = beside.workspace(&record.id).await.expect("a database");
    let taken = Event {
        event_id: crate::model::id::event_id(0, 1, 1).to_string().into(),
        ..Event::sample("agent-probe", "unknown.created", 1)
    };
    log.append(AppendBatch { events: &[Arc::new(taken).into()], ..AppendBatch::default() }).await.expect("written");

    let before = Arc::strong_count(&clock);
    for _ in 0..3 {
        assert!(matches!(enter(&engine, &key).await, Err(Error::Unavailable(_))), "the agent was registered");
        released(&clock, before).await;
    }
    assert_eq!(engine.workspaces_failed(), 1);

    // Once the definition exists, the agent gets another id.
    let definition = Definition::new("unknown", "Unknown", Vec::new(), vec![Field::new("a", FieldType::String)]);
    log.write_definition(&definition).await.expect("written");
    let writer = enter(&engine, &key).await.expect("the workspace opens");
    writer.append_events(vec![note("a")]).await.expect("appended");
    let events = log.read_after(0, 100).await.expect("events");
    assert_eq!(events.iter().map(|event| event.position).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(events[1].aggregate_id.as_str(), "agent-probe-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_request_to_open_a_workspace_leaves_no_second_runtime() {
    let clock = Arc::new(SystemClock);
    let (engine, beside) = engine(&clock).await;
    let (record, key) = engine.provision("w", None).await.expect("a workspace");
    let caller = engine.authenticate(&key).await.expect("a caller");
    let before = Arc::strong_count(&clock);
    let mut appended = Vec::new();
    for polls in 0..40 {
        {
            let mut leaving = pin!(engine.enter::<Writer>(caller.clone()));
            for _ in 0..polls {
                if poll!(leaving.as_mut()).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let writer: Writer = engine.enter(caller.clone()).await.expect("the workspace opens");
        let written = writer.append_events(vec![note("a")]).await.expect("appended");
        appended.push(written.events[0].position);
        drop((written, writer));
        // Only one runtime is open, and no other runtime is left.
        while engine.close_idle().await.expect("closed") > 0 {
            tokio::task::yield_now().await;
        }
        released(&clock, before).await;
    }
    // The first event of the log registers the plugin's agent.
    assert_eq!(appended, (2..42).collect::<Vec<_>>());
    let log = beside.workspace(&record.id).await.expect("a database");
    let positions: Vec<u64> =
        log.read_after(0, 100).await.expect("events").iter().map(|event| event.position).collect();
    assert_eq!(positions, (1..42).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_opens_the_workspaces_that_a_stopped_server_led() {
    let store = Store::connect("mem://").await.expect("a store");
    let open = async || {
        let clock = Arc::new(SystemClock);
        Engine::open(store.share(), clock, EngineSettings::default(), plugins()).await.expect("an engine")
    };
    let (one, two) = (open().await, open().await);
    let (record, key) = one.provision("w", None).await.expect("a workspace");
    let writer = enter(&one, &key).await.expect("opened");
    writer.append_events(vec![note("a")]).await.expect("appended");
    let leads = |engine: &Arc<Engine>| engine.leads(&record.id);
    let until_led = async |engine: &Arc<Engine>| {
        let began = Instant::now();
        while !leads(engine) {
            assert!(began.elapsed() < TIMEOUT, "the engine does not lead the workspace");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    until_led(&one).await;
    assert!(!leads(&two));
    one.close().await;
    until_led(&two).await;
}
