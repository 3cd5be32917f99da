//! Limits on requests: of each key that was found valid, and of each address for everything else. Off by default.
//!
//! A token counts for nothing before somebody has found it valid: whoever makes tokens up is limited by the address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use sha2::{Digest, Sha256};

use crate::config::Http;
use crate::http::bearer::{Verified, bearer};
use crate::http::error::ApiError;

/// How often those who have their whole allowance again are forgotten.
const SWEEP: Duration = Duration::from_secs(60);
/// A token that was not shown for so long is found valid anew.
const FORGET: Duration = Duration::from_secs(600);
/// Callers that are remembered at most. While so many are, no other is served.
const MOST: usize = 100_000;

/// Calls the inner endpoint while the caller's allowance lasts.
pub struct Limited<E> {
    inner: E,
    keys: Option<Allowances<[u8; 32]>>,
    addresses: Option<Allowances<IpAddr>>,
    /// Tokens that were found valid, by their hash, and when each was shown last.
    valid: Mutex<HashMap<[u8; 32], Instant>>,
}

impl<E> Limited<E> {
    pub fn new(inner: E, settings: &Http) -> Limited<E> {
        let keys = Allowances::new(settings.rate_limit_per_minute);
        let addresses = Allowances::new(settings.address_limit_per_minute);
        Limited { inner, keys, addresses, valid: Mutex::default() }
    }

    fn is_valid(&self, token: &[u8; 32]) -> bool {
        let mut valid = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        valid.get_mut(token).is_some_and(|shown| {
            *shown = Instant::now();
            true
        })
    }

    /// Remembers what became of a token that was not known to be valid, or is not any more.
    fn found(&self, token: [u8; 32], is_valid: bool) {
        let mut valid = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_valid {
            valid.remove(&token);
            return;
        }
        if valid.len() >= MOST {
            valid.retain(|_, shown| shown.elapsed() < FORGET);
        }
        if valid.len() < MOST {
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
        let answer = self.inner.call(request).await.map(IntoResponse::into_response);
        if let Some(token) = token {
            let is_refused = match &answer {
                Ok(answer) => answer.status() == StatusCode::UNAUTHORIZED,
                Err(error) => error.status() == StatusCode::UNAUTHORIZED,
            };
            // An answer that did not depend on the token says nothing of it.
            if is_refused {
                self.found(token, false);
            } else if verified.is_marked() && !self.is_valid(&token) {
                self.found(token, true);
                // This request was the key's first; that it is not the last allowed one is seen at the next.
                if let Some(keys) = &self.keys {
                    let _ = keys.take(&token);
                }
            }
        }
        answer
    }
}

/// What each caller may still do.
struct Allowances<K: Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    swept: Mutex<Instant>,
}

impl<K: Hash + Eq + Clone> Allowances<K> {
    /// 0 a minute is no limit.
    fn new(per_minute: u32) -> Option<Allowances<K>> {
        let quota = Quota::per_minute(NonZeroU32::new(per_minute)?);
        Some(Allowances { limiter: RateLimiter::keyed(quota), swept: Mutex::new(Instant::now()) })
    }

    fn take(&self, caller: &K) -> Result<(), ApiError> {
        self.sweep();
        if self.limiter.len() >= MOST {
            return Err(refusal(SWEEP.as_secs()));
        }
        self.limiter.check_key(caller).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            refusal(wait.as_secs() + 1)
        })
    }

    /// Forgets those who have their whole allowance again.
    fn sweep(&self) {
        let Ok(mut swept) = self.swept.try_lock() else { return };
        if swept.elapsed() >= SWEEP {
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

/// Where a request comes from. Whoever has one IPv6 address has the 2⁶⁴ of its network.
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
