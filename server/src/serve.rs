//! Starts the server from the configuration, runs the server, and shuts it down in order after a signal.
//!
//! After a signal and the delay `[http] stop_delay`, the server waits for three steps, one after the other: at most
//! `[http] stop_timeout` until the requests end, at most 3 s until the last events are archived, and at most 3 s until
//! the workspaces are closed. A workspace that is closed in time writes the checkpoints of its consumer, so after the
//! next start, no plugin is called again for an event that the plugin has already processed. A separate thread ends the
//! process half a second after these time limits, even if the other threads are blocked.

pub mod backup;
pub mod check;
mod connections;
mod measurement;
pub mod place;
mod socket;
pub mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use connections::ConnectionServer;
use foldwork_engine::archive::Backups;
use foldwork_engine::clock::StoreClock;
use foldwork_engine::model::access::is_key;
use foldwork_engine::{Engine, Error, Plugins, Sizes, Store};
use foldwork_plugins::Scripts;
use place::{DataFolder, absolute};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::application::application_with_backups;
use crate::config::Config;
use crate::http::shutdown::Shutdown;
use crate::{auth, config, embedding, telemetry};

/// The maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1_024;

/// The time limit for each of two steps of the shutdown: archiving the last events, and then closing the open
/// workspaces. Archiving begins when all connections have ended or `[http] stop_timeout` has passed.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);
/// The time limit for shutting down the runtime, after the time limit for closing workspaces.
const END_WITHIN: Duration = Duration::from_millis(500);

/// The number of threads that run hooks. With two threads, a long call of one plugin does not delay the other plugins.
/// More threads would take processor time from requests, and would not make appends faster, because no append waits for
/// a hook.
const PLUGIN_THREADS: usize = 2;

/// The environment variable with the owner key. The first start creates the owner with this key. A later start replaces
/// the key of the first start with this key, unless the key of the first start was used or revoked.
const BOOTSTRAP_KEY: &str = "FOLDWORK_BOOTSTRAP_KEY";
/// The environment variable with the name of a SurrealDB server's user.
const STORE_USER: &str = "FOLDWORK_STORE_USER";
/// The environment variable with the password of a SurrealDB server's user.
const STORE_PASSWORD: &str = "FOLDWORK_STORE_PASSWORD";

/// The interval between checks of the memory of open workspaces.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The interval between checks for workspaces to delete.
const DELETION_INTERVAL: Duration = Duration::from_secs(10);

/// A server that is listening and ready to run.
pub struct BoundServer {
    pub address: SocketAddr,
    /// The address of the metrics, if the server serves metrics.
    metrics: Option<SocketAddr>,
    config: Config,
    listener: TcpListener,
    engine: Arc<Engine>,
    /// The archiver, if the configuration names an archive.
    backups: Option<Arc<Backups>>,
}

/// Opens the store, opens workspaces up to the memory limit, and starts to listen. On the first start, prints the owner
/// key, unless `FOLDWORK_BOOTSTRAP_KEY` sets the key.
pub async fn listen(config: Config) -> anyhow::Result<BoundServer> {
    let chosen = bootstrap_key()?;
    let format = config.log.format;
    listen_with(config, chosen, |key| telemetry::print_key(format, key)).await
}

/// Returns the owner key that the environment sets for the first start. Fails if the value does not have the form of a
/// key.
fn bootstrap_key() -> anyhow::Result<Option<String>> {
    let Some(key) = secret(BOOTSTRAP_KEY) else { return Ok(None) };
    ensure!(is_key(&key), "{BOOTSTRAP_KEY} is not a key; expected sk_ and 64 hexadecimal digits");
    Ok(Some(key))
}

