//! Limits on the number of requests: per key for valid tokens, and per address for all other requests. The limits are
//! off by default.
//!
//! A token has its own limit only after authentication has accepted the token. A client therefore cannot evade the
//! limit of its address with invented tokens.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use parking_lot::Mutex;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use sha2::{Digest, Sha256};

use crate::config::Http;
use crate::http::bearer::{Verified, bearer};
use crate::http::error::ApiError;

/// The interval between removals of callers whose allowance is full.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// The time without requests after which a token counts as unverified again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// The maximum number of callers in memory. While this many are in memory, all requests are rejected.
const MAX_CALLERS: usize = 100_000;

/// Calls the inner endpoint while the caller's allowance lasts.
pub struct Limited<E> {
    inner: E,
    keys: Option<Allowances<[u8; 32]>>,
    addresses: Option<Allowances<IpAddr>>,
    /// The hashes of valid tokens, with the time of their last use.
    valid: Mutex<HashMap<[u8; 32], Instant>>,
}

impl<E> Limited<E> {
    pub fn new(inner: E, settings: &Http) -> Limited<E> {
        let keys = Allowances::new(settings.rate_limit_per_minute);
        let addresses = Allowances::new(settings.address_limit_per_minute);
        Limited { inner, keys, addresses, valid: Mutex::default() }
    }

    fn is_valid(&self, token: &[u8; 32]) -> bool {
        let mut valid = self.valid.lock();
        valid.get_mut(token).is_some_and(|last_used| {
            *last_used = Instant::now();
            true
        })
    }

    /// Records the result of authenticating a token.
    fn found(&self, token: [u8; 32], is_valid: bool) {
        let mut valid = self.valid.lock();
        if !is_valid {
            valid.remove(&token);
            return;
        }
        if valid.len() >= MAX_CALLERS {
            valid.retain(|_, last_used| last_used.elapsed() < IDLE_TIMEOUT);
        }
        if valid.len() < MAX_CALLERS {
            valid.insert(token, Instant::now());
        }
    }

    fn admit(&self, request: &Request, token: Option<&[u8; 32]>) -> Result<(), ApiError> {
        match token.filter(|token| self.is_valid(token)) {
            Some(token) => self.keys.as_ref().map_or(Ok(()), |keys| keys.take(token)),
            None => self.addresses.as_ref().map_or(Ok(()), |addresses| addresses.take(&address(request))),
        }
    }
}

impl<E: Endpoint> Endpoint for Limited<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        if self.keys.is_none() && self.addresses.is_none() {
            return self.inner.call(request).await.map(IntoResponse::into_response);
        }
        let token: Option<[u8; 32]> = bearer(&request).map(|token| Sha256::digest(token).into());
        self.admit(&request, token.as_ref())?;
        let verified = Verified::default();
        request.set_data(verified.clone());
        let response = self.inner.call(request).await.map(IntoResponse::into_response);
        if let Some(token) = token {
            let is_refused = match &response {
                Ok(response) => response.status() == StatusCode::UNAUTHORIZED,
                Err(error) => error.status() == StatusCode::UNAUTHORIZED,
            };
            // Only 401 shows that the token is invalid. Other responses may not depend on the token.
            if is_refused {
                self.found(token, false);
            } else if verified.is_marked() && !self.is_valid(&token) {
                self.found(token, true);
                // Counts this first request of the token. If the request uses up the allowance, the next request is
                // rejected.
                if let Some(keys) = &self.keys {
                    let _ = keys.take(&token);
                }
            }
        }
        response
    }
}

/// The remaining allowances of callers.
struct Allowances<K: Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    swept: Mutex<Instant>,
}

impl<K: Hash + Eq + Clone> Allowances<K> {
    /// Creates the allowances for a limit, or returns `None` for 0 requests per minute, which means no limit.
    fn new(per_minute: u32) -> Option<Allowances<K>> {
        let quota = Quota::per_minute(NonZeroU32::new(per_minute)?);
        Some(Allowances { limiter: RateLimiter::keyed(quota), swept: Mutex::new(Instant::now()) })
    }

    fn take(&self, caller: &K) -> Result<(), ApiError> {
        self.sweep();
        if self.limiter.len() >= MAX_CALLERS {
            return Err(refusal(SWEEP_INTERVAL.as_secs()));
        }
        self.limiter.check_key(caller).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            refusal(wait.as_secs() + 1)
        })
    }

    /// Removes callers whose allowance is full again.
    fn sweep(&self) {
        let Some(mut swept) = self.swept.try_lock() else { return };
        if swept.elapsed() >= SWEEP_INTERVAL {
            *swept = Instant::now();
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
    }
}

fn refusal(wait_s: u64) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many requests")
        .with_header(header::RETRY_AFTER, HeaderValue::from(wait_s))
}

/// Returns the address of a request. An IPv6 address is reduced to its /64 network, because a client usually has a
/// whole /64 network.
fn address(request: &Request) -> IpAddr {
    let address = request.remote_addr().as_socket_addr().map(std::net::SocketAddr::ip);
    match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V6(address)) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        Some(address) => address,
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}
