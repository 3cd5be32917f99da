//! Serves the OpenAPI document as JSON, as YAML and as a page, and the page about the pipeline language. The server
//! builds each response body once. If the public URL is not configured, the server inserts into the OpenAPI document,
//! for each request, the address by which the client reached the server.

use bytes::Bytes;
use poem::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use poem::http::{HeaderMap, StatusCode};
use poem::{Endpoint, Response};
use poem_openapi::{OpenApi, OpenApiService};
use serde_json::{Value, json as value};
use sha2::{Digest, Sha256};

use crate::api::operators;
use crate::http::etag::is_known;
use crate::http::public_url::PublicUrl;

/// The placeholder for the scheme and the host of the server.
const BASE: &str = "http://base.invalid";

/// A response body that does not change while the server runs, apart from the address by which a client reaches the
/// server.
#[derive(Clone)]
struct DocumentText {
    content_type: &'static str,
    /// The parts of the body. The address of the server is inserted between consecutive parts.
    parts: Vec<Bytes>,
    tag: String,
}

impl DocumentText {
    fn new(content_type: &'static str, text: &str) -> DocumentText {
        let tag = digest(text);
        DocumentText {
            content_type,
            parts: text.split(BASE).map(|part| Bytes::copy_from_slice(part.as_bytes())).collect(),
            tag,
        }
    }

    /// Returns the body for a client that reaches the server by the address `base`.
    fn at(&self, base: &str) -> Bytes {
        match self.parts.as_slice() {
            [only] => only.clone(),
            parts => parts.join(base.as_bytes()).into(),
        }
    }
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text)[..16])
}

impl Endpoint for DocumentText {
    type Output = Response;

    async fn call(&self, request: poem::Request) -> poem::Result<Response> {
        let base = request.data::<PublicUrl>().map(|url| url.base(&request)).unwrap_or_default();
        // Caches must revalidate with every request, because the document changes with the version of the server. A
        // response that contains an address must not be cached for other clients, because the address comes from the
        // request.
        let (tag, caching) = match self.parts.len() {
            1 => (format!("\"{}\"", self.tag), "no-cache"),
            _ => (format!("\"{}\"", digest(&format!("{}{base}", self.tag))), "private, no-cache"),
        };
        let response = Response::builder().header(ETAG, &tag).header(CACHE_CONTROL, caching);
        Ok(match knows(request.headers(), &tag) {
            true => response.status(StatusCode::NOT_MODIFIED).finish(),
            false => response.content_type(self.content_type).body(self.at(&base)),
        })
    }
}

fn knows(headers: &HeaderMap, tag: &str) -> bool {
    is_known(headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()), tag)
}

/// Returns the document with [`BASE`] in front of each server's path. If the public URL is configured, the document
/// already has whole URLs and does not change.
fn placed(document: &Value) -> Value {
    let mut document = document.clone();
    let place = |servers: &mut Value| {
        for server in servers.as_array_mut().into_iter().flatten() {
            if let Some(path) = server["url"].as_str().filter(|url| url.starts_with('/')) {
                server["url"] = value!(format!("{BASE}{path}"));
            }
        }
    };
    place(&mut document["servers"]);
    for (_, item) in document["paths"].as_object_mut().into_iter().flatten() {
        item.get_mut("servers").into_iter().for_each(place);
    }
    document
}

/// Serves the document as JSON.
pub fn json(document: &Value) -> impl Endpoint + use<> {
    DocumentText::new("application/json", &serde_json::to_string_pretty(&placed(document)).unwrap_or_default())
}

/// Serves the document as YAML.
pub fn yaml(document: &Value) -> impl Endpoint + use<> {
    DocumentText::new("application/yaml", &serde_saphyr::to_string(&placed(document)).unwrap_or_default())
}

/// Serves the page that documents the pipeline language.
pub fn language() -> impl Endpoint {
    DocumentText::new("text/html; charset=utf-8", &operators::page())
}

/// Serves an interactive page that shows the document and sends requests.
pub fn page<A: OpenApi>(service: &OpenApiService<A, ()>, document: &Value) -> impl Endpoint + use<A> {
    // The page embeds the document in a script element. A `</` in a string would end the element, so every `</` is
    // escaped. The host of a request contains only characters that need no escaping.
    let shown = placed(document).to_string().replace("</", "<\\/");
    DocumentText::new("text/html; charset=utf-8", &service.swagger_ui_html().replace(&service.spec(), &shown))
}
