//! All settings. The shipped `config.toml`, which the program contains, has every default. A configuration file
//! overrides the defaults, and environment variables `FOLDWORK_<SECTION>__<KEY>` override the file.

mod access;
mod backup;
mod constants;
mod dashboard;
mod environment;
mod files;
mod former_names;
mod http;
mod mcp;
mod network;
mod plugins;
mod realtime;
mod units;

use std::path::Path;

use config::{File, FileFormat, FileSourceFile, FileSourceString, Map, Source, Value};
use foldwork_engine::{EngineSettings, QueryLimits};
use serde::{Deserialize, Serialize};

pub use access::{Auth, Issuer, OfferedPlan, Plans};
pub use backup::{Backup, Verify};
pub use constants::{Constants, SocketLimits};
pub use dashboard::{Dashboard, SignIn};
pub use files::Files;
pub use http::Http;
pub use mcp::Mcp;
pub use network::Network;
pub use plugins::Plugins;
pub use realtime::Realtime;
pub use units::{DataSize, TimeSpan};

/// The text of the shipped configuration: every setting with its default.
pub const DEFAULTS: &str = include_str!("../../config.toml");

/// All settings except secrets. Secrets come only from environment variables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// The limits that no setting changes.
    #[serde(skip)]
    pub constants: Constants,
    /// The warnings about former names of settings in the file and in environment variables.
    #[serde(skip)]
    former_names: Vec<String>,
}

/// The defaults of the shipped `config.toml`.
impl Default for Config {
    fn default() -> Config {
        toml::from_str(DEFAULTS).expect("the shipped configuration has every setting, as a test checks")
    }
}

/// Settings of the store: its URL, the memory of a store in a folder, and the time limit and the polling interval of a
/// SurrealDB server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    pub url: String,
    pub memtable: DataSize,
    pub cache: DataSize,
    pub timeout: TimeSpan,
    pub pulse: TimeSpan,
}

/// Settings of workspaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workspaces {
    pub deletion_grace: TimeSpan,
}

/// Limits on the memory of open workspaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub resident: DataSize,
}

/// Limits on the time, the memory and the number of pipelines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    pub timeout: TimeSpan,
    pub memory: DataSize,
    pub workspace_queries: usize,
    pub key_queries: usize,
    pub workspace_memory: DataSize,
    pub key_memory: DataSize,
}

/// Settings of the mailbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mailbox {
    pub own_deliveries: bool,
}

/// Settings of search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    pub embedding: Embedding,
}

/// Settings of the embeddings that search uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    pub kind: EmbeddingKind,
    pub path: String,
    pub url: String,
    pub model: String,
    pub timeout: TimeSpan,
    pub batch: usize,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    pub listen: String,
}

/// Settings of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

impl Config {
    /// Reads the configuration from the given file, or from `config.toml` if this file exists. Environment variables
    /// override the file, and the file overrides the defaults.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Config> {
        Config::with_variables(file_layer(file)?, &variables().collect::<Vec<_>>())
    }

    /// Returns the configuration of a file and environment variables. An error names the variable that is not valid, if
    /// the file alone is valid.
    fn with_variables(file: Layer, variables: &[(String, String)]) -> anyhow::Result<Config> {
        let read = |variables: &[(String, String)]| -> anyhow::Result<Config> {
            // Writes the variables as TOML, the only format in which the values keep their types.
            let environment = toml::to_string(&environment::settings(variables.iter().cloned())?)?;
            Config::from_layers([file.clone(), text_layer(&environment)?])
        };
        read(variables).map_err(|error| {
            let is_wrong = |variable: &&(String, String)| read(std::slice::from_ref(variable)).is_err();
            match variables.iter().find(is_wrong).filter(|_| read(&[]).is_ok()) {
                Some((name, _)) if !error.to_string().contains(name) => {
                    error.context(format!("the environment variable {name} is not valid"))
                }
                Some(_) => error,
                None => error.context("the configuration is not valid"),
            }
        })
    }

    /// Returns the configuration with the settings of a text in the format of `config.toml`, and the defaults of all
    /// other settings.
    pub fn parse(text: &str) -> anyhow::Result<Config> {
        Config::from_layers([text_layer(text)?])
    }

    /// Returns the defaults with the settings of these layers. Each layer overrides the layers before it.
    fn from_layers(layers: impl IntoIterator<Item = Layer>) -> anyhow::Result<Config> {
        let mut sources = config::Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        let mut former_names = Vec::new();
        for mut layer in layers {
            former_names.extend(former_names::adopt(&mut layer.0)?);
            sources = sources.add_source(layer);
        }
        Ok(Config { former_names, ..sources.build()?.try_deserialize()? })
    }

    /// Returns the configured format of the log, for the error message about a configuration that cannot be loaded.
    pub fn log_format(file: Option<&Path>) -> Format {
        // Reads only this setting, because another setting may be the reason why the configuration cannot be loaded.
        match std::env::var("FOLDWORK_LOG__FORMAT").as_deref() {
            Ok("json") => Format::Json,
            Ok(_) => Format::Text,
            Err(_) => {
                let settings =
                    file_layer(file).and_then(|file| Ok(config::Config::builder().add_source(file).build()?));
                settings.ok().and_then(|settings| settings.get("log.format").ok()).unwrap_or_default()
            }
        }
    }

    /// Returns a message for each setting that is given under its former name, and for each environment variable that
    /// has the prefix of Foldwork and no effect.
    pub fn warnings(&self) -> Vec<String> {
        let unknown = environment::unknown(variables().map(|(name, _)| name), self);
        self.former_names.iter().cloned().chain(unknown).collect()
    }

    /// Returns the settings of the engine.
    pub fn engine(&self) -> EngineSettings {
        EngineSettings {
            pipeline_ms: self.pipeline.timeout.millis(),
            pipeline_bytes: self.pipeline.memory.bytes(),
            queries: QueryLimits {
                workspace_queries: self.pipeline.workspace_queries,
                key_queries: self.pipeline.key_queries,
                workspace_bytes: self.pipeline.workspace_memory.bytes(),
                key_bytes: self.pipeline.key_memory.bytes(),
                wait_ms: TimeSpan(self.constants.query_wait).millis(),
            },
            resident_bytes: self.memory.resident.bytes(),
            quota_bytes: self.files.quota.0,
            own_deliveries: self.mailbox.own_deliveries,
            deletion_grace_ms: self.workspaces.deletion_grace.signed_millis(),
            // A timer needs an interval of at least 1 ms. The maximum is 2 s, because a server that has not reported
            // for ten seconds counts as dead.
            pulse_ms: self.store.pulse.millis().clamp(1, 2_000),
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

/// The settings of one source: a file, or the environment.
#[derive(Debug, Clone)]
struct Layer(Map<String, Value>);

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.clone())
    }
}

