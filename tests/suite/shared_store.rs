//! Tests two engines that append to the same streams of one store concurrently, like two servers.

use std::sync::Arc;

use foldwork_engine::clock::SystemClock;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::agent::AgentStatus;
use foldwork_engine::model::event::{Event, NewEvent, StreamExpectation};
use foldwork_engine::model::graph::Direction as Edges;
use foldwork_engine::model::json::MAX_STORED_DEPTH;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::workspace::Consistency;
use foldwork_engine::workspace::agents::{AgentChange, NewAgent};
use foldwork_engine::workspace::aggregates::StateMoment;
use foldwork_engine::workspace::events::{EventLimit, LogFilter, ReadDirection};
use foldwork_engine::workspace::listener::Heartbeat;
use foldwork_engine::{AppendBatch, AppendOutcome, Engine, EngineSettings, Error, Listener, Reader, Store};
use foldwork_server::serve::load_plugins;
use foldwork_tests::embedded::{engine, first};
use foldwork_tests::events::first_event;
use foldwork_tests::handles::{Handles, enter};

const WRITERS: usize = 4;
const EVENTS: usize = 12;
const STREAMS: usize = 3;

/// Returns the handles of one workspace on two engines.
async fn twins() -> [Handles; 2] {
    let store = Store::connect("mem://").await.expect("a store");
    let (one, two) = (engine(store.share()).await, engine(store.share()).await);
    let (workspace, key) = first(&one).await.expect("a workspace");
    [workspace, enter(&two, &key).await.expect("a workspace")]
}

/// Returns two engines that do not poll the store for each other's changes, and the key of one workspace.
async fn unpolled_engines() -> ([Arc<Engine>; 2], String) {
    let store = Store::connect("mem://").await.expect("a store");
    let open = async || {
        let mut settings = foldwork_server::Config::default().plugins;
        settings.enabled = vec!["linker".to_owned()];
        let plugins = load_plugins(&settings).expect("plugins");
        let settings = EngineSettings { pulse_ms: 3_600_000, ..EngineSettings::default() };
        Engine::open(store.share(), Arc::new(SystemClock), settings, plugins).await.expect("an engine")
    };
    let engines = [open().await, open().await];
    let (_, key) = first(&engines[0]).await.expect("a workspace");
    (engines, key)
}

fn event(stream: &str, title: String, expected: StreamExpectation) -> NewEvent {
    NewEvent {
        aggregate_id: stream.into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload: Object::from_iter([("title", Value::from(title))]),
        expected,
        ..NewEvent::default()
    }
}

