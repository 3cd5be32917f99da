//! Starts the server from the configuration, runs it, and shuts it down in order after a signal.

mod connections;
mod socket;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use connections::Serving;
use foldwork_engine::clock::SystemClock;
use foldwork_engine::{Engine, Plugins, Sizes, Store};
use tokio::net::{TcpListener, TcpSocket};

use crate::application::application;
use crate::config::Config;
use crate::http::shutdown::Shutdown;
use crate::{auth, config, embedding, telemetry};

/// The maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1_024;

/// The time limit for closing open workspaces on shutdown. The limit starts after connections have ended or `[http]
/// stop_timeout_s` has passed.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);
/// The time that the process may run after the time limit for closing workspaces.
const END_WITHIN: Duration = Duration::from_millis(500);

/// The interval between checks of the memory of open workspaces.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// A server that is listening and ready to run.
pub struct Listening {
    pub address: SocketAddr,
    config: Config,
    listener: TcpListener,
    engine: Arc<Engine>,
}

/// Opens the store and its workspaces, and starts to listen. On the first start, prints the owner key.
pub async fn listen(config: Config) -> anyhow::Result<Listening> {
    let chosen = std::env::var("FOLDWORK_BOOTSTRAP_KEY").ok();
    listen_with(config, chosen, print_key).await
}

/// Like [`listen`], with a given owner key for the first start. If no owner key is given, the server creates a key and
/// passes the key to `show`.
///
/// The first start stores the key only after the settings, the plugins, the embedding, the address and the store have
/// been opened, because each of these steps can fail. The key is shown after it is stored.
pub async fn listen_with(
    config: Config,
    chosen: Option<String>,
    show: impl FnOnce(&str) -> std::io::Result<()>,
) -> anyhow::Result<Listening> {
    telemetry::start_metrics(&config.metrics).await?;
    let plugins = load_plugins(&config.plugins)?;
    let embed = embedding::open(&config.search.embedding)?;
    let socket = bind(&config.http.listen).await.with_context(|| format!("cannot listen on {}", config.http.listen))?;
    let store = open_store(&config).await?;
    let engine = Engine::open(store, Arc::new(SystemClock), config.engine(), plugins).await?;
    auth::decide(&engine, &config)?;
    if let Some(embed) = embed {
        engine.embed_with(embed);
    }
    let was_chosen = chosen.is_some();
    if let Some(first) = engine.first_start(chosen).await?
        && !was_chosen
    {
        show(&first.key).context("the owner key cannot be shown; set FOLDWORK_BOOTSTRAP_KEY to replace it")?;
    }
    engine.open_all().await?;
    // The operating system refuses connections before this call.
    let listener = socket.listen(BACKLOG).with_context(|| format!("cannot listen on {}", config.http.listen))?;
    let address = listener.local_addr()?;
    Ok(Listening { address, config, listener, engine })
}

fn print_key(key: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "owner key (shown once): {key}")?;
    out.flush()
}

