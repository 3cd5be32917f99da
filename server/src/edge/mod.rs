//! What stands around every request: its id, its span, limits, cross-origin rules, and the shape of every error.

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

/// Whether the server is on its way down. Shared by whoever must know.
#[derive(Clone, Default)]
pub struct Shutdown {
    begun: Arc<watch::Sender<bool>>,
    /// How many hold the end back.
    held: Arc<watch::Sender<usize>>,
}

/// Holds the end back for a while: what was upgraded is no connection any more that anybody else waits for.
pub struct Held(Arc<watch::Sender<usize>>);

impl Shutdown {
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    pub fn has_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Something that has an end of its own begins.
    pub fn hold(&self) -> Held {
        self.held.send_modify(|held| *held += 1);
        Held(self.held.clone())
    }

    /// Returns when nothing holds the end back.
    pub async fn released(&self) {
        // The sender is held here, so waiting cannot fail.
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
    }

    /// Returns once it has begun: what else would stay open ends then.
    pub async fn begun(self) {
        // The sender is held here, so waiting cannot fail.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

/// The methods that each path knows, by its segments.
pub type Methods = Vec<(Vec<String>, Vec<String>)>;

/// Headers that pages of other origins may read and send.
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

/// Puts everything around the routes.
pub fn around<E: Endpoint + 'static>(
    routes: E,
    config: &Config,
    methods: Methods,
) -> impl Endpoint<Output = Response> + use<E> {
    let bodies = bodies::Bodies::new(config);
    // Boxed: what stands around the routes would else hold all of theirs on the stack, once for each layer.
    let routes = routes.map_to_response().boxed();
    let routes = routes.around(move |endpoint, request| bodies::with_share(bodies.clone(), endpoint, request));
    let limited = rate::Limited::new(routes, &config.http);
    // Inside the cross-origin rules, so that errors carry them too.
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
