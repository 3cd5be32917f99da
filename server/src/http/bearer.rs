//! The bearer token of a request, and whether a handler found it valid.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poem::Request;
use poem::http::header::AUTHORIZATION;

/// Set by the code that finds a request's token valid.
#[derive(Clone, Default)]
pub struct Verified(Arc<AtomicBool>);

impl Verified {
    /// Returns whether the token was found valid.
    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Marks the request's token as valid.
    pub fn mark(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the token in the `Authorization` header.
pub fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