/// Binds the address without listening yet. No other process can then bind the same address.
async fn bind(address: &str) -> std::io::Result<TcpSocket> {
    let mut failed = std::io::Error::new(std::io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in tokio::net::lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Allows binding although closed connections of an earlier server still use the address.
        socket.set_reuseaddr(true)?;
        match socket.bind(address) {
            Ok(()) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Loads the plugins. An invalid plugin prevents the server from starting.
pub fn load_plugins(settings: &config::Plugins) -> anyhow::Result<Plugins> {
    let config::Plugins { enabled, folder, settings, limits, threads } = settings;
    let plugins =
        foldwork_plugins::load(enabled, folder.as_ref(), settings, *limits).context("a plugin cannot be loaded")?;
    let names: Vec<&str> = plugins.iter().map(|plugin| &*plugin.about().name).collect();
    tracing::info!(plugins = names.join(","), "plugins loaded");
    Ok(Plugins::new(plugins, *threads)?)
}

/// Opens the store and the storage of files that the configuration names.
pub async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let url = &config.store.url;
    if let Some(path) = url.strip_prefix("surrealkv://")
        && let Some(parent) = std::path::Path::new(path).parent()
    {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        survive_file_limit();
    }
    let sizes = Sizes { memtable_bytes: config.store.memtable_bytes, cache_bytes: config.store.cache_bytes };
    let store = Store::connect_with(url, &sizes).await.with_context(|| format!("cannot open the store {url}"))?;
    let files = &config.files.url;
    let store =
        store.with_files(files, std::env::vars()).with_context(|| format!("cannot open the file store {files}"))?;
    if let (Ok(user), Ok(password)) = (std::env::var("FOLDWORK_STORE_USER"), std::env::var("FOLDWORK_STORE_PASSWORD")) {
        store.sign_in(&user, &password).await.context("cannot sign in to the store")?;
    }
    Ok(store)
}

impl Listening {
    /// Returns the URL of the server for clients.
    pub fn url(&self) -> String {
        self.config.public_url(&self.address.to_string())
    }

    /// Prints the address that the server listens on.
    pub fn announce(&self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "listening on http://{}", self.address)?;
        out.flush()
    }

    /// Serves requests until `signal` completes, then waits for requests in flight and closes the workspaces.
    pub async fn run(self, signal: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<()> {
        let Listening { address, config, listener, engine } = self;
        let shutdown = Shutdown::default();
        let keeper = tokio::spawn(keep_memory(engine.clone()));
        let app = application(engine.clone(), &config, shutdown.clone());
        let stop = async {
            signal.await;
            shutdown.begin();
            tracing::info!("stopping");
        };
        let serving = Serving::new(app, address, &config.http).run(listener, &shutdown);
        let (mut open, ()) = tokio::join!(serving, stop);
        let all_closed = async {
            while open.join_next().await.is_some() {}
            shutdown.released().await;
        };
        if tokio::time::timeout(Duration::from_secs(config.http.stop_timeout_s), all_closed).await.is_err() {
            tracing::warn!(connections = open.len(), "connections are closed because they did not end in time");
            open.shutdown().await;
        }
        // Aborting the task does not interrupt a workspace that is being closed.
        keeper.abort();
        if tokio::time::timeout(CLOSE_WITHIN, engine.close()).await.is_err() {
            tracing::warn!("workspaces are aborted because they did not close in time");
        }
        Ok(())
    }
}

/// Checks the memory of open workspaces at regular intervals, and closes idle workspaces if the limit is exceeded.
async fn keep_memory(engine: Arc<Engine>) {
    let mut interval = tokio::time::interval(MEMORY_CHECK_INTERVAL);
    loop {
        interval.tick().await;
        if let Err(error) = engine.close_idle().await {
            tracing::error!(%error, "idle workspaces cannot be closed");
        }
    }
}

/// Makes a write beyond the process's file size limit fail with an error, as on a full disk, instead of ending the
/// process.
fn survive_file_limit() {
    const SIGXFSZ: i32 = 25;
    // A signal handler replaces the default action, which ends the process.
    if let Err(error) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ)) {
        tracing::warn!(%error, "exceeding the file size limit would end the process");
    }
}

/// Shuts down the runtime without waiting. Work that still occupies a thread, such as a pipeline, ends with the
/// process.
pub fn end(runtime: tokio::runtime::Runtime) {
    runtime.shutdown_timeout(END_WITHIN);
}

/// Ends the process in bounded time after a stop signal, even if its threads are blocked.
///
/// A separate thread waits for the deadline, because work that blocks every thread of the server's runtime also blocks
/// the runtime's timers. All acknowledged writes are on disk at the deadline, so the exit code is the code of an
/// orderly end.
pub fn end_in_time(config: &Config) -> anyhow::Result<()> {
    let limit = Duration::from_secs(config.http.stop_timeout_s) + CLOSE_WITHIN + END_WITHIN;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wait = move || {
        runtime.block_on(async {
            stop_signal().await;
            tokio::time::sleep(limit).await;
        });
        tracing::warn!("the process ends with work in progress because it did not end in time");
        std::process::exit(0);
    };
    std::thread::Builder::new().name("stop".into()).spawn(wait)?;
    Ok(())
}

/// Waits for SIGTERM or SIGINT.
pub async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(interrupt.await),
    }
}
