//! The hook `mount`: HTTP endpoints of plugins written in Rust, each below the path of its plugin.
//!
//! An endpoint declares the right that it needs. It is called only for callers with this right, and reaches data only
//! through the handle of this right. The server does everything else: authentication, authorization, the body limit,
//! unknown methods, the format of errors, and conditional requests.

use std::pin::Pin;

use foldwork_engine::{ContentReader, Reader, Result, Writer};
use http::{HeaderMap, Method, Response};

/// One method of one path.
pub struct Endpoint {
    pub method: Method,
    /// The path below the plugin's path, without parameters, such as `atom.xml`.
    pub path: &'static str,
    pub about: About,
    pub handler: Handler,
}

/// The description of an endpoint in the OpenAPI document.
pub struct About {
    /// `<verb>_<resource>`, unique in the document.
    pub operation_id: &'static str,
    /// A summary in one line; `description` adds details.
    pub summary: &'static str,
    pub description: &'static str,
    /// Names of the query parameters, with their meaning.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The media type of the response.
    pub media_type: &'static str,
}

/// The function that handles requests, by the right that it needs.
pub enum Handler {
    /// Reads published content, and drafts if the caller may read them.
    Content(Serve<ContentReader>),
    /// Reads everything.
    Read(Serve<Reader>),
    /// Writes.
    Write(Serve<Writer>),
}

/// Handles a request with a handle of type `R`. Failures are errors of the engine.
pub type Serve<R> = fn(R, Request) -> Answering;

/// The future of a response.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answer>> + Send>>;

/// A response. If the client already has its `ETag`, it is sent as 304 without the body.
pub type Answer = Response<Vec<u8>>;

/// A request to an endpoint.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Decoded names and values of the query, in their order.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The URL of the endpoint, without a query.
    pub url: String,
    /// The base URL of the API, such as `https://example.org/api/v1`.
    pub api_url: String,
}

impl Request {
    /// Returns the first value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
