//! The layers around all routes: request ids, tracing spans, limits, cross-origin rules, and the shape of errors.

mod answer;
pub mod health;
mod paths;
mod rate;

use poem::http::Method;
use poem::middleware::Cors;
use poem::{Endpoint, EndpointExt, Response};

use crate::config::Config;
use crate::http::bodies;
use crate::http::routes::Methods;

/// The response headers that scripts of other origins may read.
const EXPOSED: [&str; 11] = [
    "content-disposition",
    "content-range",
    "etag",
    "link",
    "location",
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "x-request-id",
    "www-authenticate",
    "idempotency-replayed",
];
const ALLOWED: [&str; 19] = [
    "authorization",
    "apikey",
    "content-type",
    "foldwork-workspace",
    "x-client-info",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "if-range",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "prefer",
    "range",
    "traceparent",
    "tracestate",
    "x-request-id",
];

/// Wraps the routes in all layers.
pub fn around<E: Endpoint + 'static>(
    routes: E,
    config: &Config,
    methods: Methods,
) -> impl Endpoint<Output = Response> + use<E> {
    let bodies = bodies::Bodies::new(config);
    // Boxes the routes. Without the box, the future of every layer would contain the whole state of the routes.
    let routes = routes.map_to_response().boxed();
    let routes = routes.around(move |endpoint, request| bodies::with_share(bodies.clone(), endpoint, request));
    let limited = rate::Limited::new(routes, &config.http);
    // Puts this layer inside the cross-origin rules, so that error responses also have the cross-origin headers.
    let wrapped = answer::Answering::new(limited, methods).with(cors()).around(answer::shape_refusal);
    wrapped.before(paths::one_segment)
}

fn cors() -> Cors {
    let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    Cors::new()
        .allow_origins_fn(|_| true)
        .allow_methods(methods)
        .allow_headers(ALLOWED)
        .expose_headers(EXPOSED)
        .allow_credentials(false)
        .max_age(86_400)
}
