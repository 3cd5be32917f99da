//! A server in memory, with store, engine and routes. Requests are sent without a socket.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use foldwork_engine::archive::{Archive, Backups, SealingKey};
use foldwork_engine::clock::Clock;
use foldwork_engine::model::access::Scope;
use foldwork_engine::workspace::events::{EventLimit, LogFilter};
use foldwork_engine::workspace::keys::NewKey;
use foldwork_engine::{AccessSettings, Engine, EngineSettings, FetchKeys, Plugins, Store};
use foldwork_server::http::shutdown::Shutdown;
use foldwork_server::serve::load_plugins;
use foldwork_server::{Config, application, application_with_backups};
use poem::endpoint::BoxEndpoint;
use poem::{Endpoint, Request, Response};

use crate::agents::agents;
use crate::clock::FixedClock;
use crate::expectation::root;
use crate::handles::{Handles, enter};
use crate::issuer::{Provider, SECRET, SECRET_ISSUER, secret_issuer, signed_with};

/// The limited keys of the first workspace: the name of each key, and the only scope of the key.
const LIMITED_KEYS: [(&str, Scope); 5] = [
    ("reader", Scope::ApiRead),
    ("writer", Scope::ApiWrite),
    ("content", Scope::ContentRead),
    ("profile", Scope::ProfileRead),
    ("unlocker", Scope::ExtensionUnlock),
];

/// The users who authenticate with a token. The store has no record of a user before the user's first request.
const USERS: [&str; 4] = ["ada", "bob", "cleo", "dan"];

/// Returns the claims of a user's token, in Supabase's format.
pub fn claims_of(name: &str) -> serde_json::Value {
    serde_json::json!({
        "iss": SECRET_ISSUER,
        "aud": "authenticated",
        "sub": format!("00000000-0000-4000-8000-{name:0>12}"),
        "exp": 1_800_000_000,
        "iat": 1_767_225_600,
        "email": format!("{name}@example.com"),
        "role": "authenticated",
        "session_id": format!("session-of-{name}"),
        "user_metadata": {"role": "owner", "email_verified": true},
        "is_anonymous": false,
    })
}

/// The interval at which two servers on one store read each other's appends, in milliseconds.
const PULSE_MS: u64 = 250;

/// Returns the settings of an engine on a store with this number of servers. An engine that is alone on its store has a
/// slow pulse, because the tests run hundreds of servers on the same processor.
fn engine_settings(config: &Config, servers: usize) -> EngineSettings {
    EngineSettings { pulse_ms: if servers > 1 { PULSE_MS } else { 2_000 }, ..config.engine() }
}

/// Returns the configuration without the default limit on wrong tokens per address, because all requests of a test come
/// from one address.
fn of_one_address(config: &Config) -> Config {
    let mut config = config.clone();
    if config.http.wrong_token_limit_per_minute == Config::default().http.wrong_token_limit_per_minute {
        config.http.wrong_token_limit_per_minute = 0;
    }
    config
}

/// Returns the default access settings of test servers. The settings accept tokens from one issuer, which signs the
/// tokens with a shared secret.
fn settings() -> AccessSettings {
    AccessSettings { issuers: vec![secret_issuer()], ..AccessSettings::default() }
}

/// A server with its store, and the keys of its workspaces.
pub struct Server {
    pub clock: Arc<FixedClock>,
    /// The engine's store. A test writes to the store directly only to simulate damage.
    pub store: Store,
    pub engine: Arc<Engine>,
    /// The keys, and the tokens of users, each with the name that scenarios use (`owner`, `reader`, …, `other`, `ada`).
    pub keys: Vec<(&'static str, String)>,
    pub shutdown: Shutdown,
    /// The archive of backups, if the configuration names one.
    archive: Option<Archive>,
    application: BoxEndpoint<'static, Response>,
    /// A second server on the same store. Every second request goes to this server.
    peer: Option<Peer>,
}

/// A server that shares the store of another server.
struct Peer {
    engine: Arc<Engine>,
    application: BoxEndpoint<'static, Response>,
    /// The number of requests that were sent to the two servers.
    sent: AtomicUsize,
}

/// The configuration of a test's servers, and the agents whose work the test does.
pub struct Setup {
    pub config: Config,
    /// The names of the agents. Their ids are `agent-<name>`.
    pub agents: Vec<String>,
}

impl Setup {
    /// Returns the setup of servers without plugins. On these servers, a key may decide on output that the same key
    /// delivered. Most scenarios use this setup to test requests without the effects of plugins.
    pub fn without_plugins() -> Setup {
        let mut config = Config::default();
        config.plugins.enabled.clear();
        config.mailbox.own_deliveries = true;
        Setup { config, agents: Vec::new() }
    }

