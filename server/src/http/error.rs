//! Error responses: one JSON shape for every failure, and the only place that maps the engine's errors to status codes.

use foldwork_engine::error::{Error, ErrorCode, event_pointer};
use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::model::value::{Object, Value};
use foldwork_engine::model::violation::Violation;
use foldwork_engine::pipeline::error::PipelineErrorCode;
use poem::error::ResponseError;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{MetaResponses, Registry};
use serde_json::error::Category;

/// An error response.
#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    /// The code in the body. `None` for a pipeline error, if the body contains MongoDB's number as the code.
    pub code: Option<ErrorCode>,
    /// The fields of the JSON body: `error` and `code`, followed by the fields of the specific error.
    pub body: Object,
    pub headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl ApiError {
    pub fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> ApiError {
        let mut body = Object::new();
        body.push("error", message.into());
        body.push("code", code);
        ApiError { status, code: Some(code), body, headers: Vec::new() }
    }

    pub fn with_header(mut self, name: header::HeaderName, value: HeaderValue) -> ApiError {
        self.headers.push((name, value));
        self
    }

    /// Returns the error for a body that cannot be read.
    pub fn invalid_body(error: &dyn std::fmt::Display) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidBody, error.to_string())
    }

    /// Returns the error for a body with these faults.
    pub fn faulty_body(faults: Vec<Violation>) -> ApiError {
        let mut error = ApiError::from(Error::from(faults));
        error.code = Some(ErrorCode::InvalidBody);
        error.body.insert("code", ErrorCode::InvalidBody);
        error
    }

    /// Returns the error for a body that a parser rejects. The parser's text contains the line and the column.
    pub fn unparsed_body(error: &serde_json::Error) -> ApiError {
        let message = match error.classify() {
            Category::Data => in_words(&with_excerpt(error)),
            _ => format!("the body is not JSON: {error}"),
        };
        ApiError::invalid_body(&message)
    }

    /// Adds the index of the event that caused the error.
    fn at_event(self, index: Option<usize>) -> ApiError {
        match index {
            Some(index) => self.with("index", index as i64),
            None => self,
        }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> ApiError {
        self.body.push(name, value);
        self
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> ApiError {
        let message = error.to_string();
        match error {
            Error::Unauthenticated(_) => ApiError::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthenticated, message)
                .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            Error::InsufficientScope { required } | Error::ScopesLacking { lacking: required } => {
                let names: Vec<Value> = required.iter().map(|scope| Value::from(scope.name())).collect();
                ApiError::new(StatusCode::FORBIDDEN, ErrorCode::InsufficientScope, message).with("required", names)
            }
            Error::SubscriptionRequired { required } => {
                let names: Vec<Value> = required.iter().map(|scope| Value::from(scope.name())).collect();
                ApiError::new(StatusCode::PAYMENT_REQUIRED, ErrorCode::SubscriptionRequired, message)
                    .with("required", names)
            }
            Error::Forbidden { code, .. } => ApiError::new(StatusCode::FORBIDDEN, code, message),
            Error::Invalid { code, violations, index, .. } => {
                let base = event_pointer(index);
                let details = violations.into_iter().map(|violation| {
                    let fields = [("pointer", format!("{base}{}", violation.pointer)), ("message", violation.message)];
                    Value::from(Object::from_iter(fields))
                });
                let details: Vec<Value> = details.collect();
                let error = ApiError::new(StatusCode::BAD_REQUEST, code, message);
                let error = if details.is_empty() { error } else { error.with("details", details) };
                error.at_event(index)
            }
            Error::Body(error) => error.downcast().unwrap_or_else(|error| ApiError::invalid_body(&error)),
            Error::Pipeline(error) => pipeline_error(error),
            Error::NotFound { .. } => ApiError::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message),
            Error::Conflict { code, details, index, .. } => {
                let mut error = ApiError::new(StatusCode::CONFLICT, code, message);
                details.into_iter().for_each(|(name, value)| error.body.push(name, value));
                error.at_event(index)
            }
            Error::TooManyQueries(_) => {
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooManyQueries, message)
                    .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            }
            Error::Unavailable(source) => {
                tracing::warn!(error = %source, "the store is unavailable");
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Unavailable, message)
                    .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            }
            Error::IssuerUnavailable(_) => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::IssuerUnavailable, message)
                    .with_header(header::RETRY_AFTER, HeaderValue::from_static("30"))
            }
            Error::Internal(source) => {
                tracing::error!(error = %source, "a request failed with an internal error");
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, message)
            }
        }
    }
}