/// Appends events and retries while the store is unavailable.
async fn append(workspace: &Handles, events: Vec<NewEvent>) -> Result<AppendOutcome, Error> {
    loop {
        match workspace.writer.append_events(events.clone()).await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_and_versions_have_no_gaps_or_duplicates() {
    let twins = twins().await;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let workspace = twins[writer % 2].clone();
        writers.push(tokio::spawn(async move {
            for number in 0..EVENTS {
                let stream = format!("s{}", number % STREAMS);
                let mut new = event(&stream, format!("{writer}/{number}"), StreamExpectation::Any);
                new.event_id = Some(format!("{writer}-{number}"));
                append(&workspace, vec![new]).await.expect("appended");
            }
        }));
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
    for workspace in &twins {
        let log = workspace
            .reader
            .log(0, EventLimit::events(1_000), &LogFilter::default(), std::time::Duration::ZERO)
            .await
            .expect("the log");
        let positions: Vec<u64> = log.items.iter().map(|event| event.position).collect();
        assert_eq!(positions, (1..=(WRITERS * EVENTS) as u64).collect::<Vec<_>>());
        let mut ids: Vec<&str> = log.items.iter().map(|event| &*event.event_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), WRITERS * EVENTS, "an event is in the log twice");
        for stream in 0..STREAMS {
            let page = workspace
                .reader
                .stream(&format!("s{stream}"), None, EventLimit::events(200), ReadDirection::Forward)
                .await
                .expect("a stream");
            let versions: Vec<u64> = page.items.iter().map(|event| event.version).collect();
            assert_eq!(versions, (1..=versions.len() as u64).collect::<Vec<_>>());
            let moment = foldwork_engine::workspace::aggregates::StateMoment::Now;
            let (state, _) = workspace.reader.aggregate(&format!("s{stream}"), moment).await.expect("a state");
            let last = page.items.last().expect("an event");
            assert_eq!((state.version, state.state.get("title")), (last.version, last.payload.get("title")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_of_several_appends_that_expect_the_same_version_succeeds() {
    let twins = twins().await;
    for version in 0..8u64 {
        let expected = if version == 0 { StreamExpectation::None } else { StreamExpectation::Version(version) };
        let attempts = (0..WRITERS).map(|writer| {
            let workspace = twins[writer % 2].clone();
            tokio::spawn(async move { append(&workspace, vec![event("s", format!("{writer}"), expected)]).await })
        });
        let mut won = 0;
        for attempt in attempts.collect::<Vec<_>>() {
            match attempt.await.expect("a writer") {
                Ok(appended) => {
                    won += 1;
                    assert_eq!(appended.events.first().map(|event| event.version), Some(version + 1));
                }
                Err(Error::Conflict { code, .. }) => assert_eq!(code, ErrorCode::VersionConflict),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(won, 1, "appends at version {version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_sent_to_both_servers_is_appended_once() {
    let twins = twins().await;
    let attempts = (0..WRITERS).map(|writer| {
        let workspace = twins[writer % 2].clone();
        let mut new = event("s", "same".into(), StreamExpectation::Any);
        new.event_id = Some("only-one".into());
        tokio::spawn(async move { append(&workspace, vec![new]).await })
    });
    let mut new = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        let appended = attempt.await.expect("a writer").expect("appended");
        assert_eq!(appended.events.first().map(|event| event.position), Some(1));
        new += usize::from(!appended.is_repeat());
    }
    assert_eq!(new, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_id_that_one_server_generated_is_known_to_the_other_server() {
    let ([one, two], key) = unpolled_engines().await;
    let (here, there) = (enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace"));
    for round in 0..3 {
        let new = event("s", format!("title {round}"), StreamExpectation::Any);
        let appended = append(&here, vec![new.clone()]).await.expect("appended");
        let id = &appended.events[0].event_id;
        let same = NewEvent { event_id: Some(id.to_string()), ..new };
        assert!(append(&there, vec![same]).await.expect("repeated").is_repeat());
        let appended = append(&here, vec![event("s", format!("later {round}"), StreamExpectation::Any)]).await;
        let id = appended.expect("appended").events[0].event_id.clone();
        let other = NewEvent { event_id: Some(id.to_string()), ..event("t", "other".into(), StreamExpectation::Any) };
        let refused = append(&there, vec![other]).await.expect_err("the id is taken");
        assert!(matches!(refused, Error::Conflict { code: ErrorCode::EventIdConflict, .. }), "unexpected {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_several_projects_with_the_same_slug_is_created() {
    let twins = twins().await;
    let attempts = (0..WRITERS).map(|writer| {
        let workspace = twins[writer % 2].clone();
        let new = foldwork_engine::workspace::projects::NewProject { name: "Docs".into(), ..Default::default() };
        tokio::spawn(async move {
            loop {
                match workspace.writer.create_project(new.clone()).await {
                    Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
                    other => return other.is_ok(),
                }
            }
        })
    });
    let mut won = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        won += usize::from(attempt.await.expect("a writer"));
    }
    assert_eq!(won, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_on_one_server_gets_events_appended_on_the_other_server() {
    let [here, there] = twins().await;
    append(&here, vec![event("s", "first".into(), StreamExpectation::None)]).await.expect("appended");
    let mut following = there.reader.follow_aggregate("s", 0).await.expect("a follower");
    for version in 1..=3 {
        let events = following.next(EventLimit::events(9), std::time::Duration::from_secs(60)).await.expect("events");
        assert_eq!(events.iter().map(|event| event.version).collect::<Vec<_>>(), [version]);
        append(&here, vec![event("s", "next".into(), StreamExpectation::Any)]).await.expect("appended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_append_is_rejected_because_of_a_stale_view() {
    let ([one, two], key) = unpolled_engines().await;
    let (here, there) = (enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace"));
    append(&here, vec![event("s", "first".into(), StreamExpectation::None)]).await.expect("appended");
    let appended =
        append(&there, vec![event("s", "second".into(), StreamExpectation::Version(1))]).await.expect("appended");
    assert_eq!(appended.events[0].version, 2);
    let trip = r#"{"type_name": "trip", "display_name": "Trip", "fields": [{"name": "to", "type": "string"}]}"#;
    let trip = serde_json::from_str(trip).expect("JSON");
    here.writer.define_type(&trip, false).await.expect("defined");
    let depart = NewEvent {
        aggregate_id: "t".into(),
        aggregate_type: "trip".into(),
        event_type: "trip.created".into(),
        payload: Object::from_iter([("to", Value::from("Riga"))]),
        ..NewEvent::default()
    };
    append(&there, vec![depart]).await.expect("the type is known");
    // A request that is also wrong for the newest state is rejected.
    let refused = append(&here, vec![event("s", "third".into(), StreamExpectation::Version(1))]).await;
    assert!(matches!(refused, Err(Error::Conflict { code: ErrorCode::VersionConflict, .. })));
    append(&here, vec![event("u", "fourth".into(), StreamExpectation::None)]).await.expect("appended");
    there.writer.delete_aggregate("u", StreamExpectation::Version(1)).await.expect("the aggregate is found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eventually_consistent_read_does_not_refresh_from_the_store() {
    let store = Store::connect("mem://").await.expect("a store");
    let engine = engine(store.share()).await;
    let (workspace, key) = engine.provision("a", None).await.expect("a workspace");
    let caller = engine.authenticate_eventually(&key, None).await.expect("a caller");
    let eventual: Reader = engine.enter_with(caller.clone(), Consistency::Eventual).await.expect("a right");
    let strong: Reader = engine.enter(caller).await.expect("a right");
    let handles = enter(&engine, &key).await.expect("a workspace");
    append(&handles, vec![event("s", "first".into(), StreamExpectation::None)]).await.expect("appended");
    strong.aggregate("s", StateMoment::Now).await.expect("the newest state");
    // Every refresh fails from here on, those of background tasks as well, because of an event that is too deep.
    let deep = (0..=MAX_STORED_DEPTH).fold(Value::Null, |inner, _| vec![inner].into());
    let deep = Event { position: 2, ..first_event("n", "article.changed", Object::from_iter([("deep", deep)])) };
    let log = store.share().workspace(&workspace.id).await.expect("a log");
    log.append(AppendBatch { events: &[Arc::new(deep).into()], ..AppendBatch::default() }).await.expect("appended");
    assert!(strong.aggregate("s", StateMoment::Now).await.is_err());
    eventual.aggregate("s", StateMoment::Now).await.expect("the known state");
}

#[tokio::test(flavor = "multi_thread")]
async fn types_and_agents_are_the_same_on_every_server() {
    let ([one, two], key) = unpolled_engines().await;
    let (here, there) = (enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace"));
    let new = NewAgent { name: "A".into(), ..NewAgent::default() };
    let id = here.writer.create_agent(new).await.expect("an agent").0.agent.id.text();
    let present = async |reader: &Reader| reader.agent(&id).await.expect("the agent").status;
    assert_eq!(present(&there.reader).await, AgentStatus::Offline);
    let listener: Listener = one.listen(&key).await.expect("a right");
    listener.heartbeat(Heartbeat { agent_ids: vec![id.to_string()], ..Heartbeat::default() }).await.expect("a beat");
    assert_eq!(present(&there.reader).await, AgentStatus::Active);
    let (agent, elsewhere) = (listener.agent(&id).await.expect("an agent"), two.listen(&key).await.expect("a right"));
    append(&here, vec![event("s", "first".into(), StreamExpectation::None)]).await.expect("appended");
    let end = here.reader.position();
    listener.acknowledge(&agent, end).await.expect("acknowledged");
    assert_eq!(elsewhere.cursor(&elsewhere.agent(&id).await.expect("an agent")).await.expect("a cursor"), end);
    let trip = serde_json::from_str(r#"{"type_name": "trip", "display_name": "Trip", "fields": []}"#).expect("JSON");
    here.writer.define_type(&trip, false).await.expect("defined");
    let types = there.reader.list_types().await.expect("types");
    assert!(types.iter().any(|definition| &*definition.type_name == "trip"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_and_the_counts_of_plugin_calls_are_the_same_on_every_server() {
    let ([one, two], key) = unpolled_engines().await;
    let (here, there) = (enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace"));
    let around = async |reader: &Reader| {
        let around = reader.graph("from", 1, Vec::new(), Edges::Both, false, None).await.expect("a graph");
        around.edges.len()
    };
    let mut target = event("to", "Rivers".into(), StreamExpectation::None);
    target.payload.push("slug", "rivers");
    append(&here, vec![target]).await.expect("appended");
    let mut linked = event("from", "Lakes".into(), StreamExpectation::None);
    linked.payload.push("body", "See [rivers](rivers.md).");
    append(&here, vec![linked]).await.expect("appended");
    // The server that opened the workspace first is the leader.
    here.reader.worked().await;
    assert_eq!((around(&here.reader).await, around(&there.reader).await), (1, 1));
    let calls = async |reader: &Reader| {
        let plugins = reader.plugins().await.expect("plugins");
        plugins.iter().map(|plugin| plugin.measures.clone()).collect::<Vec<_>>()
    };
    let counted = calls(&here.reader).await;
    assert_eq!(counted.iter().map(|measures| measures.runs).sum::<u64>(), 2);
    assert_eq!(calls(&there.reader).await, counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_is_complete_after_another_server_takes_over() {
    let ([one, two], key) = unpolled_engines().await;
    let (here, there) = (enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace"));
    let edges = async |reader: &Reader, id: &str| {
        reader.graph(id, 1, Vec::new(), Edges::Both, false, None).await.expect("a graph").edges.len()
    };
    let mut target = event("to", "Rivers".into(), StreamExpectation::None);
    target.payload.push("slug", "rivers");
    append(&here, vec![target]).await.expect("appended");
    let link = async |workspace: &Handles, id: &str| {
        let mut linked = event(id, "Lakes".into(), StreamExpectation::None);
        linked.payload.push("body", "See [rivers](rivers.md).");
        append(workspace, vec![linked]).await.expect("appended");
    };
    for id in ["a", "b", "c"] {
        link(&here, id).await;
    }
    here.reader.worked().await;
    // The other server has not read these events yet.
    let rebuilt = there.writer.rebuild_graph().await.expect("rebuilt");
    assert_eq!((rebuilt.events, rebuilt.edges), (here.reader.position(), 3));
    // The first server no longer leads.
    link(&there, "d").await;
    there.reader.worked().await;
    for id in ["a", "c", "d"] {
        assert_eq!((edges(&here.reader, id).await, edges(&there.reader, id).await), (1, 1), "{id}");
    }
    assert_eq!(edges(&here.reader, "to").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_applied_even_if_a_stale_state_already_has_the_new_value() {
    let ([one, two], key) = unpolled_engines().await;
    let (here, there) = (enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace"));
    let new = NewAgent { name: "helper".into(), ..NewAgent::default() };
    let id = here.writer.create_agent(new).await.expect("an agent").0.agent.id.text();
    let change = async |workspace: &Handles, is_disabled| {
        let change = AgentChange { is_disabled: Some(is_disabled), ..AgentChange::default() };
        let changed = workspace.writer.change_agent(&id, change, StreamExpectation::Any).await;
        changed.expect("changed").agent.version
    };
    assert_eq!(change(&there, false).await, 1, "the version is unchanged");
    assert_eq!(change(&here, true).await, 2);
    assert_eq!(change(&there, false).await, 3);
    assert_eq!(change(&here, false).await, 3, "the version is unchanged");
}
