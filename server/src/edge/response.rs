//! The shape of every response: one JSON form for all errors, with the request's id, and no internal details after a
//! panic.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use foldwork_engine::error::ErrorCode;
use futures_util::FutureExt;
use poem::http::{HeaderValue, Method, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use poem_openapi::error::ParseParamError;
use tracing::Instrument;

use super::request_log::{RequestId, shown};
use super::routing::RouteTable;
use crate::http::client_address::ClientAddress;
use crate::http::error::ApiError;

/// The maximum length in bytes of a trace context in the log. A trace context of the current standard has 55 bytes.
const MAX_TRACE: usize = 64;

/// An endpoint that calls the routes in a tracing span, and converts their errors and panics to JSON.
pub struct UniformResponses<E> {
    inner: E,
    routing: Arc<RouteTable>,
}

impl<E> UniformResponses<E> {
    pub fn new(inner: E, routing: Arc<RouteTable>) -> UniformResponses<E> {
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
        let own = with_id(ApiError::new(error.status(), ErrorCode::CrossOriginRefused, error.to_string()), &id);
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
                let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, "internal error");
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
            let own = ApiError { status: own.status, code: own.code, body: own.body.clone(), headers };
            return with_id(own, id).into_response();
        }
        let status = error.status();
        let message = match error.downcast_ref::<ParseParamError>() {
            Some(wrong) => format!("{}: {}", wrong.name, allowed_in(&wrong.reason)),
            None => error.to_string(),
        };
        let own = match status {
            // A path that cannot be parsed does not match any resource.
            _ if error.is::<poem::error::ParsePathError>() => self.nothing_here(method, path),
            StatusCode::NOT_FOUND => self.nothing_here(method, path),
            // An id in the path may be the misspelled name of another operation.
            StatusCode::METHOD_NOT_ALLOWED if self.routing.corrected_path(method.as_str(), path).is_some() => {
                self.nothing_here(method, path)
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                let allow = self.routing.allowed(path).join(", ");
                let error = ApiError::new(
                    status,
                    ErrorCode::MethodNotAllowed,
                    format!("{method} is not allowed for this path; allowed: {allow}"),
                );
                match HeaderValue::from_str(&allow) {
                    Ok(allow) => error.with_header(header::ALLOW, allow),
                    Err(_) => error,
                }
            }
            StatusCode::UNAUTHORIZED => ApiError::new(status, ErrorCode::Unauthenticated, "a bearer token is required")
                .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::new(status, ErrorCode::UnsupportedMediaType, message),
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(status, ErrorCode::PayloadTooLarge, message),
            status if status.is_client_error() => ApiError::new(status, ErrorCode::InvalidInput, message),
            status => {
                tracing::error!(error = %message, "a request failed with an internal error");
                ApiError::new(status, ErrorCode::Internal, "internal error")
            }
        };
        with_id(own, id).into_response()
    }

    /// Returns the error for a path that does not exist. If the path seems to be misspelled, the error suggests the
    /// correct path.
    fn nothing_here(&self, method: &Method, path: &str) -> ApiError {
        let hint = self.routing.corrected_path(method.as_str(), path).map(|path| format!("; did you mean '{path}'?"));
        let message = format!("this path does not exist{}", hint.unwrap_or_default());
        ApiError::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
    }
}

/// Returns a description of the values that a parameter allows. `reason` is the framework's message about a rejected
/// value, which contains the type of the parameter.
fn allowed_in(reason: &str) -> &str {
    // The framework gives this reason if a required parameter is absent.
    if reason.contains("expects an input value") {
        return "required";
    }
    let (kind, told) = reason.split_once("\": ").unwrap_or(("", reason));
    let told = told.split_once(" (occurred while parsing").map_or(told, |(told, _)| told);
    match kind.trim_start_matches("failed to parse \"") {
        _ if told.starts_with("expected ") => told,
        kind if kind.starts_with("integer(uint") => "expected a whole number that is not negative",
        kind if kind.starts_with("integer") => "expected a whole number",
        kind if kind.starts_with("number") => "expected a number",
        kind if kind.starts_with("boolean") => "expected true or false",
        _ => told,
    }
}

fn with_id(mut error: ApiError, id: &str) -> ApiError {
    error.body.insert("request_id", id);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_about_an_invalid_parameter_states_what_is_allowed() {
        let whole = "failed to parse \"integer(uint64)\": invalid digit found in string (occurred while parsing \
                     \"optional_integer(uint64)\")";
        assert_eq!(allowed_in(whole), "expected a whole number that is not negative");
        let own = "failed to parse \"integer(uint64)\": expected a whole number from 0 to 9 (occurred while parsing \
                   \"optional_integer(uint64)\")";
        assert_eq!(allowed_in(own), "expected a whole number from 0 to 9");
        let flag = "failed to parse \"boolean\": provided string was not `true` or `false`";
        assert_eq!(allowed_in(flag), "expected true or false");
        assert_eq!(allowed_in("Type \"string\" expects an input value."), "required");
    }
}
