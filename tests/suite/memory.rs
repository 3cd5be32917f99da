//! Tests that unused workspaces are closed when the memory limit is exceeded, and are opened again without loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use foldwork_engine::model::event::NewEvent;
use foldwork_engine::model::value::Value;
use foldwork_engine::workspace::aggregates::StateMoment;
use foldwork_engine::workspace::query::Query;
use foldwork_engine::{Engine, EngineSettings, Error, Plugins, Store};
use foldwork_server::Config;
use foldwork_server::config::DataSize;
use foldwork_tests::clock::FixedClock;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::server::{Server, close_down_to};

fn config() -> Config {
    let mut config = Config::default();
    config.memory.resident = DataSize(1);
    // Disables plugins, because their agents would append events to the log.
    config.plugins.enabled.clear();
    config
}

fn event(id: &str, number: i64) -> NewEvent {
    NewEvent {
        aggregate_id: id.into(),
        aggregate_type: "article".into(),
        event_type: "article.changed".into(),
        payload: [("n", Value::Int(number))].into_iter().collect(),
        ..NewEvent::default()
    }
}

const MINUTE_MS: i64 = 60_000;

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_in_use_or_entered_recently_are_not_closed() {
    let server = Server::start_with(&config()).await.expect("a server");
    let owner = server.workspace("owner").await.expect("a workspace");
    owner.writer.append_events(vec![event("a", 1)]).await.expect("appended");
    server.pass(MINUTE_MS).await.expect("the timers");
    let other = server.workspace("other").await.expect("a workspace");
    other.writer.append_events(vec![event("b", 1)]).await.expect("appended");
    server.pass(60 * MINUTE_MS).await.expect("the timers");
    // A workspace with a held handle is in use, no matter how long ago it was entered.
    assert_eq!(server.engine.close_idle().await.expect("closed"), 2);
    drop(owner);
    close_down_to(&server.engine, 1).await.expect("closed");
    let owner = server.workspace("owner").await.expect("a workspace");
    assert_eq!(owner.reader.position(), 1);
    assert_eq!(owner.writer.append_events(vec![event("a", 2)]).await.expect("appended").events[0].version, 2);
    drop((owner, other));
    // No handle is held, but the workspace was entered recently.
    assert_eq!(server.engine.close_idle().await.expect("closed"), 1);
    server.pass(60 * MINUTE_MS).await.expect("the timers");
    close_down_to(&server.engine, 0).await.expect("closed");
    assert_eq!(server.workspace("other").await.expect("a workspace").reader.position(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_workspace_without_events_is_closed() {
    let server = Server::start_with(&config()).await.expect("a server");
    server.workspace("owner").await.expect("a workspace");
    server.pass(60 * MINUTE_MS).await.expect("the timers");
    close_down_to(&server.engine, 0).await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_limit_no_workspace_is_closed() {
    let server = Server::start().await.expect("a server");
    server.workspace("owner").await.expect("a workspace");
    server.pass(600 * MINUTE_MS).await.expect("the timers");
    assert_eq!(server.engine.close_idle().await.expect("closed"), 1);
}

async fn write(engine: Arc<Engine>, key: String, id: String) {
    for number in 0..40 {
        let workspace = enter(&engine, &key).await.expect("a workspace");
        if number % 5 == 0 {
            // Dropping the future leaves the append running.
            let append = workspace.writer.append_events(vec![event(&format!("{id}-left"), number)]);
            drop(tokio::time::timeout(Duration::ZERO, append).await);
        }
        workspace.writer.append_events(vec![event(&id, number)]).await.expect("appended");
        drop(workspace);
        tokio::task::yield_now().await;
    }
}

async fn close(engine: Arc<Engine>, closed: Arc<AtomicUsize>) {
    loop {
        let open = engine.close_idle().await.expect("closed");
        closed.fetch_add(usize::from(open == 0), Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
}

async fn checked(workspace: &Handles, writers: usize) -> Result<(), Error> {
    for writer in 0..writers {
        let (state, _) = workspace.reader.aggregate(&format!("w{writer}"), StateMoment::Now).await?;
        assert_eq!((state.version, state.state.get("n").cloned()), (40, Some(Value::Int(39))));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_events_are_lost_while_workspaces_close_and_open() {
    const WRITERS: usize = 3;
    let clock = Arc::new(FixedClock::default());
    let store = Store::connect("mem://").await.expect("a store");
    let settings = EngineSettings { resident_bytes: 1, idle_ms: 0, ..Default::default() };
    let engine =
        Engine::open(store, clock.clone(), settings, Plugins::none().expect("no plugins")).await.expect("an engine");
    let key = engine.first_start(None).await.expect("a start").expect("the store is empty").key;
    let writing: Vec<_> =
        (0..WRITERS).map(|writer| tokio::spawn(write(engine.clone(), key.clone(), format!("w{writer}")))).collect();
    let closed = Arc::new(AtomicUsize::new(0));
    let closer = tokio::spawn(close(engine.clone(), closed.clone()));
    for writer in writing {
        writer.await.expect("a writer");
    }
    closer.abort();
    assert!(closed.load(Ordering::SeqCst) > 0);
    let workspace = enter(&engine, &key).await.expect("a workspace");
    checked(&workspace, WRITERS).await.expect("states");
    let rows = workspace.reader.query(Query::new(Value::from(Vec::<Value>::new()))).await;
    let positions: Vec<i64> =
        rows.expect("events").rows.iter().filter_map(|row| row.get("position")?.as_int()).collect();
    assert_eq!(positions, (1..=positions.len() as i64).collect::<Vec<_>>());
}
