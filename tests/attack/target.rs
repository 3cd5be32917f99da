//! What is attacked: a server on threads of its own, so that an attack which holds them up does not hold up itself.

use std::thread::JoinHandle;

use foldwork_server::Config;
use foldwork_server::serve::listen_with;
use foldwork_tests::expectation::root;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::PATIENCE;
use crate::client::Client;

/// As few as the smallest machine has: what blocks them is noticed.
const THREADS: usize = 2;

/// A server that is attacked.
pub struct Target {
    pub client: Client,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<anyhow::Result<()>>,
    thread: JoinHandle<()>,
    _folder: TempDir,
}

impl Target {
    pub async fn start() -> Target {
        Target::launch(without_plugins()).await
    }

    /// With the plugin that fails when it is told to.
    pub async fn start_shaky() -> Target {
        Target::launch(shaky()).await
    }

    async fn launch(mut config: Config) -> Target {
        let folder = tempfile::tempdir().expect("a folder");
        config.http.listen = "127.0.0.1:0".into();
        config.store.url = format!("surrealkv://{}", folder.path().join("db").display());
        let key = format!("sk_{}", "5".repeat(64));
        let (stop, stopped) = oneshot::channel();
        let (listens, address) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let chosen = Some(key.clone());
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(THREADS).enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listening = listen_with(config, chosen).await.expect("a server");
                listens.send(listening.address).expect("somebody waits");
                // Nobody waits where the attack has failed.
                let _ = ends.send(listening.run(async move { drop(stopped.await) }).await);
            });
        });
        let address = timeout(PATIENCE, address).await.expect("it starts").expect("it listens");
        Target { client: Client { address, key }, stop, ended, thread, _folder: folder }
    }

    /// Stops the server, which still ends as it should.
    pub async fn end(self) {
        self.stop.send(()).expect("it runs");
        let ended = timeout(PATIENCE, self.ended).await.expect("it ends");
        ended.expect("no panic").expect("an orderly end");
        self.thread.join().expect("no panic");
    }
}

/// What they append would stand among what is attacked.
fn without_plugins() -> Config {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    config
}

fn shaky() -> Config {
    let mut config = Config::default();
    config.plugins.folder = root().join("tests/plugins").to_string_lossy().into_owned();
    config.plugins.enabled = vec!["shaky".into()];
    config
}
