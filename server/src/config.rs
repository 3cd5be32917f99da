//! All settings. The shipped `config.toml` is a part of the program and contains every default. A configuration file
//! overrides the defaults, and environment variables `FOLDWORK_<SECTION>__<KEY>` override the file.

mod access;
mod backup;
mod constants;
mod dashboard;
mod environment;
mod files;
mod former_names;
mod former_values;
mod http;
mod mcp;
mod network;
mod plugins;
mod units;

use std::path::Path;

use config::{File, FileFormat, FileSourceFile, FileSourceString, Map, Source, Value};
use foldwork_engine::{EngineSettings, QueryLimits};
use serde::{Deserialize, Serialize};

pub use access::{Auth, Issuer, OfferedPlan, Plans};
pub use backup::{Backup, Verify};
pub use constants::{Constants, EmbeddingCalls, SocketLimits};
pub use dashboard::{Dashboard, SignIn};
pub use files::Files;
use former_values::FormerValues;
pub use http::Http;
pub use mcp::Mcp;
pub use network::Network;
pub use plugins::Plugins;
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
    pub search: Search,
    pub metrics: Metrics,
    pub log: Log,
    /// The limits that no setting changes.
    #[serde(skip)]
    pub constants: Constants,
    /// The warnings about former settings in the file and in environment variables.
    #[serde(skip)]
    former_names: Vec<String>,
}

/// The defaults of the shipped `config.toml`.
impl Default for Config {
    fn default() -> Config {
        toml::from_str(DEFAULTS).expect("the shipped configuration has every setting, as a test checks")
    }
}

/// Settings of the store: its URL, the size of a memtable of a store in a folder, and the time limit of queries to a
/// SurrealDB server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    pub url: String,
    pub memtable: DataSize,
    pub timeout: TimeSpan,
}

/// Settings of workspaces: the time between a request to delete a workspace and its deletion.
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

/// Limits on the time and the memory of a pipeline, and on the concurrent pipelines of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    pub timeout: TimeSpan,
    pub memory: DataSize,
    pub workspace_queries: usize,
}

/// Settings of the mailbox: whether users may approve, edit or reject output that they have delivered themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mailbox {
    pub own_deliveries: bool,
}

/// Settings of search: the embeddings with which labels are searched by meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    pub embedding: Embedding,
}

/// Settings of the embeddings that search uses: the URL of their source, and the name of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    pub url: String,
    pub model: String,
    /// The limits on calls of the service that computes embeddings. No setting changes these limits.
    #[serde(skip)]
    pub calls: EmbeddingCalls,
}

/// The place where embeddings are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingSource<'a> {
    /// Labels are not searched by meaning.
    Off,
    /// The model in this folder computes the embeddings.
    Folder(&'a str),
    /// The HTTP service with the configured URL computes the embeddings.
    Service,
}

impl Embedding {
    /// Returns the source of embeddings, which depends on the scheme of the URL.
    pub fn source(&self) -> EmbeddingSource<'_> {
        match self.url.strip_prefix("file://") {
            Some(folder) => EmbeddingSource::Folder(folder),
            None if self.url.is_empty() => EmbeddingSource::Off,
            None => EmbeddingSource::Service,
        }
    }
}

/// Settings of the metrics: the address at which the server serves metrics. If the address is empty, no metrics are
/// served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    pub listen: String,
}

/// Settings of the log: the filter of its messages, and the format of its lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub filter: String,
    pub format: Format,
}

/// The tracing target of the messages about requests. The filter of the log selects these messages by their target.
pub const ACCESS_LOG: &str = "foldwork::access";

impl Log {
    /// Changes the filter so that the log contains no lines for requests.
    pub fn hide_requests(&mut self) {
        // An empty filter shows only errors.
        if !self.filter.trim().is_empty() {
            self.filter.push_str(&format!(",{ACCESS_LOG}=off"));
        }
    }
}

