//! The hook `mount`: endpoints that plugins written in Rust have, each below its plugin's own path.
//!
//! An endpoint says which right it needs, is called for callers who have it, and reaches no data but by the handle that
//! this right gives. Who serves it looks after everything around: the bearer, the right, the body's limit, methods that
//! it does not know, the shape of errors, and clients that have its answer already.

use std::pin::Pin;

use foldwork_engine::{ContentReader, Reader, Result, Writer};
use http::{HeaderMap, Method, Response};

/// One method of one path.
pub struct Endpoint {
    pub method: Method,
    /// Below the plugin's own path, without parameters: `atom.xml`.
    pub path: &'static str,
    pub about: About,
    pub handler: Handler,
}

/// What the OpenAPI document says of an endpoint.
pub struct About {
    /// `<verb>_<resource>`, the document's only one of this name.
    pub operation_id: &'static str,
    /// One line, and then some more.
    pub summary: &'static str,
    pub description: &'static str,
    /// Names in the query that it looks at, with what they mean.
    pub parameters: &'static [(&'static str, &'static str)],
    /// What it answers.
    pub media_type: &'static str,
}

/// What answers requests to an endpoint, by the right that it needs.
pub enum Handler {
    /// Content: what is published, and drafts for those who may read them.
    Content(Serve<ContentReader>),
    /// Everything.
    Read(Serve<Reader>),
    /// Changes something.
    Write(Serve<Writer>),
}

/// Answers a request by a right. What it cannot answer is an error of the engine's.
pub type Serve<R> = fn(R, Request) -> Answering;

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
