//! What request bodies may take: each of them a limit and a time, all that are under way together a budget.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Body, Endpoint, IntoResponse, Request, Response};

use crate::api::error::ApiError;
use crate::config::Http;

/// What every request's body has to keep to.
#[derive(Clone)]
pub struct Bodies {
    limit: usize,
    timeout: Duration,
    budget: usize,
    in_flight: Arc<AtomicUsize>,
}

impl Bodies {
    pub fn new(settings: &Http) -> Bodies {
        Bodies {
            limit: settings.body_limit_bytes,
            timeout: Duration::from_secs(settings.body_timeout_s),
            budget: settings.bodies_in_flight_bytes,
            in_flight: Arc::default(),
        }
    }
}

/// What one request has taken of the budget. It is given back when the request is answered, as what was made of the
/// body lives so long.
pub struct Share {
    bodies: Bodies,
    taken: AtomicUsize,
}

impl Share {
    fn take(&self, bytes: usize) -> Result<(), ApiError> {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        if self.bodies.in_flight.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.bodies.budget {
            return Ok(());
        }
        let message = "the server has as many request bodies under way as it can hold";
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1")))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.bodies.in_flight.fetch_sub(*self.taken.get_mut(), Ordering::Relaxed);
    }
}

/// Gives a request its share, for as long as it takes to answer it.
pub async fn with_share<E: Endpoint>(bodies: Bodies, endpoint: Arc<E>, mut request: Request) -> poem::Result<Response> {
    let share = Arc::new(Share { bodies, taken: AtomicUsize::new(0) });
    request.set_data(share.clone());
    let answer = endpoint.call(request).await;
    drop(share);
    answer.map(IntoResponse::into_response)
}

/// The bytes of a body that keeps to what it may take.
pub async fn read(request: &Request, body: Body) -> poem::Result<Vec<u8>> {
    let share: &Arc<Share> = request.data().expect("the edge gives every request its share");
    let limit = share.bodies.limit;
    let too_large = || {
        let message = format!("the body is larger than {limit} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
    };
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(too_large().into());
    }
    let reading = async {
        let mut text = Vec::with_capacity(announced.unwrap_or(0).min(FIRST));
        let mut parts = pin!(body.into_bytes_stream());
        while let Some(part) = parts.next().await {
            let part =
                part.map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, "invalid_body", error.to_string()))?;
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
            let message = "the body did not come in time";
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message).into())
        }
    }
}

/// Room that is made for a body before its bytes have come.
const FIRST: usize = 64 << 10;
