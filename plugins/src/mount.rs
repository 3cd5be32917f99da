//! The hook `mount`: HTTP endpoints of plugins written in Rust. Each endpoint is below the path of its plugin.
//!
//! An endpoint declares the right that it needs. The server calls the endpoint only for callers with this right, and
//! the endpoint accesses data only through the handle for this right. The server handles authentication, authorization,
//! the body limit, unknown methods, the format of errors, and conditional requests.

use std::pin::Pin;

use foldwork_engine::{ContentReader, Reader, Result, Writer};
use http::{HeaderMap, Method};

/// An endpoint: one HTTP method of one path.
pub struct Endpoint {
    pub method: Method,
    /// The path relative to the plugin's path, without parameters, such as `atom.xml`.
    pub path: &'static str,
    pub about: EndpointDescription,
    pub handler: Handler,
}

/// The description of an endpoint in the OpenAPI document.
pub struct EndpointDescription {
    /// The id of the operation, in the form `<verb>_<resource>`. The id must be unique in the document.
    pub operation_id: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// Details that the summary omits.
    pub description: &'static str,
    /// The name and meaning of each query parameter.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The media type of the response.
    pub media_type: &'static str,
}

/// The function that handles requests. The variant names the right that the function needs.
pub enum Handler {
    /// A function that reads published content, and drafts if the caller may read drafts.
    Content(Serve<ContentReader>),
    /// A function that can read all data of the workspace.
    Read(Serve<Reader>),
    /// A function that writes data of the workspace.
    Write(Serve<Writer>),
}

/// A function that handles a request with a handle of type `R`. Failures are errors of the engine.
pub type Serve<R> = fn(R, EndpointRequest) -> Responding;

/// The future that resolves to a response.
pub type Responding = Pin<Box<dyn Future<Output = Result<Response>> + Send>>;

/// A response. If the status is 200 and the client already has the body with the same `ETag`, the server sends status
/// 304 without the body.
pub type Response = http::Response<Vec<u8>>;

/// A request to an endpoint.
#[derive(Debug, Clone, Default)]
pub struct EndpointRequest {
    /// The decoded names and values of the query parameters, in the order of the URL.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The URL of the endpoint, without a query.
    pub url: String,
    /// The base URL of the API, such as `https://example.org/api/v1`.
    pub api_url: String,
}

impl EndpointRequest {
    /// Returns the first value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
