//! Limits on the number of requests: per key for valid tokens, and per address for all other requests. These limits are
//! off by default. The limit on wrong tokens is in [`super::wrong_tokens`]. Health checks have no limit, because an
//! orchestrator replaces a server that it cannot check.
//!
//! A token has its own limit only after authentication has accepted the token. A client therefore cannot evade the
//! limit of its address with invented tokens.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use foldwork_engine::error::ErrorCode;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use parking_lot::Mutex;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use sha2::{Digest, Sha256};

use super::wrong_tokens::{WrongTokens, may_present_credential};
use crate::config::Http;
use crate::http::bearer::{VerifiedIdentity, bearer};
use crate::http::client_address::ClientAddress;
use crate::http::error::ApiError;
use crate::http::routes::HEALTH;

/// The minimum interval between two sweeps. A sweep removes from memory the callers whose allowance is full again.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// The time after which an unused token may be removed from memory. Unused tokens are removed only if the maximum
/// number of valid tokens is in memory.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// The maximum number of callers in memory. While this number of callers is in memory, callers use the shared
/// allowances instead of their own.
pub(super) const MAX_CALLERS: usize = 100_000;
/// The number of allowances that callers share while too many callers are in memory.
const SHARED: u64 = 65_536;

/// An endpoint with rate limits. Calls the inner endpoint if the caller's allowance is not used up.
pub struct RateLimitEndpoint<E> {
    inner: E,
    keys: Option<Allowances<[u8; 32]>>,
    addresses: Option<Allowances<IpAddr>>,
    wrong_tokens: Option<WrongTokens>,
    /// The hashes of valid tokens, with the time of their last use.
    valid: Mutex<HashMap<[u8; 32], Instant>>,
}

impl<E> RateLimitEndpoint<E> {
    pub fn new(inner: E, settings: &Http) -> RateLimitEndpoint<E> {
        let keys = Allowances::new(settings.rate_limit_per_minute, "requests with this key", "rate_limit_per_minute");
        let addresses = Allowances::new(
            settings.address_limit_per_minute,
            "requests from this address",
            "address_limit_per_minute",
        );
        let wrong_tokens = WrongTokens::new(settings.wrong_token_limit_per_minute);
        RateLimitEndpoint { inner, keys, addresses, wrong_tokens, valid: Mutex::default() }
    }

    fn is_valid(&self, token: &[u8; 32]) -> bool {
        let mut valid = self.valid.lock();
        valid.get_mut(token).is_some_and(|last_used| {
            *last_used = Instant::now();
            true
        })
    }

    /// Records whether a token is valid. A valid token is not recorded while too many tokens are in memory.
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
        if let Some(token) = token.filter(|token| self.is_valid(token)) {
            return self.keys.as_ref().map_or(Ok(()), |keys| keys.take(token, token));
        }
        let address = address(request);
        if let Some(wrong_tokens) = self.wrong_tokens.as_ref().filter(|_| may_present_credential(request)) {
            wrong_tokens.check(address)?;
        }
        self.addresses.as_ref().map_or(Ok(()), |addresses| addresses.take(&address, neighbors(address)))
    }

    /// Records whether the token of a request is valid. If the response is 401 (`is_refused`), the token is invalid,
    /// and the request counts as a wrong credential from the address `presenter`. Any other error does not make the
    /// token invalid, because the error can have another cause.
    fn record_outcome(
        &self,
        token: Option<[u8; 32]>,
        is_refused: bool,
        verified: &VerifiedIdentity,
        presenter: Option<IpAddr>,
    ) {
        if let (true, Some(address), Some(wrong_tokens)) = (is_refused, presenter, &self.wrong_tokens) {
            wrong_tokens.count(address);
        }
        let Some(token) = token else { return };
        if is_refused {
            self.found(token, false);
        } else if verified.is_marked() && !self.is_valid(&token) {
            self.found(token, true);
            // Counts this first request of the token. If the request uses up the allowance, the next request is
            // rejected.
            if let Some(keys) = &self.keys {
                let _ = keys.take(&token, token);
            }
        }
    }
}

impl<E: Endpoint> Endpoint for RateLimitEndpoint<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let is_unlimited = self.keys.is_none() && self.addresses.is_none() && self.wrong_tokens.is_none();
        if is_unlimited || HEALTH.contains(&request.uri().path()) {
            return self.inner.call(request).await.map(IntoResponse::into_response);
        }
        let token: Option<[u8; 32]> = bearer(&request).map(|token| Sha256::digest(token).into());
        self.admit(&request, token.as_ref())?;
        let verified = request.data::<VerifiedIdentity>().cloned().unwrap_or_default();
        let presenter = may_present_credential(&request).then(|| address(&request));
        let response = self.inner.call(request).await.map(IntoResponse::into_response);
        let status = response.as_ref().map_or_else(poem::Error::status, Response::status);
        self.record_outcome(token, status == StatusCode::UNAUTHORIZED, &verified, presenter);
        response
    }
}

