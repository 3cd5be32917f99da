//! Limits on request bodies: a maximum size and a time limit or a minimum rate for each body, and a memory budget for
//! all bodies together.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::workspace::files::Incoming;
use foldwork_plugins::mcp;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Body, Endpoint, IntoResponse, Request, Response};

use super::error::ApiError;
use super::upload_rate::UploadRate;
use crate::config::Config;
use crate::http::routes::API;

/// The size limit in bytes of a file that is sent as the body, if the settings set no limit. Without this limit, one
/// request could reserve all storage, because an upload reserves its announced length. The limit rejects no file that
/// an object store would accept, because object stores accept only smaller files.
const MAX_UPLOAD_BYTES: u64 = 1 << 50;

/// The limits for request bodies and the memory budget that all requests share.
#[derive(Clone)]
pub struct Bodies {
    limit: usize,
    /// The size limit in bytes of a JSON body that contains a file. `upload_limit` is the limit for a file sent as the
    /// body.
    file_limit: usize,
    /// The size limit in bytes of a message of the Model Context Protocol. Parsing such a message takes several times
    /// the memory of a body of the API with the same size.
    mcp_limit: usize,
    upload_limit: u64,
    timeout: Duration,
    /// The minimum rate of a streamed body, in bytes per second.
    min_bytes_per_s: u64,
    budget: usize,
    in_flight: Arc<AtomicUsize>,
}

impl Bodies {
    pub fn new(config: &Config) -> Bodies {
        let (settings, constants) = (&config.http, &config.constants);
        Bodies {
            limit: settings.body_limit.bytes(),
            file_limit: constants.json_file_bytes,
            mcp_limit: constants.mcp_message_bytes,
            upload_limit: match config.files.upload_limit.0 {
                0 => MAX_UPLOAD_BYTES,
                limit => limit,
            },
            timeout: constants.body_timeout,
            min_bytes_per_s: constants.upload_bytes_per_s,
            budget: constants.bodies_in_flight,
            in_flight: Arc::default(),
        }
    }
}

/// A request's share of the memory budget. The bytes of a body that is read as a whole stay reserved until the handler
/// has ended, because data parsed from the body lives until then. A block of a streamed body is released when the block
/// is dropped.
pub struct BudgetShare {
    bodies: Bodies,
    /// The size limit in bytes for a body that is read as a whole.
    limit: usize,
    reserved: AtomicUsize,
}

impl BudgetShare {
    /// Counts bytes towards the memory budget until the returned value is dropped. Fails if the bodies of all requests
    /// together exceed the budget.
    fn hold(self: &Arc<Self>, bytes: Vec<u8>) -> Result<Bytes, ApiError> {
        self.take(bytes.len())?;
        Ok(Bytes::from_owner(BodyBudgetGuard { bytes, share: self.clone() }))
    }

    fn take(&self, bytes: usize) -> Result<(), ApiError> {
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        if self.bodies.in_flight.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.bodies.budget {
            return Ok(());
        }
        let allowed = self.bodies.budget;
        let message = format!("the request bodies in memory would exceed the {allowed} bytes that the server allows");
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Busy, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1")))
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.bodies.in_flight.fetch_sub(*self.reserved.get_mut(), Ordering::Relaxed);
    }
}

/// Calls the endpoint with a request that has a share of the memory budget.
pub async fn with_share<E: Endpoint>(bodies: Bodies, endpoint: Arc<E>, mut request: Request) -> poem::Result<Response> {
    let path = request.uri().path();
    let limit = match path.strip_prefix(API) {
        Some("/files") => bodies.file_limit,
        None if path == mcp::PATH => bodies.mcp_limit,
        _ => bodies.limit,
    };
    let share = Arc::new(BudgetShare { bodies, limit, reserved: AtomicUsize::new(0) });
    request.set_data(share.clone());
    let response = endpoint.call(request).await;
    drop(share);
    response.map(IntoResponse::into_response)
}

/// Reads a whole body. Returns an error if the body exceeds a limit.
pub async fn read(request: &Request, body: Body) -> poem::Result<Vec<u8>> {
    let share: &Arc<BudgetShare> = request.data().expect("the edge gives every request its share");
    let limit = share.limit;
    let too_large = || too_large(limit as u64);
    let announced = announced(request).map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large().into());
    }
    let reading = async {
        let mut text = Vec::with_capacity(announced.unwrap_or(0).min(INITIAL_CAPACITY));
        let mut parts = pin!(body.into_bytes_stream());
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| ApiError::invalid_body(&error))?;
            if text.len() + part.len() > limit {
                return Err(too_large());
            }
            share.take(part.len())?;
            text.extend_from_slice(&part);
        }
        Ok(text)
    };
    match tokio::time::timeout(share.bodies.timeout, reading).await {
        Ok(text) => Ok(text?),
        Err(_) => {
            let message = format!("the body did not arrive within {:?}", share.bodies.timeout);
            Err(too_slow(&message).into())
        }
    }
}