/// Returns the value of an environment variable. An empty value counts as absent, because the configuration files of
/// containers and services set unneeded variables to an empty text.
fn secret(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Starts to listen like [`listen`], with a given owner key for the first start. If no owner key is given, the server
/// creates a key and passes the key to `show`.
///
/// The first start stores the key only after it has checked the settings, loaded the plugins, bound the address, and
/// opened the embedding model, the archive and the store, because each of these steps can fail. The key is shown after
/// it is stored.
pub async fn listen_with(
    config: Config,
    chosen: Option<String>,
    show: impl FnOnce(&str) -> std::io::Result<()>,
) -> anyhow::Result<BoundServer> {
    config.http.check_public_url()?;
    config.dashboard.sign_in(&config.auth)?;
    config.dashboard.appearance()?;
    let metrics = telemetry::serve_metrics(&config.metrics).await?;
    let plugins = load_plugins(&config.plugins)?;
    let embed = embedding::open(&config.search.embedding)?;
    let archive = backup::open_archive(&config)?;
    let socket = bind(&config.http.listen).await.map_err(|error| cannot_listen(&config.http.listen, &error))?;
    let folder = DataFolder::of(&config.store.url, "surrealkv").filter(DataFolder::is_new);
    let (store_url, files_url) = (absolute(&config.store.url), absolute(&config.files.url));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), store = store_url, files = files_url, "starting");
    let store = open_store(&config).await?;
    if let Some(DataFolder { path, is_relative }) = folder {
        let path = path.display();
        if is_relative {
            tracing::warn!(
                "created a new store in {path}, because the working directory contains no store; to use an existing \
                 store, start in its folder, or set [store] url to an absolute path"
            );
        } else {
            tracing::info!("created a new store in {path}");
        }
    }
    let engine = open_engine(&config, store, plugins).await?;
    auth::configure(&engine, &config)?;
    if let Some(embed) = embed {
        engine.embed_with(embed);
    }
    match (engine.first_start(chosen.clone()).await?, chosen) {
        (Some(first), None) => {
            let unshown =
                "the owner key cannot be shown; to replace the key, set FOLDWORK_BOOTSTRAP_KEY and start again";
            show(&first.key).context(unshown)?;
        }
        (None, Some(chosen)) if !engine.knows_key(&chosen).await? => tracing::warn!(
            "FOLDWORK_BOOTSTRAP_KEY is ignored, because the store has keys already; `foldwork keys reset` creates a \
             new owner key"
        ),
        _ => {}
    }
    engine.open_all().await?;
    let backups = archive.map(|archive| Backups::new(engine.clone(), archive, config.backup.settings()));
    // Until this call, the operating system refuses connections.
    let listener = socket.listen(BACKLOG).map_err(|error| cannot_listen(&config.http.listen, &error))?;
    let address = listener.local_addr()?;
    Ok(BoundServer { address, metrics, config, listener, engine, backups })
}

