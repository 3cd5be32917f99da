//! All settings with their defaults. Values come from `config.toml`. Environment variables `FOLDWORK_<SECTION>__<KEY>`
//! override the file.

mod access;
mod files;
mod http;
mod mcp;
mod plugins;
mod realtime;

use std::path::Path;

use anyhow::Context as _;
use foldwork_engine::{QueryLimits, Settings};
use serde::{Deserialize, Serialize};

pub use access::{Auth, Issuer, OfferedPlan, Plans};
pub use files::Files;
pub use http::Http;
pub use mcp::Mcp;
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
    pub auth: Auth,
    pub plans: Plans,
    pub memory: Memory,
    pub pipeline: Pipeline,
    pub plugins: Plugins,
    pub mailbox: Mailbox,
    pub mcp: Mcp,
    pub realtime: Realtime,
    pub search: Search,
    pub metrics: Metrics,
    pub log: Log,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    pub url: String,
    pub memtable_bytes: usize,
    pub cache_bytes: usize,
}

impl Default for Store {
    fn default() -> Store {
        Store { url: "surrealkv://data/db".into(), memtable_bytes: 32 << 20, cache_bytes: 8 << 20 }
    }
}

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

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mailbox {
    pub own_deliveries: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    pub embedding: Embedding,
}

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

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    pub listen: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    pub filter: String,
    pub format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Text,
    Json,
}

impl Default for Log {
    fn default() -> Log {
        Log { filter: "info,rmcp=warn,surrealdb=warn,surrealkv=warn".into(), format: Format::Text }
    }
}

impl Config {
    /// Reads the configuration from the given file, or from `config.toml` if that exists. Environment variables
    /// override the file.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Config> {
        let mut sources = config::Config::builder();
        sources = match file {
            Some(file) => sources.add_source(config::File::from(file).required(true)),
            None => sources.add_source(config::File::new("config.toml", config::FileFormat::Toml).required(false)),
        };
        let environment = config::Environment::with_prefix("FOLDWORK").prefix_separator("_").separator("__");
        // A variable without a section is not a setting. Examples are the variables for the token, the server and the
        // first key.
        let settings = std::env::vars().filter(|(name, _)| name.starts_with("FOLDWORK_") && name.contains("__"));
        let environment = environment.try_parsing(true).source(Some(settings.collect()));
        sources.add_source(environment).build()?.try_deserialize().context("the configuration is not valid")
    }

    /// Returns the settings of the engine.
    pub fn engine(&self) -> Settings {
        Settings {
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
            ..Settings::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_contains_the_defaults() {
        let shipped: Config = toml::from_str(DEFAULTS).expect("the shipped configuration");
        assert_eq!(shipped, Config::default());
    }
}
