//! An engine without a server, with the system's clock and without plugins.

use std::sync::Arc;

use anyhow::Context;
use foldwork_engine::clock::SystemClock;
use foldwork_engine::{Engine, EngineSettings, Plugins, Store};

use crate::handles::{Handles, enter};

/// The time limit of pipelines, in milliseconds. The limit is long, because the engine has the system's clock, and a
/// busy machine may suspend the tests for seconds.
const PIPELINE_MS: u64 = 600_000;

/// Opens an engine over a store. Several engines can share one store through clones of its handle.
pub async fn engine(store: Store) -> Arc<Engine> {
    let plugins = Plugins::none().expect("no plugins");
    let settings = EngineSettings { pipeline_ms: PIPELINE_MS, ..EngineSettings::default() };
    Engine::open(store, Arc::new(SystemClock), settings, plugins).await.expect("an engine")
}

/// Creates the first workspace of an empty store. Returns the owner's handles and the owner's key.
pub async fn first(engine: &Arc<Engine>) -> anyhow::Result<(Handles, String)> {
    let key = engine.first_start(None).await?.context("the store is not empty")?.key;
    Ok((enter(engine, &key).await?, key))
}
