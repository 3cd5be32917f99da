//! The plugin `mcp`: serves a workspace to models over the Model Context Protocol.
//!
//! There are no sessions. Each request carries the rights of its caller as [`CallerHandles`]. A tool's function takes a
//! [`Reader`] or a [`Writer`], so a tool that only reads cannot write. The scopes `mcp:read` and `mcp:write` give no
//! access to the API, except that `mcp:write` allows uploads through links that a tool has created.
//!
//! Arguments are checked against the schema that models receive. The schema is generated from the type to which the
//! arguments are converted. `Reader::call_tool` calls the tool of a scripted plugin: it first runs the tool's pipeline,
//! and then the script on the plugins' threads.

mod closed_sets;
mod completions;
mod exact;
mod pages;
mod prompts;
mod resources;
mod response;
mod server;
mod tool;
mod tools;

use std::sync::Arc;

use foldwork_engine::model::value::Object;
use foldwork_engine::{Error, Reader, Writer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::native::{Native, Protocol, mounted};
pub use exact::{ExactResult, sent_arguments};
use server::Server;

/// The name of the plugin.
pub const NAME: &str = "mcp";
/// The URL path at which the protocol is served.
pub const PATH: &str = "/mcp";

/// The handles of a caller. Each request carries its caller's handles. A tool can access the data of a workspace only
/// through these handles.
#[derive(Clone)]
pub struct CallerHandles {
    pub reader: Reader,
    /// The handle for writing, or the error that explains why the caller may not write.
    pub writer: Result<Writer, Object>,
    /// The first part of the URL of an upload link. The link's token follows.
    pub upload_url: Arc<str>,
    /// The text that [`sent_arguments`] returns for the request.
    pub sent: Option<Arc<str>>,
    /// Receives the text of a tool's result.
    pub result: ExactResult,
}

/// The settings of the MCP server.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// The host names to which requests may be sent. An empty list allows all host names.
    pub allowed_hosts: Vec<String>,
    /// The origins of web pages that may send requests. An empty list allows all origins. The list does not apply to
    /// the API, which allows all origins.
    pub allowed_origins: Vec<String>,
    /// The maximum size of a result's JSON, in bytes.
    pub response_bytes: usize,
    /// The maximum size of a request, in bytes.
    pub request_bytes: usize,
    /// The maximum size of an uploaded file, in bytes. `None` means no limit.
    pub upload_bytes: Option<u64>,
    /// The function that converts an error to the object that clients receive: `error`, `code` and the error's
    /// position.
    pub describe: fn(Error) -> Object,
}

/// The HTTP service of the protocol. Requests must carry [`CallerHandles`] in their extensions.
pub type Service = StreamableHttpService<Server, NeverSessionManager>;

/// Returns the service for requests at [`PATH`].
pub fn service(settings: McpSettings) -> Service {
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
    tools::all().iter().any(|tool| tool.description.name == name)
}

/// Returns the plugin. The plugin has no endpoints, because it serves its own protocol.
pub fn plugin() -> Native {
    let description = "Lets models search, query and change the workspace over the Model Context Protocol.";
    Native { plugin: mounted(NAME, description), endpoints: Vec::new(), protocol: Some(Protocol::Mcp) }
}
