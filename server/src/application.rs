//! The application: all routes, wrapped in the layers that every request passes through.

use std::sync::Arc;

use foldwork_engine::Engine;
use foldwork_engine::archive::Backups;
use poem::endpoint::BoxEndpoint;
use poem::{EndpointExt, IntoEndpoint, Response, Route, get};

use crate::api::query::{Parameters, checked};
use crate::config::Config;
use crate::http::archiving::ServerArchive;
use crate::http::public_url::PublicUrl;
use crate::http::routes::{API, DOWNLOADS, FUNCTIONS, HEALTH, REALTIME};
use crate::http::shutdown::Shutdown;
use crate::http::streams::OpenStreams;
use crate::metric::STREAMS_OPEN;
use crate::wire::page::PageBytes;
use crate::{api, dashboard, download, edge, mcp, plugin_routes, realtime};

/// Returns the application of a server without backups, as an endpoint for tests.
pub fn application(engine: Arc<Engine>, config: &Config, shutdown: Shutdown) -> BoxEndpoint<'static, Response> {
    application_with_backups(engine, None, config, shutdown)
}

/// Returns the application as an endpoint for a listening socket or for tests. `backups` is the archiver of the server,
/// if the server archives the log.
pub fn application_with_backups(
    engine: Arc<Engine>,
    backups: Option<Arc<Backups>>,
    config: &Config,
    shutdown: Shutdown,
) -> BoxEndpoint<'static, Response> {
    let service = api::service(config);
    let functions = api::functions(config);
    let document = api::document::finished(&service, &functions, config);
    let page = api::document::page(&service, &document);
    let mut methods = api::document::methods(&document);
    let operations = api::document::operations(&document);
    let realtime = realtime::Realtime::new(config);
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
        .at(HEALTH[0], get(edge::health::healthz))
        .at(HEALTH[1], get(edge::health::readyz));
    for (path, method) in realtime::METHODS {
        let segments = format!("{}{path}", REALTIME).split('/').map(str::to_owned).collect();
        methods.insert(0, (segments, vec![method.to_owned()]));
    }
    for (path, (route, allowed)) in plugin_routes::mounted(config) {
        methods.insert(0, (path.split('/').map(str::to_owned).collect(), allowed));
        routes = routes.at(path, route);
    }
    routes = mcp::mount(routes, &mut methods, config);
    routes = dashboard::mount(routes, &mut methods, config);
    let streams = OpenStreams::new(config.http.streams_per_workspace, "event streams", &STREAMS_OPEN);
    let page = PageBytes(config.constants.page_bytes);
    let routes = routes.data(engine).data(shutdown).data(streams).data(page).data(ServerArchive::new(backups, config));
    let routes = routes.data(PublicUrl::of(config)).data(api::system::InfoSettings::of(config));
    edge::around(routes, config, methods, operations).boxed()
}

/// Returns the OpenAPI document that the server serves.
pub fn openapi(config: &Config) -> serde_json::Value {
    api::document::finished(&api::service(config), &api::functions(config), config)
}
