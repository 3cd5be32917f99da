//! The edge of Foldwork: what serves the engine over HTTP, and the program around it.
//!
//! This is the composition root: configuration, store, engine, routes, in this order.

pub mod api;
pub mod auth;
pub mod cli;
pub mod config;
pub mod edge;
pub mod embedding;
mod mounted;
mod realtime;
pub mod serve;
pub mod telemetry;

use std::sync::Arc;

use foldwork_engine::Engine;
use poem::endpoint::BoxEndpoint;
use poem::{EndpointExt, Response, Route, get};

pub use config::Config;

/// Where the API and its companions are mounted.
pub const API: &str = "/api/v1";

/// The whole application: what a socket, or a test, sends requests to.
pub fn application(engine: Arc<Engine>, config: &Config, shutdown: edge::Shutdown) -> BoxEndpoint<'static, Response> {
    let service = api::service(config);
    let document = Arc::new(api::document::finished(&service));
    let page = api::document::page(&service, &document);
    let mut methods = api::document::methods(&document);
    let realtime = realtime::Realtime::new(&config.realtime);
    let mut routes = Route::new()
        .nest(API, service)
        .at("/openapi.json", get(api::document::json(&document)))
        .at("/openapi.yaml", get(api::document::yaml(&document)))
        .at("/docs/operators", get(api::document::language()))
        .nest("/docs", page)
        .nest(realtime::PATH, realtime.routes())
        .at("/healthz", get(edge::health::healthz))
        .at("/readyz", get(edge::health::readyz));
    for mounted in mounted::mounted(config) {
        methods.insert(0, (mounted.path.split('/').map(str::to_owned).collect(), mounted.methods));
        routes = routes.at(mounted.path, mounted.route);
    }
    let streams = edge::streams::Streams::new(config.http.event_streams_per_workspace, "event streams");
    let page = api::page::PageBytes(config.http.page_bytes);
    let public_url = Some(config.http.public_url.trim_end_matches('/').to_owned()).filter(|url| !url.is_empty());
    let routes = routes.data(engine).data(shutdown).data(streams).data(page).data(api::relay::PublicUrl(public_url));
    edge::around(routes, config, methods).boxed()
}

/// The OpenAPI document, as it is served.
pub fn openapi(config: &Config) -> serde_json::Value {
    api::document::finished(&api::service(config))
}
