//! Tests that a workspace that fails to load is unavailable, and that other workspaces are not affected.

use std::sync::Arc;

use crate::clock::SystemClock;
use crate::model::event::Event;
use crate::model::json::MAX_STORED_DEPTH;
use crate::model::value::{Object, Value};
use crate::state::NODES;
use crate::store::workspace::append::AppendBatch;
use crate::{Engine, EngineSettings, Error, Plugins, Reader, Store};

async fn enter(engine: &Arc<Engine>, key: &str) -> crate::Result<Reader> {
    let caller = engine.authenticate(key).await?;
    engine.enter(caller).await
}

async fn engine(store: &Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), Arc::new(SystemClock), EngineSettings::default(), plugins).await.expect("an engine")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_fails_to_load_is_loaded_again_by_the_next_request() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = engine(&store).await;
    let (broken, broken_key) = first.provision("broken", None).await.expect("a workspace");
    let (_, whole_key) = first.provision("whole", None).await.expect("a workspace");
    let log = store.workspace(&broken.id).await.expect("a database");
    // The payload is nested deeper than any reader of the log allows, and no snapshot replaces the event.
    let deep = (0..=MAX_STORED_DEPTH).fold(Value::Null, |inner, _| vec![inner].into());
    let event =
        Event { payload: Arc::new(Object::from_iter([("deep", deep)])), ..Event::sample("n", "article.changed", 1) };
    log.append(AppendBatch { events: &[Arc::new(event).into()], ..AppendBatch::default() }).await.expect("written");

    let engine = engine(&store).await;
    engine.open_all().await.expect("the other workspaces are open");
    assert_eq!(engine.workspaces_failed(), 1);
    assert!(matches!(enter(&engine, &broken_key).await, Err(Error::Unavailable(_))));
    enter(&engine, &whole_key).await.expect("the workspace opens");

    // The next request tries to load the workspace again.
    log.write_nodes(&[], None, Some((NODES, 1)), None).await.expect("written");
    enter(&engine, &broken_key).await.expect("the workspace opens");
    assert_eq!(engine.workspaces_failed(), 0);
}
