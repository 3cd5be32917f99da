//! The layers around all routes: request ids, tracing spans, limits, cross-origin rules, and the shape of errors.

mod answer;
pub mod aside;
pub mod bodies;
pub mod health;
mod pace;
mod paths;
pub mod rate;
pub mod streams;

use std::sync::Arc;

use poem::http::Method;
use poem::middleware::Cors;
use poem::{Endpoint, EndpointExt, Response};
use tokio::sync::watch;

use crate::Config;

/// The shutdown signal of the server, shared by all tasks that depend on it.
#[derive(Clone, Default)]
pub struct Shutdown {
    begun: Arc<watch::Sender<bool>>,
    /// The number of [`Held`] values that delay the end.
    held: Arc<watch::Sender<usize>>,
}

/// Delays the server's end until it is dropped. An upgraded connection needs this, because the server no longer waits
/// for it.
pub struct Held(Arc<watch::Sender<usize>>);

impl Shutdown {
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    pub fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Delays the server's end until the result is dropped.
    pub fn hold(&self) -> Held {
        self.held.send_modify(|held| *held += 1);
        Held(self.held.clone())
    }

    /// Waits until nothing delays the server's end.
    pub async fn released(&self) {
        // `self` owns the sender, so waiting cannot fail.
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
    }

    /// Waits until the shutdown begins.
    pub async fn begun(self) {
        // `self` owns the sender, so waiting cannot fail.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

/// The methods of each path, which is split into segments.
pub type Methods = Vec<(Vec<String>, Vec<String>)>;

/// The headers that scripts of other origins may read, and those that they may send.
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
    // The routes are boxed, because otherwise every layer would hold their whole state on the stack again.
    let routes = routes.map_to_response().boxed();
    let routes = routes.around(move |endpoint, request| bodies::with_share(bodies.clone(), endpoint, request));
    let limited = rate::Limited::new(routes, &config.http);
    // This layer is inside the cross-origin rules, so that errors have their headers as well.
    let answering = answer::Answering::new(limited, methods).with(cors()).around(answer::shape_refusal);
    answering.before(paths::one_segment)
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