    /// Returns the setup of servers with plugins from the folder `tests/plugins`. A name that is not in this folder
    /// names a shipped plugin.
    pub fn with_plugins(enabled: Vec<String>) -> Setup {
        Setup::with_plugins_in(&root().join("tests/plugins"), enabled)
    }

    /// Returns the setup of servers with plugins from a folder. A name that is not in the folder names a shipped
    /// plugin.
    pub fn with_plugins_in(folder: &Path, enabled: Vec<String>) -> Setup {
        let mut setup = Setup::without_plugins();
        setup.config.plugins.folder = folder.to_string_lossy().into_owned();
        setup.config.plugins.enabled = enabled;
        setup
    }

    /// Returns the setup of servers without plugins, with an archive of backups in memory. An append with
    /// `Foldwork-Durability: archived` archives its workspace; without this header, no events are archived.
    pub fn with_backup() -> Setup {
        let mut setup = Setup::without_plugins();
        setup.config.mailbox.own_deliveries = Config::default().mailbox.own_deliveries;
        setup.config.backup.url = "mem://".into();
        setup
    }

    /// Returns the setup of servers without plugins and with the named agents. The tests act as these agents.
    pub fn with_agents(names: &[String]) -> Setup {
        Setup { agents: names.to_vec(), ..Setup::without_plugins() }
    }

    fn plugins(&self) -> anyhow::Result<Plugins> {
        if self.agents.is_empty() { load_plugins(&self.config.plugins) } else { agents(&self.agents) }
    }

    /// Starts a server.
    pub async fn start(&self) -> anyhow::Result<Server> {
        Server::start_on(&self.config, self.plugins()?, settings(), Arc::default(), 1).await
    }

    /// Starts two servers on one store. Requests are sent to the two servers in turn.
    pub async fn start_two(&self) -> anyhow::Result<Server> {
        let mut server = Server::start_on(&self.config, self.plugins()?, settings(), Arc::default(), 2).await?;
        server.add_peer(&self.config, self.plugins()?).await?;
        Ok(server)
    }
}

impl Server {
    /// Starts a server without plugins.
    pub async fn start() -> anyhow::Result<Server> {
        Setup::without_plugins().start().await
    }

    /// Starts a server with this configuration.
    pub async fn start_with(config: &Config) -> anyhow::Result<Server> {
        Server::start_deciding(config, settings(), Arc::default()).await
    }

    /// Starts a server with these access settings and this identity provider.
    pub async fn start_deciding(
        config: &Config,
        settings: AccessSettings,
        provider: Arc<Provider>,
    ) -> anyhow::Result<Server> {
        Server::start_on(config, load_plugins(&config.plugins)?, settings, provider, 1).await
    }

    /// Starts a server with agents. On this server, a key cannot decide on output that the same key delivered.
    pub async fn start_with_others_deciding(names: &[String]) -> anyhow::Result<Server> {
        let mut config = Config::default();
        config.plugins.enabled.clear();
        Server::start_on(&config, agents(names)?, settings(), Arc::default(), 1).await
    }

    /// Starts a server with native plugins that the test defines.
    pub async fn start_with_native(plugins: Plugins) -> anyhow::Result<Server> {
        let mut config = Config::default();
        config.plugins.enabled.clear();
        config.mailbox.own_deliveries = true;
        Server::start_on(&config, plugins, settings(), Arc::default(), 1).await
    }

