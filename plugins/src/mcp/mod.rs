//! The plugin `mcp`: a workspace as models see it, by the Model Context Protocol.
//!
//! Every request stands for itself: there are no sessions, and who asks comes with the request as [`Access`]. What a
//! tool may do is the type of the handle that it is given: a [`Reader`] or a [`Writer`].

mod answer;
mod completions;
mod pages;
mod prompts;
mod resources;
mod server;
mod tool;
mod tools;
mod words;

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
/// Where it is reached.
pub const PATH: &str = "/mcp";

/// Who asks, as handles. It comes with each request, and is the only way to anybody's data.
#[derive(Clone)]
pub struct Access {
    pub reader: Reader,
    /// For callers who may change something; others are told why they may not.
    pub writer: Result<Writer, Object>,
    /// What the URL of a link to upload begins with; the link itself comes behind it.
    pub upload_url: Arc<str>,
}

/// What the server decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names that requests may be sent to.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call; none: any, as for the API.
    pub allowed_origins: Vec<String>,
    /// Bytes of JSON that an answer may have.
    pub answer_bytes: usize,
    /// Bytes that a request may have.
    pub request_bytes: usize,
    /// Bytes that a file may have which is uploaded, where there is a bound.
    pub upload_bytes: Option<u64>,
    /// What clients are told of an error: `error`, `code` and where.
    pub describe: fn(Error) -> Object,
}

/// The protocol over HTTP. Requests carry an [`Access`] among their extensions.
pub type Service = StreamableHttpService<Server, NeverSessionManager>;

/// What answers requests at [`PATH`].
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

/// Whether a tool of this name is there without any script.
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

/// The plugin, which is served by a protocol of its own.
pub fn plugin() -> Native {
    let about = About {
        name: NAME.into(),
        version: "1.0.0".into(),
        description: "Lets models search, query and change the workspace by the Model Context Protocol.".into(),
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
