//! The hook `mount`: endpoints that plugins written in Rust have, each below its plugin's own path.
//!
//! An endpoint is called for a caller who holds one of its scopes, and reaches no data but by the caller's workspace.
//! Who serves it looks after everything around: the bearer, the scopes, the body's limit, methods that it does not
//! know, the shape of errors, and clients that have its answer already.

use std::pin::Pin;

use foldwork_engine::model::access::Scope;
use foldwork_engine::{Result, Workspace};
use http::{HeaderMap, Method, Response};

/// One method of one path.
pub struct Endpoint {
    pub method: Method,
    /// Below the plugin's own path, without parameters: `atom.xml`.
    pub path: &'static str,
    /// The caller holds one of these.
    pub scopes: &'static [Scope],
    pub handler: Handler,
}

/// Answers requests to an endpoint. What it cannot answer is an error of the engine's.
pub type Handler = Box<dyn Fn(Workspace, Request) -> Answering + Send + Sync>;

/// An answer under way.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answer>> + Send>>;

/// An answer. One with an `ETag` that the client knows is sent as 304, without its body.
pub type Answer = Response<Vec<u8>>;

/// What an endpoint is asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Names and values of the query, decoded, in their order.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Where the endpoint is reached, without a query.
    pub url: String,
    /// What the URLs of the API begin with: `https://example.org/api/v1`.
    pub api_url: String,
}

impl Request {
    /// The first value that the query has under a name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
