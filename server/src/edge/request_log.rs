//! Records every request: its id, its metrics, and its line in the access log.
//!
//! A line is written when the response is complete, or when the client disconnects. The line contains no query string
//! and no body, and of the headers only the request id and the client's address, because the other parts may contain
//! secrets.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::metric::GaugeGuard;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body as _, Frame, SizeHint};
use poem::http::{HeaderName, HeaderValue, Method, StatusCode};
use poem::{Body, Endpoint, Request, Response};

use super::routing::RouteTable;
use crate::config::ACCESS_LOG;
use crate::http::bearer::{VerifiedIdentity, WORKSPACE};
use crate::http::client_address::ClientAddress;
use crate::metric::{HTTP_IN_FLIGHT, HTTP_REQUESTS, HTTP_RESPONSE_BYTES, HTTP_SECONDS, REJECTIONS};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const WORKSPACE_ID: HeaderName = HeaderName::from_static(WORKSPACE);
/// The maximum length in bytes of a request id from a client.
const MAX_ID: usize = 128;
/// The maximum length in bytes of a path in the log.
const MAX_PATH: usize = 512;
/// The logged status of a request whose client disconnected before the response. This status is never sent to a client.
const CLIENT_GONE: u16 = 499;

/// The id of a request: the id that the client sent, or a new id.
#[derive(Clone)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// Returns the request id from the client, if this id is safe to repeat. Otherwise, returns a new id.
    fn of(request: &Request) -> RequestId {
        let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        RequestId(match request.header(REQUEST_ID.as_str()) {
            Some(id) if !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(is_safe) => id.into(),
            _ => uuid::Uuid::now_v7().to_string().into(),
        })
    }

    /// Returns the id that was assigned to a request.
    pub fn given(request: &Request) -> RequestId {
        request.data::<RequestId>().expect("the edge gives each request its id").clone()
    }
}

/// Assigns an id to a request, and records the request.
pub async fn recorded<E: Endpoint<Output = Response>>(
    routing: Arc<RouteTable>,
    endpoint: Arc<E>,
    mut request: Request,
) -> poem::Result<Response> {
    let mut recording = RequestRecord::begin(routing, &request);
    request.set_data(recording.id.clone());
    request.set_data(recording.verified.clone());
    let id = recording.id.clone();
    let mut response = endpoint.call(request).await?;
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    // With this header, a load balancer can send all requests of a workspace to the same server, which avoids conflicts
    // between servers.
    let workspace_id = recording.verified.identity().and_then(|identity| identity.workspace_id.as_deref());
    if let Some(Ok(value)) = workspace_id.map(HeaderValue::from_str) {
        response.headers_mut().insert(WORKSPACE_ID, value);
    }
    recording.answer(&response);
    let body = response.take_body();
    response.set_body(Body::from(BoxBody::new(CountedBody { body: body.into(), recording })));
    Ok(response)
}

/// The record of a request whose response is not complete. Dropping the record writes the line of the access log.
struct RequestRecord {
    routing: Arc<RouteTable>,
    id: RequestId,
    verified: VerifiedIdentity,
    method: Method,
    client: Option<ClientAddress>,
    path: String,
    /// The template of the request's path. Metrics with the full path would have an unbounded number of series.
    route: String,
    began: Instant,
    status: Option<StatusCode>,
    code: Option<ErrorCode>,
    bytes: u64,
    /// Whether the whole body was sent.
    is_complete: bool,
    _in_flight: GaugeGuard,
}

impl RequestRecord {
    fn begin(routing: Arc<RouteTable>, request: &Request) -> RequestRecord {
        let path = request.uri().path();
        let route = routing.find(path).map_or_else(|| "other".to_owned(), |(segments, _)| segments.join("/"));
        RequestRecord {
            routing,
            id: RequestId::of(request),
            verified: VerifiedIdentity::default(),
            method: request.method().clone(),
            client: request.data::<ClientAddress>().copied(),
            path: shown(path).to_owned(),
            route,
            began: Instant::now(),
            status: None,
            code: None,
            bytes: 0,
            is_complete: false,
            _in_flight: GaugeGuard::begin(&HTTP_IN_FLIGHT),
        }
    }

