//! The shape of every response: the request's id, one JSON form for all errors, and no internal details after a panic.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use poem::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use tracing::Instrument;

use crate::http::error::ApiError;
use crate::http::routes::Methods;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The maximum length in bytes of a request id from a client.
const MAX_ID: usize = 128;

/// An endpoint that calls the routes, adds headers to their responses and converts their errors to JSON.
pub struct Answering<E> {
    inner: E,
    methods: Methods,
}

impl<E> Answering<E> {
    pub fn new(inner: E, methods: Methods) -> Answering<E> {
        Answering { inner, methods }
    }
}

/// Converts errors of the cross-origin rules to JSON. The rules are the outermost layer, so no other layer handles
/// these errors.
pub async fn shape_refusal<E: Endpoint<Output = Response>>(
    endpoint: Arc<E>,
    request: Request,
) -> poem::Result<Response> {
    let id = request_id(&request);
    endpoint.call(request).await.or_else(|error| {
        let own = with_id(ApiError::new(error.status(), "cross_origin_refused", error.to_string()), &id);
        let mut response = own.into_response();
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        Ok(response)
    })
}

impl<E: Endpoint> Endpoint for Answering<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let id = request_id(&request);
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let trace = request.header("traceparent").unwrap_or_default().to_owned();
        let span = tracing::info_span!("request", request_id = %id, %method, %path, traceparent = %trace);
        let began = Instant::now();
        let called = AssertUnwindSafe(self.inner.call(request)).catch_unwind().instrument(span.clone()).await;
        let mut response = match called {
            Ok(Ok(response)) => response.into_response(),
            Ok(Err(error)) => self.error_response(error, &method, &path, &id).await,
            Err(_) => {
                span.in_scope(|| tracing::error!("a request panicked"));
                let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error");
                with_id(error, &id).into_response()
            }
        };
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        self.measure(&method, &path, &response, began);
        span.in_scope(|| tracing::debug!(status = response.status().as_u16(), "answered"));
        Ok(response)
    }
}

impl<E> Answering<E> {
    /// Converts any error to the JSON form. Errors of the framework have plain-text bodies.
    async fn error_response(&self, error: poem::Error, method: &Method, path: &str, id: &str) -> Response {
        if let Some(own) = error.downcast_ref::<ApiError>() {
            let headers = own.headers.clone();
            let own = ApiError { status: own.status, body: own.body.clone(), headers };
            return with_id(own, id).into_response();
        }
        let status = error.status();
        let message = error.to_string();
        let own = match status {
            // A path that cannot be parsed does not match any resource.
            _ if error.is::<poem::error::ParsePathError>() => {
                ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is nothing here")
            }
            StatusCode::NOT_FOUND => ApiError::new(status, "not_found", "there is nothing here"),
            StatusCode::METHOD_NOT_ALLOWED => {
                let allow = self.allowed(path);
                let error = ApiError::new(status, "method_not_allowed", format!("{method} is not allowed here"));
                match HeaderValue::from_str(&allow) {
                    Ok(allow) => error.with_header(header::ALLOW, allow),
                    Err(_) => error,
                }
            }
            StatusCode::UNAUTHORIZED => ApiError::new(status, "unauthenticated", "a bearer token is required")
                .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::new(status, "unsupported_media_type", message),
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(status, "payload_too_large", message),
            status if status.is_client_error() => ApiError::new(status, "invalid_input", message),
            status => {
                tracing::error!(error = %message, "a request failed with an internal error");
                ApiError::new(status, "internal", "internal error")
            }
        };
        with_id(own, id).into_response()
    }

    /// Returns the value of the `Allow` header for a path.
    fn allowed(&self, path: &str) -> String {
        // The router uses only the most specific route that matches.
        let route = self.routes(path).next();
        let mut known: Vec<&str> = route.into_iter().flat_map(|(_, methods)| methods).map(String::as_str).collect();
        if known.is_empty() || known.contains(&"GET") {
            known.extend(["GET", "HEAD"]);
        }
        known.sort_unstable();
        known.dedup();
        known.join(", ")
    }

    /// Returns the routes that match a path, those without parameters first.
    fn routes(&self, path: &str) -> impl Iterator<Item = &(Vec<String>, Vec<String>)> {
        let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        self.methods.iter().filter(move |(segments, _)| {
            segments.len() == parts.len()
                && segments.iter().zip(&parts).all(|(segment, part)| segment.starts_with('{') || segment == part)
        })
    }

    /// Records the metrics of a request, labelled with its route. Labels with the full path would create an unbounded
    /// number of metrics.
    fn measure(&self, method: &Method, path: &str, response: &Response, began: Instant) {
        let route = self.routes(path).next().map_or_else(|| "other".to_owned(), |(segments, _)| segments.join("/"));
        let labels = [
            ("method", known(method).to_owned()),
            ("route", route),
            ("status", response.status().as_u16().to_string()),
        ];
        metrics::counter!("foldwork_http_requests_total", &labels).increment(1);
        metrics::histogram!("foldwork_http_request_seconds", &labels[..2]).record(began.elapsed().as_secs_f64());
    }
}

/// Returns the label of a method for metrics. Unknown methods share one label, because clients can invent any number of
/// methods.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn with_id(mut error: ApiError, id: &str) -> ApiError {
    error.body.insert("request_id", id);
    error
}

/// Returns the client's own request id if it is safe to repeat, otherwise a new one.
fn request_id(request: &Request) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    match request.header(REQUEST_ID.as_str()) {
        Some(id) if !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(is_safe) => id.to_owned(),
        _ => uuid::Uuid::now_v7().to_string(),
    }
}
