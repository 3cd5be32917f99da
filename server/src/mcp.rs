//! The routes of the Model Context Protocol and of its OAuth metadata. Each request of the protocol is authenticated.
//! The metadata names the issuers of tokens. If issuers are configured, the error for a client without a valid token or
//! scope refers to the metadata.

use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::duplicate_names::repeated_name;
use foldwork_plugins::mcp::{self, McpSettings};
use foldwork_plugins::{Protocol, serves_protocol};
use poem::endpoint::{BoxEndpoint, TowerCompatExt};
use poem::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use poem::http::{HeaderValue, StatusCode, Uri};
use poem::{Endpoint, EndpointExt, IntoResponse, Request, Response, Route, get, post};
use serde_json::json;

use crate::auth;
use crate::config::Config;
use crate::http::bearer::bearer;
use crate::http::bodies;
use crate::http::error::ApiError;
use crate::http::offloading::{offload, offload_task};
use crate::http::public_url::PublicUrl;
use crate::http::routes::{Methods, upload_url_prefix};

/// The paths of the OAuth metadata of RFC 9728, for the MCP path and for the whole server.
const METADATA: [&str; 2] = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];
/// The OAuth scopes for reading and for writing.
const SCOPES: [&str; 2] = ["mcp:read", "mcp:write"];
/// The host names of a server on the local machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Adds the routes of the protocol if the plugin of the protocol is enabled.
pub fn mount(mut routes: Route, methods: &mut Methods, config: &Config) -> Route {
    if !serves_protocol(&config.plugins.enabled, Protocol::Mcp) {
        return routes;
    }
    let service = Arc::new(mcp::service(settings(config)).compat().boxed());
    let config = Arc::new(config.clone());
    let mut known = |path: &str, method: &str| {
        methods.insert(0, (path.split('/').map(str::to_owned).collect(), vec![method.to_owned()]));
    };
    known(mcp::PATH, "POST");
    routes = routes.at(mcp::PATH, post(McpEndpoint { service, config: config.clone() }));
    for path in METADATA {
        known(path, "GET");
        routes = routes.at(path, get(MetadataEndpoint(config.clone())));
    }
    routes
}

fn settings(config: &Config) -> McpSettings {
    McpSettings {
        allowed_hosts: allowed_hosts(config),
        allowed_origins: config.mcp.allowed_origins.clone(),
        response_bytes: config.constants.mcp_response_bytes,
        upload_bytes: Some(config.files.upload_limit.0).filter(|bytes| *bytes > 0),
        request_bytes: config.constants.mcp_message_bytes,
        describe: |error| ApiError::from(error).body,
    }
}

/// Returns the accepted host names. The default is the names of the local machine and the hosts of the listen address
/// and the public URL.
fn allowed_hosts(config: &Config) -> Vec<String> {
    if !config.mcp.allowed_hosts.is_empty() {
        return config.mcp.allowed_hosts.clone();
    }
    let host = |uri: &str| uri.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
    let listen = host(&format!("http://{}", config.http.listen));
    LOOPBACK.iter().map(|name| (*name).to_owned()).chain(listen).chain(host(&config.http.public_url)).collect()
}

/// Returns the response for a rejected request. If the request lacks a valid token or a scope, a challenge names the
/// needed scope and, if issuers are configured, the URL of the metadata.
fn challenged(config: &Config, request: &Request, error: Error) -> ApiError {
    let lacks_scope = matches!(error, Error::InsufficientScope { .. });
    let refusal = ApiError::from(error);
    let metadata = (!config.auth.issuers.is_empty())
        .then(|| format!("resource_metadata=\"{}{}\"", PublicUrl::of(config).base(request), METADATA[0]));
    let scope = Some(format!("scope=\"{}\"", SCOPES[0]));
    let parts = match refusal.status {
        StatusCode::UNAUTHORIZED => {
            let was_sent = bearer(request).is_some();
            [metadata, scope, was_sent.then(|| "error=\"invalid_token\"".to_owned()), None]
        }
        StatusCode::FORBIDDEN if lacks_scope => {
            let description = format!("error_description=\"the scope {} is needed\"", SCOPES[0]);
            [Some("error=\"insufficient_scope\"".to_owned()), scope, metadata, Some(description)]
        }
        _ => return refusal,
    };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match HeaderValue::from_str(&format!("Bearer {}", parts.join(", "))) {
        Ok(challenge) => refusal.with_header(WWW_AUTHENTICATE, challenge),
        Err(_) => refusal,
    }
}

/// The endpoint that handles requests of the protocol.
struct McpEndpoint {
    service: Arc<BoxEndpoint<'static, Response>>,
    config: Arc<Config>,
}

