//! All settings with their defaults. Values come from `config.toml`. Environment variables `FOLDWORK_<SECTION>__<KEY>`
//! override the file.

mod access;
mod backup;
mod dashboard;
mod environment;
mod files;
mod http;
mod mcp;
mod network;
mod plugins;
mod realtime;

use std::path::Path;

use anyhow::Context as _;
use config::ConfigBuilder;
use config::builder::DefaultState;
use foldwork_engine::{EngineSettings, QueryLimits};
use serde::{Deserialize, Serialize};

pub use access::{Auth, Issuer, OfferedPlan, Plans};
pub use backup::{Backup, Verify};
pub use dashboard::{Dashboard, SignIn};
pub use files::Files;
pub use http::Http;
pub use mcp::Mcp;
pub use network::Network;
pub use plugins::Plugins;
pub use realtime::Realtime;

/// The text of the shipped configuration: every setting with its default.
pub const DEFAULTS: &str = include_str!("../../config.toml");

/// All settings except secrets. Secrets come only from environment variables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub http: Http,
    pub store: Store,
    pub files: Files,
    pub backup: Backup,
    pub auth: Auth,
    pub plans: Plans,
    pub workspaces: Workspaces,
    pub memory: Memory,
    pub pipeline: Pipeline,
    pub plugins: Plugins,
    pub mailbox: Mailbox,
    pub mcp: Mcp,
    pub dashboard: Dashboard,
    pub realtime: Realtime,
    pub search: Search,
    pub metrics: Metrics,
    pub log: Log,
}

/// Settings of the store: its URL, the sizes of its memory, and the times of a store of several servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    pub url: String,
    pub memtable_bytes: usize,
    pub cache_bytes: usize,
    pub timeout_ms: u64,
    pub pulse_ms: u64,
}

impl Default for Store {
    fn default() -> Store {
        Store {
            url: "surrealkv://data/db".into(),
            memtable_bytes: 32 << 20,
            cache_bytes: 8 << 20,
            timeout_ms: 10_000,
            pulse_ms: 100,
        }
    }
}

/// Settings of workspaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workspaces {
    pub deletion_grace_days: u32,
}

impl Default for Workspaces {
    fn default() -> Workspaces {
        Workspaces { deletion_grace_days: 30 }
    }
}

/// Limits on the memory of open workspaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    pub resident_bytes: usize,
    pub idle_minutes: u32,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { resident_bytes: 0, idle_minutes: 10 }
    }
}

/// Limits on the time, the memory and the number of pipelines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pipeline {
    pub timeout_ms: u64,
    pub memory_bytes: usize,
    pub workspace_queries: usize,
    pub key_queries: usize,
    pub workspace_memory_bytes: usize,
    pub key_memory_bytes: usize,
    pub wait_ms: u64,
}

impl Default for Pipeline {
    fn default() -> Pipeline {
        Pipeline {
            timeout_ms: 5_000,
            memory_bytes: 64 << 20,
            workspace_queries: 8,
            key_queries: 4,
            workspace_memory_bytes: 256 << 20,
            key_memory_bytes: 128 << 20,
            wait_ms: 2_000,
        }
    }
}

/// Settings of the mailbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mailbox {
    pub own_deliveries: bool,
}

/// Settings of search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    pub embedding: Embedding,
}

/// Settings of the embeddings that search uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Embedding {
    pub kind: EmbeddingKind,
    pub path: String,
    pub url: String,
    pub model: String,
    pub timeout_ms: u64,
    pub batch: usize,
}

impl Default for Embedding {
    fn default() -> Embedding {
        Embedding {
            kind: EmbeddingKind::Off,
            path: String::new(),
            url: String::new(),
            model: String::new(),
            timeout_ms: 5_000,
            batch: 32,
        }
    }
}

/// The source of embeddings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingKind {
    #[default]
    Off,
    /// A model in a local folder computes the embeddings.
    Local,
    /// An HTTP service computes the embeddings.
    Http,
}

