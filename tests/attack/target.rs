//! The server under attack. The server runs on its own threads, so that an attack that blocks these threads does not
//! block the test.

use std::path::Path;
use std::thread::JoinHandle;

use foldwork_engine::model::value::{Object, Value};
use foldwork_server::Config;
use foldwork_server::serve::listen_with;
use foldwork_tests::expectation::root;
use tempfile::TempDir;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, oneshot};
use tokio::time::timeout;

use crate::TIMEOUT;
use crate::client::Client;

/// The number of threads of the server. The number is small, so that a test notices if an attack blocks threads.
const THREADS: usize = 2;
/// The lock that each attack in this process holds while its server runs. An attack that measures the process holds the
/// lock exclusively.
static PROCESS: RwLock<()> = RwLock::const_new(());

#[expect(dead_code, reason = "held for as long as the server runs")]
enum Share {
    Alone(RwLockWriteGuard<'static, ()>),
    WithOthers(RwLockReadGuard<'static, ()>),
}

/// A server under attack.
pub struct Target {
    pub client: Client,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<anyhow::Result<()>>,
    thread: JoinHandle<()>,
    folder: TempDir,
    share: Share,
}

impl Target {
    /// Starts a server without plugins.
    pub async fn start() -> Target {
        Target::launch(without_plugins(), folder(), Share::WithOthers(PROCESS.read().await)).await
    }

    /// Starts a server with the plugin `shaky`, which fails for events whose payload requests a failure.
    pub async fn start_shaky() -> Target {
        Target::launch(shaky(false), folder(), Share::WithOthers(PROCESS.read().await)).await
    }

    /// Restarts the server with the same data, without plugins.
    pub async fn restart(self) -> Target {
        self.restart_with(without_plugins()).await
    }

    /// Restarts the server with the same data. The plugin `shaky` does not fail after the restart.
    pub async fn restart_fixed(self) -> Target {
        self.restart_with(shaky(true)).await
    }

    async fn restart_with(self, config: Config) -> Target {
        let (old_folder, share) = self.stop().await;
        // A store stays locked until its process ends, so the new server opens a copy.
        let folder = folder();
        copy(old_folder.path(), folder.path()).expect("the store is copied");
        Target::launch(config, folder, share).await
    }

    /// Starts a server while no other attack runs in this process.
    pub async fn start_alone() -> Target {
        Target::launch(without_plugins(), folder(), Share::Alone(PROCESS.write().await)).await
    }

    async fn launch(mut config: Config, folder: TempDir, share: Share) -> Target {
        config.http.listen = "127.0.0.1:0".into();
        // The attacks come from one address, and use keys that they have revoked.
        config.http.wrong_token_limit_per_minute = 0;
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
                let listening = listen_with(config, chosen, |_| Ok(())).await.expect("a server");
                listens.send(listening.address).expect("the test waits for the address");
                // Ignores an error: if the attack has failed, the channel is closed.
                let _ = ends.send(listening.run(async move { drop(stopped.await) }).await);
            });
        });
        let address = timeout(TIMEOUT, address).await.expect("the server starts").expect("the server listens");
        Target { client: Client { address, key }, stop, ended, thread, folder, share }
    }

    /// Stops the server and checks that it still shuts down cleanly.
    pub async fn end(self) {
        self.stop().await;
    }

    async fn stop(self) -> (TempDir, Share) {
        self.stop.send(()).expect("the server runs");
        let ended = timeout(TIMEOUT, self.ended).await.expect("the server ends");
        ended.expect("no panic").expect("an orderly end");
        self.thread.join().expect("no panic");
        (self.folder, self.share)
    }
}

/// Copies a folder with its content, except for lock files.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false if entry.file_name() == "LOCK" => {}
            false => drop(std::fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Returns a configuration without plugins, because plugins could append events between the events of the attack.
fn without_plugins() -> Config {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    config
}

fn shaky(fixed: bool) -> Config {
    let mut config = Config::default();
    config.plugins.folder = root().join("tests/plugins").to_string_lossy().into_owned();
    config.plugins.enabled = vec!["shaky".into()];
    let settings = Object::from_iter([("fixed", Value::Bool(fixed))]);
    config.plugins.settings.insert("shaky".into(), settings);
    config
}
