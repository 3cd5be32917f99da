//! The layers around all routes: request ids, tracing spans, metrics, the access log, limits, cross-origin rules, and
//! the shape of errors.

pub mod health;
mod paths;
mod rate;
mod request_log;
mod response;
mod routing;
mod wrong_tokens;

use std::sync::Arc;

use poem::http::Method;
use poem::middleware::Cors;
use poem::{Endpoint, EndpointExt, Response};

use crate::config::Config;
use crate::http::bodies;
use crate::http::client_address::TrustedProxies;
use crate::http::routes::{Methods, Operations};
use routing::RouteTable;

/// The response headers that scripts of other origins may read.
const EXPOSED: [&str; 12] = [
    "content-disposition",
    "content-range",
    "etag",
    "foldwork-workspace",
    "link",
    "location",
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "x-request-id",
    "www-authenticate",
    "idempotency-replayed",
];
const ALLOWED: [&str; 20] = [
    "authorization",
    "apikey",
    "content-type",
    "foldwork-durability",
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
    operations: Operations,
) -> impl Endpoint<Output = Response> + use<E> {
    let bodies = bodies::Bodies::new(config);
    // Boxes the routes, because otherwise the future of every layer would contain the whole state of the routes.
    let routes = routes.map_to_response().boxed();
    let routes = routes.around(move |endpoint, request| bodies::with_share(bodies.clone(), endpoint, request));
    let limited = rate::RateLimitEndpoint::new(routes, &config.http);
    let routing = Arc::new(RouteTable { methods, operations });
    // Puts this layer inside the cross-origin rules, so that error responses also have the cross-origin headers.
    let wrapped =
        response::UniformResponses::new(limited, routing.clone()).with(cors()).around(response::shape_refusal);
    let recorded = move |endpoint, request| request_log::recorded(routing.clone(), endpoint, request);
    let proxies = TrustedProxies::new(&config.http.trusted_proxies);
    wrapped.around(recorded).before(paths::one_segment).before(move |mut request| {
        let (client, origin) = proxies.read(&request);
        request.set_data(client);
        request.set_data(origin);
        std::future::ready(Ok(request))
    })
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