/// Binds the address without listening yet. Fails if another process listens on this address. Another server that has
/// bound the address with `SO_REUSEADDR` too, and does not listen yet, is detected only by the later call of `listen`.
async fn bind(address: &str) -> std::io::Result<TcpSocket> {
    let mut failed = std::io::Error::new(std::io::ErrorKind::AddrNotAvailable, "the host name has no address");
    for address in tokio::net::lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Allows binding even if closed connections of an earlier server still use the address.
        socket.set_reuseaddr(true)?;
        match socket.bind(address) {
            Ok(()) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn cannot_listen(address: &str, error: &std::io::Error) -> anyhow::Error {
    anyhow!("cannot listen on {address}: {error}; choose another address with --listen or [http] listen")
}

/// Loads the plugins. An invalid plugin prevents the server from starting.
pub fn load_plugins(settings: &config::Plugins) -> anyhow::Result<Plugins> {
    let config::Plugins { enabled, folder, settings, limits, watch: _ } = settings;
    let plugins =
        foldwork_plugins::load(enabled, folder.as_ref(), settings, *limits).context("a plugin cannot be loaded")?;
    let names: Vec<&str> = plugins.iter().map(|plugin| &*plugin.about().name).collect();
    tracing::info!(plugins = names.join(","), "plugins loaded");
    let scripts = Scripts { folder: folder.into(), settings: settings.clone(), limits: *limits };
    Ok(Plugins::new(plugins, PLUGIN_THREADS)?.with_loader(Arc::new(scripts)))
}

/// Opens the configured data store with the configured file store.
pub async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let url = &config.store.url;
    // Only a SurrealDB server has users. A command for another store ignores the variables.
    let credentials = if url.starts_with("ws") { store_credentials()? } else { None };
    if let Some(path) = url.strip_prefix("surrealkv://")
        && let Some(parent) = std::path::Path::new(path).parent()
    {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create the folder {}", parent.display()))?;
        handle_file_size_signal();
    }
    let sizes = Sizes { memtable_bytes: config.store.memtable.bytes(), ..Sizes::default() };
    let store = Store::connect_with(url, &sizes).await.with_context(|| cannot_open(url))?;
    let store = store.with_timeout(config.store.timeout.0);
    let files = &config.files.url;
    let store =
        store.with_files(files, std::env::vars()).with_context(|| format!("cannot open the file store {files}"))?;
    if let Some((user, password)) = credentials {
        let signed_in = store.sign_in(&user, &password).await;
        signed_in.with_context(|| format!("cannot sign in to the store with {STORE_USER} and {STORE_PASSWORD}"))?;
    }
    Ok(store)
}

/// Opens the engine on `store`, with the settings and the plugins of the server.
pub async fn open_engine(config: &Config, store: Store, plugins: Plugins) -> anyhow::Result<Arc<Engine>> {
    let opened = Engine::open(store, Arc::new(StoreClock::default()), config.engine(), plugins).await;
    // The messages of these errors do not include the cause, because clients must not see the cause.
    let opened = opened.map_err(|error| match error {
        Error::Internal(cause) => anyhow::Error::from_boxed(cause),
        Error::Unavailable(cause) => cause.into(),
        other => other.into(),
    });
    opened.with_context(|| cannot_open(&config.store.url))
}

/// Returns the user and the password that the environment sets for a SurrealDB server, if any.
fn store_credentials() -> anyhow::Result<Option<(String, String)>> {
    match (secret(STORE_USER), secret(STORE_PASSWORD)) {
        (Some(user), Some(password)) => Ok(Some((user, password))),
        (None, None) => Ok(None),
        (Some(_), None) => bail!("{STORE_USER} is set, but {STORE_PASSWORD} is not"),
        (None, Some(_)) => bail!("{STORE_PASSWORD} is set, but {STORE_USER} is not"),
    }
}

/// Returns the message about a store that cannot be opened.
fn cannot_open(url: &str) -> String {
    let is_anonymous = url.starts_with("ws") && secret(STORE_USER).is_none();
    let anonymous = if is_anonymous { format!(" without {STORE_USER} and {STORE_PASSWORD}") } else { String::new() };
    format!("cannot open the store {url}{anonymous}")
}

impl BoundServer {
    /// Returns the URL at which clients reach the server.
    pub fn url(&self) -> String {
        self.config.public_url(&self.address.to_string())
    }

    /// Reports the address that the server listens on and, if metrics are served, the address of the metrics.
    pub fn announce(&self) -> std::io::Result<()> {
        telemetry::print_address(self.config.log.format, self.address, self.metrics)
    }

    /// Serves requests until `signal` completes and the delay `[http] stop_delay` has passed. Then waits for requests
    /// in flight, archives the last events, and closes the workspaces.
    pub async fn run(self, signal: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<()> {
        let BoundServer { address, metrics, config, listener, engine, backups } = self;
        let shutdown = Shutdown::default();
        let folder = measurement::folder_of(&config.store.url);
        let mut keepers = vec![
            tokio::spawn(keep_memory(engine.clone())),
            tokio::spawn(keep_deletions(engine.clone())),
            tokio::spawn(watch::keep_plugins(engine.clone(), config.plugins.clone())),
        ];
        keepers.extend(metrics.map(|_| tokio::spawn(measurement::keep_measuring(engine.clone(), folder))));
        keepers.extend(backups.clone().map(|backups| tokio::spawn(async move { backups.keep().await })));
        let app = application_with_backups(engine.clone(), backups.clone(), &config, shutdown.clone());
        let stop = async {
            signal.await;
            shutdown.announce();
            let delay = config.http.stop_delay.0;
            if !delay.is_zero() {
                tracing::info!(?delay, "the server is no longer ready and stops after the delay or at a second signal");
                // The delay gives load balancers time to stop sending requests. A second signal ends the delay early.
                let _ = tokio::time::timeout(delay, stop_signal()).await;
            }
            shutdown.begin();
            tracing::info!("stopping");
        };
        let serving = ConnectionServer::new(app, address, &config).run(listener, &shutdown);
        let (mut open, ()) = tokio::join!(serving, stop);
        let all_closed = async {
            while open.join_next().await.is_some() {}
            shutdown.released().await;
        };
        if tokio::time::timeout(config.http.stop_timeout.0, all_closed).await.is_err() {
            tracing::warn!(
                connections = open.len(),
                "HTTP connections or WebSockets did not end within http.stop_timeout and are closed"
            );
            open.shutdown().await;
        }
        // Aborting these tasks does not interrupt a workspace that is being closed.
        keepers.iter().for_each(tokio::task::JoinHandle::abort);
        if let Some(backups) = backups
            && tokio::time::timeout(CLOSE_WITHIN, backups.finish()).await.is_err()
        {
            tracing::warn!("the last events were not archived within {CLOSE_WITHIN:?}; the next start archives them");
        }
        if tokio::time::timeout(CLOSE_WITHIN, engine.close()).await.is_err() {
            tracing::warn!("workspaces are aborted because they did not close within {CLOSE_WITHIN:?}");
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
            tracing::error!(%error, "failed to close idle workspaces");
        }
    }
}

/// Deletes workspaces whose grace period has ended, and informs their owners in advance.
async fn keep_deletions(engine: Arc<Engine>) {
    let mut interval = tokio::time::interval(DELETION_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        foldwork_engine::tend_deletions(&engine).await;
    }
}

/// Installs a signal handler, so that a write beyond the process's file size limit fails like a write to a full disk.
/// Without the handler, the write would end the process.
fn handle_file_size_signal() {
    const SIGXFSZ: i32 = 25;
    if let Err(error) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ)) {
        tracing::warn!(%error, "cannot handle SIGXFSZ; exceeding the file size limit would end the process");
    }
}

