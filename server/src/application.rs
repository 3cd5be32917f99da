//! The application: all routes in the order of mounting, wrapped in the common layers.

use std::sync::Arc;

use foldwork_engine::Engine;
use poem::endpoint::BoxEndpoint;
use poem::{EndpointExt, IntoEndpoint, Response, Route, get};

use crate::api::query::{Parameters, checked};
use crate::config::Config;
use crate::http::public_url::PublicUrl;
use crate::http::routes::{API, DOWNLOADS, FUNCTIONS, REALTIME};
use crate::http::shutdown::Shutdown;
use crate::http::streams::Streams;
use crate::wire::page::PageBytes;
use crate::{api, download, edge, mcp, mounted, realtime};

/// Returns the whole application as an endpoint, for a listening socket or for tests.
pub fn application(engine: Arc<Engine>, config: &Config, shutdown: Shutdown) -> BoxEndpoint<'static, Response> {
    let service = api::service(config);
    let functions = api::functions(config);
    let document = api::document::finished(&service, &functions, config);
    let page = api::document::page(&service, &document);
    let mut methods = api::document::methods(&document);
    let realtime = realtime::Realtime::new(&config.realtime);
    let (known, known_functions) = (Parameters::of(&document, API), Parameters::of(&document, FUNCTIONS));
    let service = service.into_endpoint().around(move |endpoint, request| checked(known.clone(), endpoint, request));
    let functions =
        functions.into_endpoint().around(move |endpoint, request| checked(known_functions.clone(), endpoint, request));
    let mut routes = Route::new()
        .nest(API, service)
        .nest(FUNCTIONS, functions)
        .at("/openapi.json", get(api::document::json(&document)))
        .at("/openapi.yaml", get(api::document::yaml(&document)))
        .at("/docs/operators", get(api::document::language()))
        .nest("/docs", page)
        .nest(REALTIME, realtime.routes())
        .at(format!("{}/:path", DOWNLOADS), get(download::download).head(download::download))
        .at("/healthz", get(edge::health::healthz))
        .at("/readyz", get(edge::health::readyz));
    for (path, method) in realtime::METHODS {
        let segments = format!("{}{path}", REALTIME).split('/').map(str::to_owned).collect();
        methods.insert(0, (segments, vec![method.to_owned()]));
    }
    for mounted in mounted::mounted(config) {
        methods.insert(0, (mounted.path.split('/').map(str::to_owned).collect(), mounted.methods));
        routes = routes.at(mounted.path, mounted.route);
    }
    routes = mcp::mount(routes, &mut methods, config);
    let streams = Streams::new(config.http.event_streams_per_workspace, "event streams");
    let page = PageBytes(config.http.page_bytes);
    let routes = routes.data(engine).data(shutdown).data(streams).data(page);
    let routes = routes.data(PublicUrl::of(config));
    edge::around(routes, config, methods).boxed()
}

/// Returns the OpenAPI document that the server serves.
pub fn openapi(config: &Config) -> serde_json::Value {
    api::document::finished(&api::service(config), &api::functions(config), config)
}
