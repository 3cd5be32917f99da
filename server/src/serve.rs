//! Serving: from settings to a listening socket, and from a signal to an orderly end.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use foldwork_engine::clock::SystemClock;
use foldwork_engine::{Engine, Plugins, Sizes, Store};
use poem::Server;
use poem::http::uri::Scheme;
use poem::listener::Acceptor;
use poem::web::{LocalAddr, RemoteAddr};
use tokio::net::{TcpListener, TcpStream};

use crate::edge::Ending;
use crate::{Config, application, config, embedding, telemetry};

/// A pause after a failure to accept, so that a process without free descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often the memory of open workspaces is looked at.
const MEMORY_LOOK: Duration = Duration::from_secs(30);

/// A server that listens, ready to run.
pub struct Listening {
    pub address: std::net::SocketAddr,
    /// Made on the first start of an empty store, unless one was given.
    pub first_key: Option<String>,
    config: Config,
    listener: TcpListener,
    engine: Arc<Engine>,
}

/// Opens the store and the workspaces in it, and begins to listen.
pub async fn listen(config: Config) -> anyhow::Result<Listening> {
    let chosen = std::env::var("FOLDWORK_BOOTSTRAP_KEY").ok();
    listen_with(config, chosen).await
}

/// Like [`listen`], with the owner key of a first start given.
pub async fn listen_with(config: Config, chosen: Option<String>) -> anyhow::Result<Listening> {
    telemetry::start_metrics(&config.metrics).await?;
    let plugins = load_plugins(&config.plugins)?;
    let store = open_store(&config).await?;
    let engine = Engine::open(store, Arc::new(SystemClock), config.engine(), plugins).await?;
    if let Some(embed) = embedding::open(&config.search.embedding)? {
        engine.embed_with(embed);
    }
    let was_chosen = chosen.is_some();
    let first = engine.first_start(chosen).await?;
    engine.open_all().await?;
    let listener = TcpListener::bind(&config.http.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.http.listen))?;
    let address = listener.local_addr()?;
    let first_key = first.map(|first| first.key).filter(|_| !was_chosen);
    Ok(Listening { address, first_key, config, listener, engine })
}

/// Loads the plugins; one that is broken keeps the server from starting.
pub fn load_plugins(settings: &config::Plugins) -> anyhow::Result<Plugins> {
    let config::Plugins { enabled, folder, settings, limits, threads } = settings;
    let plugins =
        foldwork_plugins::load(enabled, folder.as_ref(), settings, *limits).context("a plugin was refused")?;
    let names: Vec<&str> = plugins.iter().map(|plugin| &*plugin.about().name).collect();
    tracing::info!(plugins = names.join(","), "plugins loaded");
    Ok(Plugins::new(plugins, *threads)?)
}

async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let url = &config.store.url;
    if let Some(path) = url.strip_prefix("surrealkv://")
        && let Some(parent) = std::path::Path::new(path).parent()
    {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        survive_file_limit();
    }
    let sizes = Sizes { memtable_bytes: config.store.memtable_bytes, cache_bytes: config.store.cache_bytes };
    let store = Store::connect_with(url, &sizes).await.with_context(|| format!("cannot open the store {url}"))?;
    if let (Ok(user), Ok(password)) = (std::env::var("FOLDWORK_STORE_USER"), std::env::var("FOLDWORK_STORE_PASSWORD")) {
        store.sign_in(&user, &password).await.context("cannot sign in to the store")?;
    }
    Ok(store)
}

impl Listening {
    /// The URL that clients reach the server under.
    pub fn url(&self) -> String {
        self.config.public_url(&self.address.to_string())
    }

    /// Tells where the server listens, and the first key where there is one.
    pub fn announce(&self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if let Some(key) = &self.first_key {
            writeln!(out, "owner key (shown once): {key}")?;
        }
        writeln!(out, "listening on http://{}", self.address)?;
        out.flush()
    }

    /// Serves until the signal, lets requests under way finish, and flushes.
    pub async fn run(self, signal: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<()> {
        let Listening { address, config, listener, engine, .. } = self;
        let ending = Ending::default();
        let keeper = tokio::spawn(keep_memory(engine.clone()));
        let app = application(engine.clone(), &config, ending.clone());
        let acceptor = Sockets { listener, address: LocalAddr(address.into()) };
        let stop = async move {
            signal.await;
            ending.begin();
            tracing::info!("stopping");
        };
        let timeout = Duration::from_secs(config.http.stop_timeout_s);
        let idle = Duration::from_secs(config.http.idle_timeout_s);
        Server::new_with_acceptor(acceptor)
            .idle_timeout(idle)
            .run_with_graceful_shutdown(app, stop, Some(timeout))
            .await?;
        // A workspace that is being closed is closed all the same.
        keeper.abort();
        engine.close().await;
        Ok(())
    }
}

/// Looks at what open workspaces take of memory, now and then.
async fn keep_memory(engine: Arc<Engine>) {
    let mut looks = tokio::time::interval(MEMORY_LOOK);
    loop {
        looks.tick().await;
        if let Err(error) = engine.close_idle().await {
            tracing::error!(%error, "workspaces that nobody uses could not be closed");
        }
    }
}

/// Lets a write that would exceed the process's limit for files fail with an error, as on a disk that is full, instead of
/// ending the process.
fn survive_file_limit() {
    const SIGXFSZ: i32 = 25;
    // Once a signal is listened for, it has no other effect any more.
    if let Err(error) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ)) {
        tracing::warn!(%error, "a limit for files would end the process");
    }
}

/// SIGTERM or SIGINT.
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

/// Accepts connections without Nagle's delay.
struct Sockets {
    listener: TcpListener,
    address: LocalAddr,
}

impl Acceptor for Sockets {
    type Io = TcpStream;

    fn local_addr(&self) -> Vec<LocalAddr> {
        vec![self.address.clone()]
    }

    async fn accept(&mut self) -> std::io::Result<(TcpStream, LocalAddr, RemoteAddr, Scheme)> {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a socket keeps its delay");
                    }
                    return Ok((stream, self.address.clone(), RemoteAddr(address.into()), Scheme::HTTP));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}