/// Shuts down the runtime, and waits at most half a second for its threads. Work that occupies a thread for longer,
/// such as a pipeline, ends with the process.
pub fn end(runtime: tokio::runtime::Runtime) {
    runtime.shutdown_timeout(END_WITHIN);
}

/// Ends the process in bounded time after a stop signal, even if its threads are blocked.
///
/// A separate thread waits for the deadline, because work that blocks every thread of the server's runtime also blocks
/// the runtime's timers. All acknowledged writes are on disk at the deadline, so the exit code is the code of an
/// orderly end.
pub fn end_in_time(config: &Config) -> anyhow::Result<()> {
    let archive_within = if config.backup.is_enabled() { CLOSE_WITHIN } else { Duration::ZERO };
    let ending = config.http.stop_timeout.0.saturating_add(archive_within + CLOSE_WITHIN + END_WITHIN);
    let limit = config.http.stop_delay.0.saturating_add(ending);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wait = move || {
        runtime.block_on(async {
            stop_signal().await;
            tokio::time::sleep(limit).await;
        });
        tracing::warn!("the process exits with unfinished work, because the shutdown took longer than {limit:?}");
        std::process::exit(0);
    };
    std::thread::Builder::new().name("stop".into()).spawn(wait)?;
    Ok(())
}

/// Returns a future that waits for SIGTERM or SIGINT. The future also receives a signal that arrives before the first
/// poll.
///
/// # Panics
///
/// Panics outside of a runtime.
pub fn stop_signal() -> impl Future<Output = ()> + Send + 'static {
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(|kind| signal(kind).ok());
    async move {
        let [mut terminate, mut interrupt] = signals;
        tokio::select! {
            () = received(&mut terminate) => {}
            () = received(&mut interrupt) => {}
        }
    }
}

/// Waits for a signal. Waits forever if the process cannot receive the signal.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