/// The remaining allowances of callers.
///
/// While [`MAX_CALLERS`] callers are in memory, each caller uses one of [`SHARED`] shared allowances, which limits the
/// memory. The hash of the caller's group, such as the network of its address, selects the shared allowance. A client
/// with very many addresses in one network can neither evade its limit nor use up the allowances of all other clients.
pub(super) struct Allowances<K: Hash + Eq + Clone> {
    limiter: DefaultKeyedRateLimiter<K>,
    shared: DefaultKeyedRateLimiter<u64>,
    hasher: RandomState,
    max_callers: usize,
    swept: Mutex<Instant>,
    /// The error message for a request over the limit. The message names the limit and its setting.
    limit: String,
}

impl<K: Hash + Eq + Clone> Allowances<K> {
    /// Creates the allowances for a limit, or returns `None` for 0 requests per minute, which means no limit. In the
    /// error message, `what` names the counted requests, and `setting` names the setting in the section `http`.
    pub(super) fn new(per_minute: u32, what: &str, setting: &str) -> Option<Allowances<K>> {
        let quota = Quota::per_minute(NonZeroU32::new(per_minute)?);
        Some(Allowances {
            limiter: RateLimiter::keyed(quota),
            shared: RateLimiter::keyed(quota),
            hasher: RandomState::new(),
            max_callers: MAX_CALLERS,
            swept: Mutex::new(Instant::now()),
            limit: format!("too many {what}: `http.{setting}` allows {per_minute} per minute"),
        })
    }

    /// Takes one request from a caller's allowance or, if too many callers are in memory, from the shared allowance
    /// that `group` selects. Fails if the allowance is used up.
    fn take(&self, caller: &K, group: impl Hash) -> Result<(), ApiError> {
        self.check(caller, group).map_err(|wait| self.refusal(wait))
    }

    /// Takes one request from a caller's allowance or, if too many callers are in memory, from the shared allowance
    /// that `group` selects. If the allowance is used up, fails with the time to wait until the next request is
    /// allowed.
    pub(super) fn check(&self, caller: &K, group: impl Hash) -> Result<(), Duration> {
        self.sweep();
        let taken = if self.limiter.len() < self.max_callers {
            self.limiter.check_key(caller)
        } else {
            self.shared.check_key(&(self.hasher.hash_one(group) % SHARED))
        };
        taken.map_err(|until| until.wait_time_from(DefaultClock::default().now()))
    }

    /// Returns the error for a request over the limit. The next request is allowed after `wait`.
    pub(super) fn refusal(&self, wait: Duration) -> ApiError {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::RateLimited, self.limit.clone())
            .with_header(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1))
    }

    /// Removes callers whose allowance is full again.
    fn sweep(&self) {
        let Some(mut swept) = self.swept.try_lock() else { return };
        if swept.elapsed() >= SWEEP_INTERVAL {
            *swept = Instant::now();
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
            self.shared.retain_recent();
            self.shared.shrink_to_fit();
        }
    }
}

/// Returns the address of a request's client. An IPv6 address is reduced to its /64 network, because a client usually
/// has a whole /64 network.
fn address(request: &Request) -> IpAddr {
    match request.data::<ClientAddress>() {
        Some(ClientAddress(IpAddr::V6(address))) => network_of(*address, 64),
        Some(ClientAddress(address)) => *address,
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// Returns the network whose addresses probably belong to one client: /24 of IPv4, and /48 of IPv6.
pub(super) fn neighbors(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from(u32::from(address) >> 8 << 8)),
        IpAddr::V6(address) => network_of(address, 48),
    }
}

fn network_of(address: Ipv6Addr, bits: u32) -> IpAddr {
    let host = 128 - bits;
    IpAddr::V6(Ipv6Addr::from(u128::from(address) >> host << host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_with_too_many_addresses_does_not_block_other_networks() {
        const CROWD: u32 = 500;
        let mut allowances = Allowances::<IpAddr>::new(2, "requests", "address_limit_per_minute").expect("a limit");
        allowances.max_callers = CROWD as usize;
        let take = |address: [u8; 4]| {
            let address = IpAddr::from(address);
            allowances.take(&address, neighbors(address)).is_ok()
        };
        for number in 0..CROWD {
            let [_, _, high, low] = number.to_be_bytes();
            assert!(take([10, 0, high, low]));
        }
        // All addresses of the network with very many addresses now share one allowance.
        let admitted = (0..=255).filter(|last| take([10, 1, 0, *last])).count();
        assert_eq!(admitted, 2);
        // Other networks are admitted. By chance, very few of these networks share their allowance with the network
        // above.
        let admitted = (0..=255).filter(|third| take([192, 0, *third, 1])).count();
        assert!(admitted > 240, "{admitted}");
    }

    #[test]
    fn addresses_of_one_network_are_grouped() {
        let group = |text: &str| neighbors(text.parse().expect("an address")).to_string();
        assert_eq!(group("192.0.2.7"), "192.0.2.0");
        assert_eq!(group("2001:db8:1:2::"), "2001:db8:1::");
    }
}