/// Returns the body's length in bytes from the `Content-Length` header.
fn announced(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

fn too_large(limit: u64) -> ApiError {
    let message = format!("the body is larger than {limit} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::PayloadTooLarge, message)
}

fn too_slow(message: &str) -> ApiError {
    ApiError::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::RequestTimeout, message)
}

/// A body that is streamed in blocks. Each block counts towards the memory budget until the block is dropped. The body
/// may be large, but must arrive at the minimum rate, which is checked over time windows of the length
/// `Bodies::timeout`.
pub struct UploadBody {
    body: Body,
    share: Arc<BudgetShare>,
    limit: u64,
    /// The body's length in bytes from the `Content-Length` header.
    pub announced: Option<u64>,
}

impl UploadBody {
    pub fn new(request: &Request, body: Body) -> UploadBody {
        let share: &Arc<BudgetShare> = request.data().expect("the edge gives every request its share");
        UploadBody { body, share: share.clone(), limit: share.bodies.upload_limit, announced: announced(request) }
    }

    /// Lowers the size limit of this upload to `bytes`, if given.
    pub fn at_most(self, bytes: Option<u64>) -> UploadBody {
        let limit = bytes.map_or(self.limit, |bytes| bytes.min(self.limit));
        UploadBody { limit, ..self }
    }

    /// Returns the body as a stream of blocks. A body whose announced length exceeds the limit is rejected. If a limit
    /// is exceeded later, or the body cannot be read, the stream ends with an error that wraps an [`ApiError`].
    pub fn blocks(self) -> Result<Incoming, ApiError> {
        let UploadBody { body, share, limit, announced } = self;
        if announced.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let capacity = announced.unwrap_or(0).min(BLOCK_BYTES as u64) as usize;
        let parts = body.into_bytes_stream().boxed();
        let rate = UploadRate::new(share.bodies.timeout, share.bodies.min_bytes_per_s);
        let body_stream = BodyStream { parts, remainder: Bytes::new(), remaining: limit, limit, capacity, rate, share };
        let blocks = stream::unfold(Some(body_stream), |body_stream: Option<BodyStream>| async move {
            let mut body_stream = body_stream?;
            match body_stream.next().await {
                Ok(None) => None,
                Ok(Some(block)) => Some((Ok(block), Some(body_stream))),
                Err(error) => Some((Err(std::io::Error::other(error)), None)),
            }
        });
        Ok(blocks.boxed())
    }
}

/// The size of a block in bytes. Small parts of a body are combined, because each block has a fixed cost.
const BLOCK_BYTES: usize = 128 << 10;

/// A body that is being streamed.
struct BodyStream {
    parts: BoxStream<'static, std::io::Result<Bytes>>,
    /// The bytes of the current part that did not fit into the previous block.
    remainder: Bytes,
    /// The number of bytes left until the size limit.
    remaining: u64,
    /// The size limit in bytes, for the error message.
    limit: u64,
    /// The initial capacity of the next block, in bytes.
    capacity: usize,
    rate: UploadRate,
    share: Arc<BudgetShare>,
}

impl BodyStream {
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let mut block = Vec::with_capacity(self.capacity);
        let limit = self.limit;
        while block.len() < BLOCK_BYTES {
            if self.remainder.is_empty() {
                match self.part().await? {
                    None => break,
                    Some(part) => self.remainder = part,
                }
            }
            let bytes = self.remainder.split_to(self.remainder.len().min(BLOCK_BYTES - block.len()));
            self.remaining = self.remaining.checked_sub(bytes.len() as u64).ok_or_else(|| too_large(limit))?;
            block.extend_from_slice(&bytes);
        }
        self.capacity = BLOCK_BYTES;
        if block.is_empty() { Ok(None) } else { self.share.hold(block).map(Some) }
    }

    /// Returns the next part of the body, or an error if the part does not arrive in time.
    async fn part(&mut self) -> Result<Option<Bytes>, ApiError> {
        let started = Instant::now();
        let Ok(part) = tokio::time::timeout(self.rate.remaining(), self.parts.next()).await else {
            let Bodies { min_bytes_per_s, timeout, .. } = self.share.bodies;
            let allowed = format!("expected at least {min_bytes_per_s} bytes per second, on average over {timeout:?}");
            return Err(too_slow(&format!("the body arrives too slowly; {allowed}")));
        };
        let part = part.transpose();
        let part = part.map_err(|error| ApiError::invalid_body(&error))?;
        self.rate.record(part.as_ref().map_or(0, Bytes::len), started.elapsed());
        Ok(part)
    }
}

/// Bytes of a body that count towards the memory budget until the guard is dropped.
struct BodyBudgetGuard {
    bytes: Vec<u8>,
    share: Arc<BudgetShare>,
}

impl AsRef<[u8]> for BodyBudgetGuard {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BodyBudgetGuard {
    fn drop(&mut self) {
        self.share.reserved.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        self.share.bodies.in_flight.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// The maximum initial capacity for a body, in bytes. For a longer body, more memory is allocated only when the bytes
/// arrive.
const INITIAL_CAPACITY: usize = 64 << 10;