impl Endpoint for McpEndpoint {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let upload_url = upload_url_prefix(&PublicUrl::of(&self.config).base(&request));
        let access = auth::model_access(&request, upload_url).await;
        let mut access = access.map_err(|error| challenged(&self.config, &request, error))?;
        let body = request.take_body();
        let body = bodies::read(&request, body).await?;
        let (bytes, is_json) = (body.len(), is_json(&request));
        let (service, result) = (self.service.clone(), access.result.clone());
        // The message is parsed within this task, so a large message is offloaded.
        let serve = async move {
            if let Some(repeated) = repeated_name(&body) {
                return Err(ApiError::faulty_body(vec![repeated]).into());
            }
            access.sent = mcp::sent_arguments(&body);
            request.set_body(body);
            request.extensions_mut().insert(access);
            shaped(service.call(request).await?, is_json, &result).await
        };
        offload_task(bytes, serve).await
    }
}

/// Returns whether a request declares its body as JSON.
fn is_json(request: &Request) -> bool {
    let essence =
        |content_type: &str| content_type.split(';').next().map(|essence| essence.trim().to_ascii_lowercase());
    request.content_type().and_then(essence).is_some_and(|essence| essence == "application/json")
}

/// Converts a plain-text error of the protocol's library to JSON, and gives every response a body of known length.
/// `sent_json` states whether the request declared its body as JSON. `result` restores the numbers of a tool's result
/// that the library cannot represent exactly.
async fn shaped(mut response: Response, sent_json: bool, result: &mcp::ExactResult) -> poem::Result<Response> {
    let status = response.status();
    let is_json = response.header(CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("application/json"));
    let body = response.take_body().into_vec().await.map_err(poem::error::InternalServerError)?;
    if is_json || status.is_success() {
        response.set_body(offload(body.len(), || result.restored_in(body)));
        return Ok(response);
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let (status, code) = match status {
        // The library reports JSON that is not a message of the protocol as an unsupported media type.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if sent_json => {
            return Err(ApiError::invalid_body(&unreadable_body_message(&text)).into());
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (status, ErrorCode::UnsupportedMediaType),
        StatusCode::FORBIDDEN => (status, ErrorCode::HostRefused),
        StatusCode::NOT_ACCEPTABLE => (status, ErrorCode::NotAcceptable),
        StatusCode::PAYLOAD_TOO_LARGE => (status, ErrorCode::PayloadTooLarge),
        status if status.is_client_error() => (status, ErrorCode::InvalidInput),
        _ => {
            tracing::error!(error = %text, "a request failed with an internal error");
            return Err(ApiError::new(status, ErrorCode::Internal, "internal error").into());
        }
    };
    Err(ApiError::new(status, code, text).into())
}

/// Returns the error message for a body that the protocol's library could not read. `text` is the library's message.
/// For a body that is not JSON, the returned message contains `text`. For a JSON body, the message does not contain
/// `text`, because `text` names the library's types.
fn unreadable_body_message(text: &str) -> String {
    match text.trim_start_matches("fail to deserialize request body").trim_start() {
        message if message.contains(" line ") => format!("the body is not JSON: {}", message.replace('`', "'")),
        _ => "expected a JSON-RPC 2.0 message: an object with 'jsonrpc', 'method' and, if needed, 'params'".to_owned(),
    }
}

/// The endpoint of the OAuth metadata, which names the issuers of tokens.
struct MetadataEndpoint(Arc<Config>);

impl Endpoint for MetadataEndpoint {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let issuers: Vec<&str> = self.0.auth.issuers.iter().map(|known| known.issuer.as_str()).collect();
        if issuers.is_empty() {
            // Returns 404 if no issuer is configured, because a client that finds the metadata would try to get a
            // token.
            return Err(ApiError::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, "this path does not exist").into());
        }
        let document = json!({
            "resource": format!("{}{}", PublicUrl::of(&self.0).base(&request), mcp::PATH),
            "authorization_servers": issuers,
            "scopes_supported": SCOPES,
            "bearer_methods_supported": ["header"],
        });
        Ok(poem::web::Json(document).into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowed_hosts_are_the_configured_hosts_or_else_the_host_names_of_the_server() {
        let mut config = Config::default();
        config.http.public_url = "https://fold.example.org:8443/".into();
        config.http.listen = "10.0.0.7:80".into();
        assert_eq!(allowed_hosts(&config), ["localhost", "127.0.0.1", "::1", "10.0.0.7", "fold.example.org"]);
        config.mcp.allowed_hosts = vec!["other.example.org".into()];
        assert_eq!(allowed_hosts(&config), ["other.example.org"]);
    }
}
