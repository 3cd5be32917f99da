//! The bearer token of a request, and whether a handler found it valid.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poem::Request;
use poem::http::header::AUTHORIZATION;

/// Set by whoever finds the token of a request valid.
#[derive(Clone, Default)]
pub struct Verified(Arc<AtomicBool>);

impl Verified {
    /// Whether the token was found valid.
    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The request's token is a valid one.
    pub fn mark(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The token of the `Authorization` header.
pub fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