/// Returns the settings of the given file, or of `config.toml` if this file exists.
fn file_layer(file: Option<&Path>) -> anyhow::Result<Layer> {
    let source: File<FileSourceFile, FileFormat> = match file {
        Some(file) => File::from(file).format(FileFormat::Toml).required(true),
        None => File::new("config.toml", FileFormat::Toml).required(false),
    };
    Ok(Layer(source.collect()?))
}

fn text_layer(text: &str) -> anyhow::Result<Layer> {
    let source: File<FileSourceString, FileFormat> = File::from_str(text, FileFormat::Toml);
    Ok(Layer(source.collect()?))
}

/// Returns the environment variables whose name and value are valid Unicode.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_environment_variable_or_the_setting_of_the_file() {
        let variable = |value: &str| vec![("FOLDWORK_PIPELINE__TIMEOUT".to_owned(), value.to_owned())];
        let read = |file: &str, variables: &[(String, String)]| {
            Config::with_variables(text_layer(file).expect("TOML"), variables).map_err(|error| format!("{error:#}"))
        };
        let refused = read("", &variable("soon")).expect_err("refused");
        assert!(refused.contains("the environment variable FOLDWORK_PIPELINE__TIMEOUT is not valid"), "{refused}");
        let refused = read("[pipeline]\ntimeout = \"soon\"\n", &variable("soon")).expect_err("refused");
        assert!(refused.starts_with("the configuration is not valid"), "{refused}");
        // The variable overrides the setting of the file.
        let config = read("[pipeline]\ntimeout = \"soon\"\n", &variable("9 s")).expect("a configuration");
        assert_eq!(config.pipeline.timeout, TimeSpan::from_secs(9));
    }

    #[test]
    fn settings_of_a_file_override_the_shipped_defaults() {
        let config = Config::parse("[http]\nbody_limit = \"2 MiB\"\nstop_timeout_s = 9\n").expect("a configuration");
        let defaults = Config::default();
        assert_eq!(config.http.body_limit, DataSize(2 << 20));
        assert_eq!(config.http.stop_timeout, TimeSpan::from_secs(9));
        assert_eq!(config.http.listen, defaults.http.listen);
        assert_eq!(config.store, defaults.store);
        assert_eq!(config.former_names.len(), 1, "{:?}", config.former_names);
    }

    #[test]
    fn defaults_of_the_engine_equal_the_shipped_defaults() {
        assert_eq!(Config::default().engine(), EngineSettings::default());
    }

    #[test]
    fn a_setting_of_the_wrong_type_is_named() {
        let refused = Config::parse("[http]\nbody_timeout = \"soon\"\n").expect_err("no time").to_string();
        assert!(refused.contains("http.body_timeout") && refused.contains("such as \"30 s\""), "{refused}");
    }
}