/// The format of the lines of the log: text, or a JSON object per line.
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

    /// Returns the configuration of a file and environment variables. If the file is valid and one of the variables is
    /// not, the error names the variable.
    fn with_variables(file: Layer, variables: &[(String, String)]) -> anyhow::Result<Config> {
        let read = |variables: &[(String, String)]| -> anyhow::Result<Config> {
            // Writes the variables as TOML, the only format in which the values keep their types.
            let environment = toml::to_string(&environment::settings(variables.iter().cloned())?)?;
            let environment = Layer { is_environment: true, ..text_layer(&environment)? };
            Config::from_layers([file.clone(), environment])
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

    /// Parses a text in the format of `config.toml`. Settings that the text does not contain have their defaults.
    pub fn parse(text: &str) -> anyhow::Result<Config> {
        Config::from_layers([text_layer(text)?])
    }

    /// Returns the defaults with the settings of these layers. Each layer overrides the layers before it.
    fn from_layers(layers: impl IntoIterator<Item = Layer>) -> anyhow::Result<Config> {
        let mut sources = config::Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        let (mut warnings, mut former_values) = (Vec::new(), FormerValues::default());
        for mut layer in layers {
            let place = if layer.is_environment { "in the environment: " } else { "" };
            let former = former_names::adopt(&mut layer.settings)?.into_iter();
            let former = former.chain(former_values.take(&mut layer.settings)?);
            warnings.extend(former.map(|warning| format!("{place}{warning}")));
            sources = sources.add_source(layer);
        }
        let mut config = Config { former_names: warnings, ..sources.build()?.try_deserialize()? };
        former_values.apply(&mut config)?;
        Ok(config)
    }

    /// Returns the configured format of the log, for the message about an error that ends the program. Returns the
    /// default if the setting is missing or cannot be read.
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

    /// Returns messages about the former settings in the file and in environment variables, and about environment
    /// variables that have the prefix of Foldwork and no effect. At most 20 such variables are reported.
    pub fn warnings(&self) -> Vec<String> {
        let unknown = environment::unknown(variables().map(|(name, _)| name), self);
        self.former_names.iter().cloned().chain(unknown).collect()
    }

    /// Returns the settings of the engine.
    pub fn engine(&self) -> EngineSettings {
        let queries = self.pipeline.workspace_queries;
        let bytes = self.pipeline.memory.bytes().saturating_mul(self.constants.workspace_memory);
        // Rounds up, because a share of 0 would mean no limit.
        let share_of = |limit: usize| limit.div_ceil(self.constants.key_share.max(1));
        EngineSettings {
            pipeline_ms: self.pipeline.timeout.millis(),
            pipeline_bytes: self.pipeline.memory.bytes(),
            queries: QueryLimits {
                workspace_queries: queries,
                key_queries: share_of(queries),
                workspace_bytes: bytes,
                key_bytes: share_of(bytes),
                wait_ms: TimeSpan(self.constants.query_wait).millis(),
            },
            resident_bytes: self.memory.resident.bytes(),
            quota_bytes: self.files.quota.0,
            own_deliveries: self.mailbox.own_deliveries,
            deletion_grace_ms: self.workspaces.deletion_grace.signed_millis(),
            ..EngineSettings::default()
        }
    }

    /// Returns the URL of the server, without a trailing slash: the configured public URL, or a URL with this address.
    pub fn public_url(&self, address: &str) -> String {
        match self.http.public_url.trim_end_matches('/') {
            "" => format!("http://{address}"),
            url => url.to_owned(),
        }
    }
}

/// The settings of one source: a file, or the environment.
#[derive(Debug, Clone)]
struct Layer {
    settings: Map<String, Value>,
    /// Whether the settings come from environment variables. Warnings about former settings contain the names of the
    /// settings as in a file. If the settings come from the environment, the warnings therefore also name the
    /// environment.
    is_environment: bool,
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.settings.clone())
    }
}

/// Returns the settings of the given file, or of `config.toml` if this file exists.
fn file_layer(file: Option<&Path>) -> anyhow::Result<Layer> {
    let source: File<FileSourceFile, FileFormat> = match file {
        Some(file) => File::from(file).format(FileFormat::Toml).required(true),
        None => File::new("config.toml", FileFormat::Toml).required(false),
    };
    Ok(Layer { settings: source.collect()?, is_environment: false })
}

fn text_layer(text: &str) -> anyhow::Result<Layer> {
    let source: File<FileSourceString, FileFormat> = File::from_str(text, FileFormat::Toml);
    Ok(Layer { settings: source.collect()?, is_environment: false })
}

/// Returns the environment variables whose name and value are valid Unicode.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_states_whether_the_file_or_the_environment_has_the_invalid_value() {
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
    fn the_query_limits_of_a_key_are_half_of_the_limits_of_its_workspace() {
        let of_key = |text: &str| {
            let queries = Config::parse(text).expect("a configuration").engine().queries;
            (queries.key_queries, queries.key_bytes)
        };
        assert_eq!(of_key("[pipeline]\nworkspace_queries = 5\nmemory = 20\n"), (3, 40));
        assert_eq!(of_key("[pipeline]\nworkspace_queries = 1\nmemory = 1\n"), (1, 2));
        // Without a limit of the workspace, its keys have no limit either.
        assert_eq!(of_key("[pipeline]\nworkspace_queries = 0\n"), (0, 128 << 20));
    }

    #[test]
    fn the_scheme_of_a_url_selects_the_source_of_embeddings() {
        let embedding = |url: &str| Embedding { url: url.into(), ..Config::default().search.embedding };
        assert_eq!(embedding("").source(), EmbeddingSource::Off);
        assert_eq!(embedding("file://models/small").source(), EmbeddingSource::Folder("models/small"));
        assert_eq!(embedding("https://api.example.com/v1").source(), EmbeddingSource::Service);
    }

    #[test]
    fn the_error_about_a_value_of_the_wrong_type_names_the_setting() {
        let refused = Config::parse("[http]\nstop_timeout = \"soon\"\n").expect_err("not a time").to_string();
        assert!(refused.contains("http.stop_timeout") && refused.contains("such as \"30 s\""), "{refused}");
    }
}
