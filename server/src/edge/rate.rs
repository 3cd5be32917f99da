//! A limit on requests per credential, or per address where there is none. Off by default.

use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Endpoint, Request};
use sha2::{Digest, Sha256};

use crate::api::error::ApiError;
use crate::auth::bearer;

/// Calls the inner endpoint while the caller's allowance lasts.
pub struct Limited<E> {
    inner: E,
    limiter: Option<DefaultKeyedRateLimiter<[u8; 32]>>,
}

impl<E> Limited<E> {
    /// `per_minute` 0 sets no limit.
    pub fn new(inner: E, per_minute: u32) -> Limited<E> {
        let limiter = NonZeroU32::new(per_minute).map(|allowed| RateLimiter::keyed(Quota::per_minute(allowed)));
        Limited { inner, limiter }
    }
}

impl<E: Endpoint> Endpoint for Limited<E> {
    type Output = E::Output;

    async fn call(&self, request: Request) -> poem::Result<E::Output> {
        if let Some(limiter) = &self.limiter
            && let Err(until) = limiter.check_key(&key(&request))
        {
            let wait = until.wait_time_from(DefaultClock::default().now()).as_secs() + 1;
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many requests");
            return Err(error.with_header(header::RETRY_AFTER, HeaderValue::from(wait)).into());
        }
        self.inner.call(request).await
    }
}

/// Who asks. The token itself is not kept in the limiter's memory.
fn key(request: &Request) -> [u8; 32] {
    match bearer(request) {
        Some(token) => Sha256::digest(token).into(),
        None => {
            let address = request.remote_addr().as_socket_addr().map(|address| address.ip().to_string());
            Sha256::digest(address.unwrap_or_default()).into()
        }
    }
}