    /// Records the head of the response.
    fn answer(&mut self, response: &Response) {
        let status = response.status();
        self.status = Some(status);
        self.code = response.data::<ErrorCode>().copied();
        let method = known(&self.method);
        HTTP_REQUESTS.add(&[method, &self.route, status.as_str()], 1);
        HTTP_SECONDS.record(&[method, &self.route], self.began.elapsed().as_secs_f64());
        if let Some(reason) = rejection(status, self.code, &self.path) {
            REJECTIONS.add(&[status.as_str(), reason], 1);
        }
        // These responses have no body, or another task sends the body.
        self.is_complete = self.method == Method::HEAD || status == StatusCode::SWITCHING_PROTOCOLS;
    }

    fn log(&self) {
        let identity = self.verified.identity();
        let (status, is_answered) = (self.status.map_or(CLIENT_GONE, |status| status.as_u16()), self.status.is_some());
        tracing::info!(
            target: ACCESS_LOG,
            parent: None,
            method = known(&self.method),
            path = self.path,
            operation = self.routing.operation(self.method.as_str(), &self.route),
            status,
            code = self.code.map(ErrorCode::name),
            bytes = self.bytes,
            duration_ms = (self.began.elapsed().as_secs_f64() * 1e6).round() / 1e3,
            client = self.client.map(|client| tracing::field::display(client.0)),
            user = identity.and_then(|identity| identity.user_id.as_deref()),
            key = identity.and_then(|identity| identity.key_id.as_deref()),
            workspace = identity.and_then(|identity| identity.workspace_id.as_deref()),
            request_id = &*self.id.0,
            aborted = (is_answered && !self.is_complete).then_some(true),
            "request"
        );
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        if self.status.is_none() {
            HTTP_REQUESTS.add(&[known(&self.method), &self.route, "499"], 1);
        }
        HTTP_RESPONSE_BYTES.add(&[], self.bytes);
        self.log();
    }
}

/// The body of a response. Counts the bytes that are sent.
struct CountedBody {
    body: BoxBody<Bytes, std::io::Error>,
    recording: RequestRecord,
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                self.recording.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            Poll::Ready(None) => self.recording.is_complete = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        // The HTTP library does not poll a body of known size after its last byte.
        self.recording.is_complete |= self.body.is_end_stream();
    }
}

/// Returns the beginning of a path for the log, because a client may send a path of any length.
pub fn shown(path: &str) -> &str {
    &path[..path.floor_char_boundary(MAX_PATH)]
}

/// Returns the method's name in metrics and in the log. Unknown methods share one name, because clients can invent any
/// number of methods.
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

/// Returns the reason for a response with 429 or 503, as the value of a metric's label. Returns `None` for any other
/// status.
fn rejection(status: StatusCode, code: Option<ErrorCode>, path: &str) -> Option<&'static str> {
    Some(match (status, code) {
        (StatusCode::TOO_MANY_REQUESTS, code) => match code {
            Some(ErrorCode::RateLimited) => "rate_limited",
            Some(ErrorCode::TooManyQueries) => "too_many_queries",
            Some(ErrorCode::TooManyStreams) => "too_many_streams",
            _ => "other",
        },
        (StatusCode::SERVICE_UNAVAILABLE, code) => match code {
            Some(ErrorCode::Unavailable) => "unavailable",
            Some(ErrorCode::IssuerUnavailable) => "issuer_unavailable",
            Some(ErrorCode::Busy) => "bodies",
            None if path == "/readyz" => "not_ready",
            _ => "other",
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_for_a_rejection_has_a_metric_series_from_the_start() {
        let codes = [
            None,
            Some(ErrorCode::RateLimited),
            Some(ErrorCode::TooManyQueries),
            Some(ErrorCode::TooManyStreams),
            Some(ErrorCode::Unavailable),
        ];
        let codes = codes.into_iter().chain([
            Some(ErrorCode::IssuerUnavailable),
            Some(ErrorCode::Busy),
            Some(ErrorCode::Internal),
        ]);
        for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
            for (code, path) in codes.clone().flat_map(|code| [(code, "/readyz"), (code, "/api/v1/projects")]) {
                let reason = rejection(status, code, path).expect("a rejection");
                assert!(REJECTIONS.initial.contains(&&[status.as_str(), reason][..]), "{status} {code:?} {path}");
            }
        }
        assert_eq!(rejection(StatusCode::NOT_FOUND, Some(ErrorCode::NotFound), "/x"), None);
    }

    #[test]
    fn a_long_path_is_truncated() {
        let path = format!("/{}", "é".repeat(1_000));
        assert!(shown(&path).len() <= MAX_PATH && path.starts_with(shown(&path)));
        assert_eq!(shown("/short"), "/short");
    }
}