    async fn start_on(
        config: &Config,
        plugins: Plugins,
        settings: AccessSettings,
        provider: Arc<Provider>,
        servers: usize,
    ) -> anyhow::Result<Server> {
        let config = &of_one_address(config);
        let store = Store::connect("mem://").await?;
        let clock = Arc::new(FixedClock::default());
        let engine =
            Engine::open(store.share(), clock.clone() as Arc<dyn Clock>, engine_settings(config, servers), plugins)
                .await?;
        let fetch: Arc<dyn FetchKeys> = provider;
        engine.configure_access(settings, &fetch).map_err(anyhow::Error::msg)?;
        let owner = engine.first_start(None).await?.context("the store is not empty")?.key;
        let workspace = enter(&engine, &owner).await?;
        let mut keys = vec![("owner", owner)];
        for (name, scope) in LIMITED_KEYS {
            let new = NewKey { name: name.into(), scopes: vec![scope], ..NewKey::default() };
            keys.push((name, workspace.owner.create_key(new, None).await?.secret.context("a new key has no secret")?));
        }
        let (_, other) = engine.provision("other", None).await?;
        keys.push(("other", other));
        keys.extend(USERS.map(|name| (name, signed_with(SECRET, &claims_of(name)))));
        let shutdown = Shutdown::default();
        let archive = archive(config)?;
        let backups = backups(&engine, archive.as_ref(), config);
        let application = application_with_backups(engine.clone(), backups, config, shutdown.clone());
        Ok(Server { clock, store, engine, keys, shutdown, archive, application, peer: None })
    }

    /// Starts a second server on the same store. From now on, every second request goes to this server.
    async fn add_peer(&mut self, config: &Config, plugins: Plugins) -> anyhow::Result<()> {
        let config = &of_one_address(config);
        let drawn = self.clock.drawn();
        let clock = self.clock.clone() as Arc<dyn Clock>;
        let engine = Engine::open(self.store.share(), clock, engine_settings(config, 2), plugins).await?;
        let fetch: Arc<dyn FetchKeys> = Arc::new(Provider::default());
        engine.configure_access(settings(), &fetch).map_err(anyhow::Error::msg)?;
        let backups = backups(&engine, self.archive.as_ref(), config);
        let application = application_with_backups(engine.clone(), backups, config, self.shutdown.clone());
        // Restores the count of random values, so that the ids of a scenario are the same as on one server.
        self.clock.set_drawn(drawn);
        self.peer = Some(Peer { engine, application, sent: AtomicUsize::new(0) });
        Ok(())
    }

    /// Starts a server on a store that already has a workspace. `owner` is the key of the workspace's owner.
    pub async fn start_over(config: &Config, store: Store, owner: &str) -> anyhow::Result<Server> {
        let config = &of_one_address(config);
        let (clock, plugins) = (Arc::new(FixedClock::default()), load_plugins(&config.plugins)?);
        let engine =
            Engine::open(store.share(), clock.clone() as Arc<dyn Clock>, engine_settings(config, 1), plugins).await?;
        let fetch: Arc<dyn FetchKeys> = Arc::new(Provider::default());
        engine.configure_access(settings(), &fetch).map_err(anyhow::Error::msg)?;
        let shutdown = Shutdown::default();
        let application = application(engine.clone(), config, shutdown.clone());
        let keys = vec![("owner", owner.to_owned())];
        Ok(Server { clock, store, engine, keys, shutdown, archive: None, application, peer: None })
    }