/// Builds the response for a pipeline error. The field `code` is MongoDB's number, and the field `error` is MongoDB's
/// message. If the pipeline exceeded its time limit, `code` is a name and `error` is the server's own message. The
/// response can also have the fields `stage`, `pointer` and `hint`, which MongoDB's responses do not have.
fn pipeline_error(error: foldwork_engine::pipeline::error::Error) -> ApiError {
    let mut body = Object::new();
    body.push("error", error.message.as_str());
    let code = match error.code {
        PipelineErrorCode::Number(number) => {
            body.push("code", i64::from(number));
            None
        }
        PipelineErrorCode::QueryTimeout => {
            body.push("code", ErrorCode::QueryTimeout);
            Some(ErrorCode::QueryTimeout)
        }
    };
    body.push("code_name", error.code_name());
    if let Some(stage) = error.stage {
        body.push("stage", stage as i64);
    }
    if let Some(pointer) = error.pointer() {
        body.push("pointer", pointer);
    }
    if let Some(hint) = error.hint {
        body.push("hint", hint);
    }
    ApiError { status: StatusCode::BAD_REQUEST, code, body, headers: Vec::new() }
}

/// Returns a parser's message with its first part shortened to an excerpt, because this part quotes the client's value.
/// The second part, which lists the values that the parser allows, is not shortened.
fn with_excerpt(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let (text, place) = match message.strip_suffix(place.as_str()) {
        Some(text) => (text, place.as_str()),
        None => (message.as_str(), ""),
    };
    let allowed = [", expected ", ", there are no "].into_iter().filter_map(|word| text.rfind(word)).max();
    let (quoting, allowed) = text.split_at(allowed.unwrap_or(text.len()));
    format!("{}{allowed}{place}", excerpt_of(quoting))
}

/// Returns a parser's message without the name of a Rust struct, and with apostrophes instead of backticks.
fn in_words(message: &str) -> String {
    let (before, after) = match message.split_once("expected struct ") {
        Some((before, after)) => (before, after.find(" at line ").map(|end| &after[end..]).unwrap_or_default()),
        None => return message.replace('`', "'"),
    };
    format!("{before}expected an object{after}").replace('`', "'")
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message = self.body.get("error").and_then(Value::as_str).unwrap_or_default();
        write!(f, "{}: {message}", self.status)
    }
}

impl std::error::Error for ApiError {}

impl ResponseError for ApiError {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn as_response(&self) -> Response {
        let text = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = Response::builder().status(self.status).content_type("application/json").body(text);
        for (name, value) in &self.headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        if let Some(code) = self.code {
            response.set_data(code);
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.as_response()
    }
}

impl ApiResponse for ApiError {
    /// Declares no responses, because `api/document/responses.rs` adds the errors of each operation to the OpenAPI
    /// document.
    fn meta() -> MetaResponses {
        MetaResponses { responses: Vec::new() }
    }

    fn register(_: &mut Registry) {}
}

/// The result of a handler: the response, or an error response.
pub type ApiResult<T> = Result<T, ApiError>;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_body_fails_with_the_error_of_its_stream() {
        let busy = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Busy, "later")
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"));
        let failed = ApiError::from(Error::Body(io::Error::other(busy)));
        assert_eq!((failed.status, failed.headers.len()), (StatusCode::SERVICE_UNAVAILABLE, 1));
        assert_eq!(failed.body.get("code").and_then(Value::as_str), Some("busy"));
        let cut = ApiError::from(Error::Body(io::Error::new(io::ErrorKind::UnexpectedEof, "cut")));
        assert_eq!(cut.to_string(), "400 Bad Request: cut");
        assert_eq!(cut.body.get("code").and_then(Value::as_str), Some("invalid_body"));
    }

    #[test]
    fn a_parse_error_shows_the_position_and_no_names_of_types() {
        let cut = serde_json::from_str::<Vec<bool>>("[tr").expect_err("refused");
        let message = ApiError::unparsed_body(&cut).to_string();
        assert!(message.starts_with("400 Bad Request: the body is not JSON: "), "{message}");
        assert!(message.ends_with(" at line 1 column 3"), "{message}");
        assert_eq!(
            in_words("invalid type: integer `5`, expected struct AppendBody at line 1 column 1"),
            "invalid type: integer '5', expected an object at line 1 column 1"
        );
    }

    #[test]
    fn a_parse_error_quotes_a_short_part_of_a_long_text() {
        let message = |text: &str| {
            let body = format!("[\"{text}\"]");
            ApiError::unparsed_body(&serde_json::from_str::<Vec<bool>>(&body).expect_err("refused")).to_string()
        };
        let found = "400 Bad Request: invalid type: string \"";
        let expected = ", expected a boolean at line 1 column ";
        assert_eq!(message("x, expected y"), format!("{found}x, expected y\"{expected}16"));
        let shown = format!("{found}{}…{expected}", "x".repeat(78));
        assert!(message(&"x".repeat(1 << 20)).starts_with(&shown));
    }
}
