//! Routes for the endpoints of native plugins, with the same guards, limits and error shape as all other operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::{ContentReader, Reader, Right, Writer};
use foldwork_plugins::mount::{self, Endpoint, Handler};
use poem::http::StatusCode;
use poem::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use poem::{Body, Request, Response, RouteMethod};

use crate::auth;
use crate::config::Config;
use crate::http::bodies;
use crate::http::error::ApiError;
use crate::http::etag::is_known;
use crate::http::public_url::PublicUrl;
use crate::http::routes::API;

/// Maps each path of the enabled plugins to the route of its endpoints and to the methods of these endpoints.
pub fn mounted(config: &Config) -> BTreeMap<String, (RouteMethod, Vec<String>)> {
    let mut paths: BTreeMap<String, (RouteMethod, Vec<String>)> = BTreeMap::new();
    let config = Arc::new(config.clone());
    for (plugin, endpoint) in foldwork_plugins::endpoints(&config.plugins.enabled) {
        let path = format!("{API}/plugins/{plugin}/{}", endpoint.path);
        let (route, mut methods) = paths.remove(&path).unwrap_or_default();
        methods.push(endpoint.method.to_string());
        let route = route
            .method(endpoint.method.clone(), PluginEndpoint { endpoint, path: path.clone(), config: config.clone() });
        paths.insert(path, (route, methods));
    }
    paths
}

/// Serves an endpoint of a plugin as a `poem::Endpoint`.
struct PluginEndpoint {
    endpoint: Endpoint,
    path: String,
    config: Arc<Config>,
}

impl poem::Endpoint for PluginEndpoint {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        match self.endpoint.handler {
            Handler::Content(handler) => self.respond::<ContentReader>(request, handler).await,
            Handler::Read(handler) => self.respond::<Reader>(request, handler).await,
            Handler::Write(handler) => self.respond::<Writer>(request, handler).await,
        }
    }
}

impl PluginEndpoint {
    /// Calls the handler if the caller has the rights of `R`.
    async fn respond<R: Right>(&self, mut request: Request, handler: mount::Serve<R>) -> poem::Result<Response> {
        let handle: R = auth::enter(&request).await?;
        let body = request.take_body();
        let body = bodies::read(&request, body).await?;
        let plugin_request = self.plugin_request(&request, body)?;
        let response = handler(handle, plugin_request).await.map_err(ApiError::from)?;
        Ok(converted(&request, response))
    }

    /// Converts a request to the type that plugins receive.
    fn plugin_request(&self, request: &Request, body: Vec<u8>) -> poem::Result<mount::EndpointRequest> {
        let public_url = PublicUrl::of(&self.config).base(request);
        Ok(mount::EndpointRequest {
            query: request.params()?,
            headers: request.headers().clone(),
            body,
            url: format!("{public_url}{}", self.path),
            api_url: format!("{public_url}{API}"),
        })
    }
}

/// Converts a plugin's response. If the client has the current version, the response is 304 without a body.
fn converted(request: &Request, response: mount::Response) -> Response {
    let (mut head, mut body) = response.into_parts();
    let tag = head.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    if head.status == StatusCode::OK && tag.is_some_and(|tag| is_known(request.header(IF_NONE_MATCH.as_str()), tag)) {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(CONTENT_TYPE);
        body.clear();
    }
    let mut response = Response::builder().status(head.status).body(Body::from_vec(body));
    *response.headers_mut() = head.headers;
    response
}
