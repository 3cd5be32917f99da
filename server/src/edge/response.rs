//! The shape of every response: one JSON form for all errors, with the request's id, and no internal details after a
//! panic.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use poem::http::{HeaderValue, Method, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use tracing::Instrument;

use super::recorded::{RequestId, shown};
use super::routing::Routing;
use crate::http::client_address::ClientAddress;
use crate::http::error::ApiError;

/// The maximum length in bytes of a trace context in the log. A trace context of the current standard has 55 bytes.
const MAX_TRACE: usize = 64;

/// An endpoint that calls the routes, adds headers to their responses and converts their errors to JSON.
pub struct UniformResponses<E> {
    inner: E,
    routing: Arc<Routing>,
}

impl<E> UniformResponses<E> {
    pub fn new(inner: E, routing: Arc<Routing>) -> UniformResponses<E> {
        UniformResponses { inner, routing }
    }
}

/// Converts errors of the cross-origin rules to JSON. The layer of these rules is outside of [`UniformResponses`],
/// which converts all other errors.
pub async fn shape_refusal<E: Endpoint<Output = Response>>(
    endpoint: Arc<E>,
    request: Request,
) -> poem::Result<Response> {
    let RequestId(id) = RequestId::given(&request);
    endpoint.call(request).await.or_else(|error| {
        let own = with_id(ApiError::new(error.status(), "cross_origin_refused", error.to_string()), &id);
        Ok(own.into_response())
    })
}

impl<E: Endpoint> Endpoint for UniformResponses<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let RequestId(id) = RequestId::given(&request);
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let trace = request.header("traceparent").filter(|trace| trace.len() <= MAX_TRACE).unwrap_or_default();
        let client = request.data::<ClientAddress>().map(|client| tracing::field::display(client.0));
        let (request_id, path_shown) = (&*id, shown(&path));
        let span = tracing::info_span!("request", request_id, %method, path = path_shown, client, traceparent = trace);
        let called = AssertUnwindSafe(self.inner.call(request)).catch_unwind().instrument(span.clone()).await;
        let response = match called {
            Ok(Ok(response)) => response.into_response(),
            Ok(Err(error)) => self.error_response(error, &method, &path, &id).await,
            Err(_) => {
                span.in_scope(|| tracing::error!("a request panicked"));
                let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error");
                with_id(error, &id).into_response()
            }
        };
        Ok(response)
    }
}

impl<E> UniformResponses<E> {
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
                let allow = self.routing.allowed(path).join(", ");
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
}

fn with_id(mut error: ApiError, id: &str) -> ApiError {
    error.body.insert("request_id", id);
    error
}
