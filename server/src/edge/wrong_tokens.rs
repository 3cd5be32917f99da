//! The limit on wrong credentials from one address. The limit is on by default, because each guess costs a lookup in
//! the store.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use poem::Request;

use super::rate::{Allowances, MAX_CALLERS, neighbors};
use crate::http::bearer::bearer;
use crate::http::error::ApiError;
use crate::http::routes::REALTIME;

/// The end of the path of requests that exchange a sign-in code. The code in the body of such a request is a
/// credential.
const EXCHANGE: &str = "/sign-in-codes/exchange";

/// The addresses that have recently sent wrong credentials.
pub struct WrongTokens {
    allowances: Allowances<IpAddr>,
    /// The addresses that have exceeded their allowance, each with the time at which its block ends.
    blocked: Mutex<HashMap<IpAddr, Instant>>,
}

impl WrongTokens {
    /// Creates the limit, or returns `None` for 0 wrong credentials per minute, which means no limit.
    pub fn new(per_minute: u32) -> Option<WrongTokens> {
        let allowances = Allowances::new(per_minute, "wrong tokens from this address", "wrong_token_limit_per_minute")?;
        Some(WrongTokens { allowances, blocked: Mutex::default() })
    }

    /// Fails if an address is blocked. The caller checks only requests that may present a credential and whose token is
    /// not among the known valid tokens.
    pub fn check(&self, address: IpAddr) -> Result<(), ApiError> {
        let until = self.blocked.lock().get(&address).copied();
        match until.and_then(|until| until.checked_duration_since(Instant::now())) {
            Some(wait) => Err(self.allowances.refusal(wait)),
            None => Ok(()),
        }
    }

    /// Counts a wrong credential from an address. Blocks the address if the credential exceeds its allowance.
    pub fn count(&self, address: IpAddr) {
        let Err(wait) = self.allowances.check(&address, neighbors(address)) else { return };
        let (now, mut blocked) = (Instant::now(), self.blocked.lock());
        if blocked.len() >= MAX_CALLERS {
            blocked.retain(|_, until| *until > now);
        }
        // If the map is full, the address is not blocked. A block lasts only until the limit allows one more wrong
        // credential, so a missing block changes little.
        if blocked.len() < MAX_CALLERS {
            blocked.insert(address, now + wait.max(Duration::from_millis(1)));
        }
    }
}

/// Returns whether a request can contain a credential: a bearer token, the credential of a socket or a sign-in code.
/// Sockets and exchanges of sign-in codes are recognized by their paths.
pub fn may_present_credential(request: &Request) -> bool {
    let path = request.uri().path();
    bearer(request).is_some() || path.starts_with(REALTIME) || path.ends_with(EXCHANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_that_exceeds_its_allowance_is_blocked() {
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let wrong = WrongTokens::new(2).expect("a limit");
        for _ in 0..2 {
            wrong.count(one);
            assert!(wrong.check(one).is_ok());
        }
        wrong.count(one);
        assert!(wrong.check(one).is_err());
        assert!(wrong.check(other).is_ok());
        assert!(WrongTokens::new(0).is_none());
    }
}