    /// Returns the key or the user's token with a name.
    pub fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(known, _)| *known == name).map(|(_, key)| key.as_str())
    }

    /// Returns the handles for the key with a name.
    pub async fn workspace(&self, name: &str) -> anyhow::Result<Handles> {
        enter(&self.engine, self.key(name).with_context(|| format!("no key is named {name}"))?).await
    }

    fn engines(&self) -> impl Iterator<Item = &Arc<Engine>> {
        std::iter::once(&self.engine).chain(self.peer.as_ref().map(|peer| &peer.engine))
    }

    /// Returns the handles of the owner on each server. If there are two servers, each first reads the whole log.
    async fn owners(&self) -> anyhow::Result<Vec<Handles>> {
        let key = self.key("owner").context("no key is named owner")?;
        let mut owners = Vec::new();
        for engine in self.engines() {
            let owner = enter(engine, key).await?;
            if self.peer.is_some() {
                owner.reader.log_before(Some(1), EventLimit::events(1), &LogFilter::default()).await?;
            }
            owners.push(owner);
        }
        Ok(owners)
    }

    /// Waits until plugins have been called for every event of the first workspace, including events that plugins
    /// appended, and every server has read these events.
    pub async fn worked(&self) -> anyhow::Result<()> {
        let mut reached = Vec::new();
        loop {
            let owners = self.owners().await?;
            for owner in &owners {
                worked(owner).await?;
            }
            let before = std::mem::replace(&mut reached, owners.iter().map(|owner| owner.reader.position()).collect());
            if owners.len() == 1 || before == reached {
                return Ok(());
            }
        }
    }

    /// Advances the clock, deletes the workspaces that are due for deletion, and waits until every open workspace has
    /// handled the deadlines that have passed.
    pub async fn pass(&self, ms: i64) -> anyhow::Result<()> {
        if ms == 0 {
            return Ok(());
        }
        if self.peer.is_some() {
            self.owners().await?;
        }
        self.clock.advance(ms);
        foldwork_engine::tend_deletions(&self.engine).await;
        for engine in self.engines() {
            let passed = tokio::time::timeout(TIMEOUT, engine.deadlines_passed()).await;
            passed.context("the passed deadlines are not handled in time")?;
        }
        Ok(())
    }

    /// Sends a request and returns the response.
    pub async fn call(&self, request: Request) -> Response {
        match &self.peer {
            Some(peer) if peer.sent.fetch_add(1, Ordering::Relaxed) % 2 == 1 => {
                peer.application.get_response(request).await
            }
            _ => self.application.get_response(request).await,
        }
    }
}

/// Opens the archive that the configuration names, with a new sealing key. Returns `None` if the configuration names no
/// archive.
fn archive(config: &Config) -> anyhow::Result<Option<Archive>> {
    if !config.backup.is_enabled() {
        return Ok(None);
    }
    let key = SealingKey::parse(&SealingKey::generate()).map_err(anyhow::Error::msg)?;
    Ok(Some(Archive::open(&config.backup.url, [], key)?))
}

/// Returns the archiver of an engine, or `None` without an archive.
fn backups(engine: &Arc<Engine>, archive: Option<&Archive>, config: &Config) -> Option<Arc<Backups>> {
    archive.map(|archive| Backups::new(engine.clone(), archive.clone(), config.backup.settings()))
}

/// The time limit for each wait for plugins, deadlines, followers of the log, or the closing of idle workspaces.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval between checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until plugins have been called for every event, including events that plugins appended.
pub async fn worked(workspace: &Handles) -> anyhow::Result<()> {
    tokio::time::timeout(TIMEOUT, workspace.reader.worked()).await.context("the plugins do not catch up with the log")
}

/// Waits until the followers of the log have reached its end.
pub async fn consumed(workspace: &Handles) -> anyhow::Result<()> {
    let head = workspace.reader.position();
    let reached = async {
        while workspace.reader.consumed_position().await? < head {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(TIMEOUT, reached).await.context("the followers of the log do not catch up")?
}

/// Closes idle workspaces until at most `open` workspaces are open. Repeats the attempt, because a workspace stays open
/// until the followers of its log have processed all events.
pub async fn close_down_to(engine: &Engine, open: usize) -> anyhow::Result<()> {
    let closed = async {
        while engine.close_idle().await? > open {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(TIMEOUT, closed).await.context("the idle workspaces do not close")?
}
