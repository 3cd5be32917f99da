//! One workspace that cannot be loaded is closed to who asks for it, and nobody else notices.

use std::sync::Arc;

use crate::clock::SystemClock;
use crate::model::definition::{Definition, Field, FieldType};
use crate::{Engine, Error, Plugins, Reader, Settings, Store};

async fn enter(engine: &Arc<Engine>, key: &str) -> crate::Result<Reader> {
    let caller = engine.authenticate(key).await?;
    engine.enter(caller).await
}

async fn engine(store: &Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    Engine::open(store.share(), Arc::new(SystemClock), Settings::default(), plugins).await.expect("an engine")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_cannot_be_loaded_keeps_no_other_closed() {
    let store = Store::connect("mem://").await.expect("a store");
    let first = engine(&store).await;
    let (broken, broken_key) = first.provision("broken", None).await.expect("a workspace");
    let (_, whole_key) = first.provision("whole", None).await.expect("a workspace");
    let definition = |field: &str| {
        let fields = vec![Field::new(field, FieldType::String)];
        Definition::new("note", "Note", Vec::new(), fields)
    };
    let log = store.workspace(&broken.id).await.expect("a database");
    // A name like this is reserved: what is stored cannot be read.
    log.write_definition(&definition("_secret")).await.expect("written");

    let engine = engine(&store).await;
    engine.open_all().await.expect("the others are open");
    assert_eq!(engine.workspaces_failed(), 1);
    assert!(matches!(enter(&engine, &broken_key).await, Err(Error::Unavailable(_))));
    enter(&engine, &whole_key).await.expect("it is served");

    // It is tried again by whoever asks next.
    log.write_definition(&definition("text")).await.expect("written");
    enter(&engine, &broken_key).await.expect("it is served");
    assert_eq!(engine.workspaces_failed(), 0);
}