/// Settings of the metrics. Without an address, no metrics are served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    pub listen: String,
}

/// Settings of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    pub filter: String,
    pub format: Format,
    /// Whether the log has a line for each request.
    pub access: bool,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Text,
    Json,
}

impl Default for Log {
    fn default() -> Log {
        Log { filter: "info,rmcp=warn,surrealdb=warn,surrealkv=warn".into(), format: Format::Text, access: true }
    }
}

impl Config {
    /// Reads the configuration from the given file, or from `config.toml` if that exists. Environment variables
    /// override the file.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Config> {
        let sources = Config::with_environment(Config::with_file(file))?;
        sources.build()?.try_deserialize().context("the configuration is not valid")
    }

    /// Returns the configured format of the log, for the error message about a configuration that cannot be loaded.
    pub fn log_format(file: Option<&Path>) -> Format {
        // Reads only this setting, because another setting may be the reason why the configuration cannot be loaded.
        match std::env::var("FOLDWORK_LOG__FORMAT").as_deref() {
            Ok("json") => Format::Json,
            Ok(_) => Format::Text,
            Err(_) => {
                let settings = Config::with_file(file).build().ok();
                settings.and_then(|settings| settings.get("log.format").ok()).unwrap_or_default()
            }
        }
    }

    fn with_file(file: Option<&Path>) -> ConfigBuilder<DefaultState> {
        let sources = ConfigBuilder::<DefaultState>::default();
        match file {
            Some(file) => sources.add_source(config::File::from(file).required(true)),
            None => sources.add_source(config::File::new("config.toml", config::FileFormat::Toml).required(false)),
        }
    }

    fn with_environment(sources: ConfigBuilder<DefaultState>) -> anyhow::Result<ConfigBuilder<DefaultState>> {
        // Writes the variables as TOML, the only format in which the values keep their types.
        let environment = toml::to_string(&environment::settings(variables())?)?;
        Ok(sources.add_source(config::File::from_str(&environment, config::FileFormat::Toml)))
    }

    /// Returns a message for each environment variable that has the prefix of Foldwork and no effect.
    pub fn unknown_variables(&self) -> Vec<String> {
        environment::unknown(variables().map(|(name, _)| name), self)
    }

    /// Returns the settings of the engine.
    pub fn engine(&self) -> EngineSettings {
        EngineSettings {
            pipeline_ms: self.pipeline.timeout_ms,
            pipeline_bytes: self.pipeline.memory_bytes,
            queries: QueryLimits {
                workspace_queries: self.pipeline.workspace_queries,
                key_queries: self.pipeline.key_queries,
                workspace_bytes: self.pipeline.workspace_memory_bytes,
                key_bytes: self.pipeline.key_memory_bytes,
                wait_ms: self.pipeline.wait_ms,
            },
            resident_bytes: self.memory.resident_bytes,
            idle_ms: i64::from(self.memory.idle_minutes) * 60_000,
            quota_bytes: self.files.quota_bytes,
            own_deliveries: self.mailbox.own_deliveries,
            deletion_grace_ms: i64::from(self.workspaces.deletion_grace_days) * 86_400_000,
            // A timer needs an interval, and the servers count one as dead that has not reported for ten seconds.
            pulse_ms: self.store.pulse_ms.clamp(1, 2_000),
            ..EngineSettings::default()
        }
    }

    /// Returns the base of URLs in responses: the configured URL, or a URL with the server's address.
    pub fn public_url(&self, address: &str) -> String {
        match self.http.public_url.trim_end_matches('/') {
            "" => format!("http://{address}"),
            url => url.to_owned(),
        }
    }
}

/// Returns the environment variables whose name and value are valid Unicode.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_contains_the_defaults() {
        let shipped: Config = toml::from_str(DEFAULTS).expect("the shipped configuration");
        assert_eq!(shipped, Config::default());
    }
}
