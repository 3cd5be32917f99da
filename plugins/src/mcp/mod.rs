//! The plugin `mcp`: serves a workspace to models over the Model Context Protocol.
//!
//! There are no sessions: each request carries its caller as [`Access`]. What a tool may do follows from the type of
//! its handle, a [`Reader`] or a [`Writer`].

mod answer;
mod closed_sets;
mod completions;
mod pages;
mod prompts;
mod resources;
mod server;
mod tool;
mod tools;

use std::sync::Arc;

use foldwork_engine::hook::{About, Candidates, Hook, OnError, Plugin, Subscription};
use foldwork_engine::model::value::Object;
use foldwork_engine::{Error, Reader, Writer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::native::{Native, Protocol};
use server::Server;

/// The plugin's name.
pub const NAME: &str = "mcp";
/// The path of the service.
pub const PATH: &str = "/mcp";

/// The handles of a caller. Each request carries them, and there is no other way to the data of a workspace.
#[derive(Clone)]
pub struct Access {
    pub reader: Reader,
    /// The writer of callers who may write. For others, the error that explains why they may not.
    pub writer: Result<Writer, Object>,
    /// The beginning of the URL of an upload link; the link's token follows.
    pub upload_url: Arc<str>,
}

/// Settings of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Host names to which requests may be sent.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call. As in the API, an empty list allows any origin.
    pub allowed_origins: Vec<String>,
    /// Limit on the JSON of an answer, in bytes.
    pub answer_bytes: usize,
    /// Limit on a request, in bytes.
    pub request_bytes: usize,
    /// Limit on an uploaded file, in bytes, if there is one.
    pub upload_bytes: Option<u64>,
    /// Returns an error as clients see it: `error`, `code` and its position.
    pub describe: fn(Error) -> Object,
}

/// The protocol over HTTP. Requests must carry an [`Access`] in their extensions.
pub type Service = StreamableHttpService<Server, NeverSessionManager>;

/// Returns the service for requests at [`PATH`].
pub fn service(settings: Settings) -> Service {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(settings.request_bytes)
        .with_allowed_hosts(settings.allowed_hosts.clone())
        .with_allowed_origins(settings.allowed_origins.clone());
    let server = Server::new(settings);
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

/// Returns whether a built-in tool has this name.
pub(crate) fn is_own_tool(name: &str) -> bool {
    tools::NAMES.contains(&name)
}

struct Mcp {
    about: About,
}

impl Plugin for Mcp {
    fn about(&self) -> &About {
        &self.about
    }
}

/// Returns the plugin, which is served over its own protocol.
pub fn plugin() -> Native {
    let about = About {
        name: NAME.into(),
        version: "1.0.0".into(),
        description: "Lets models search, query and change the workspace over the Model Context Protocol.".into(),
        hooks: vec![Hook::Mount],
        on: Subscription::default(),
        on_error: OnError::default(),
        settings: Object::new(),
        agent: None,
        tool: None,
        candidates: Candidates::default(),
    };
    Native { plugin: Arc::new(Mcp { about }), endpoints: Vec::new(), protocol: Some(Protocol::Mcp) }
}
