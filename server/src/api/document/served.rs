//! Serves the OpenAPI document as JSON, as YAML and as a page. Each response body is built once and has an entity tag.

use bytes::Bytes;
use poem::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use poem::http::{HeaderMap, StatusCode};
use poem::{Endpoint, Response};
use poem_openapi::{OpenApi, OpenApiService};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::api::operators;
use crate::http::etag::is_known;

/// A response body that does not change while the server runs.
#[derive(Clone)]
struct Text {
    content_type: &'static str,
    bytes: Bytes,
    tag: String,
}

impl Text {
    fn new(content_type: &'static str, text: String) -> Text {
        let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&text)[..16]));
        Text { content_type, bytes: text.into(), tag }
    }
}

impl Endpoint for Text {
    type Output = Response;

    async fn call(&self, request: poem::Request) -> poem::Result<Response> {
        // Caches must revalidate with every request, because the document changes with the version of the server.
        let response = Response::builder().header(ETAG, &self.tag).header(CACHE_CONTROL, "no-cache");
        Ok(match knows(request.headers(), &self.tag) {
            true => response.status(StatusCode::NOT_MODIFIED).finish(),
            false => response.content_type(self.content_type).body(self.bytes.clone()),
        })
    }
}

fn knows(headers: &HeaderMap, tag: &str) -> bool {
    is_known(headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()), tag)
}

/// Serves the document as JSON.
pub fn json(document: &Value) -> impl Endpoint + use<> {
    Text::new("application/json", serde_json::to_string_pretty(document).unwrap_or_default())
}

/// Serves the document as YAML.
pub fn yaml(document: &Value) -> impl Endpoint + use<> {
    Text::new("application/yaml", serde_saphyr::to_string(document).unwrap_or_default())
}

/// Serves the page that documents the pipeline language.
pub fn language() -> impl Endpoint {
    Text::new("text/html; charset=utf-8", operators::page())
}

/// Serves an interactive page that shows the document and sends requests.
pub fn page<A: OpenApi>(service: &OpenApiService<A, ()>, document: &Value) -> impl Endpoint + use<A> {
    // The page embeds the document in a script element. A `</` in a string would end the element, so every `</` is
    // escaped.
    let shown = document.to_string().replace("</", "<\\/");
    Text::new("text/html; charset=utf-8", service.swagger_ui_html().replace(&service.spec(), &shown))
}
