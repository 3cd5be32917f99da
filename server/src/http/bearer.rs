//! The bearer token of a request, and a flag that records whether authentication accepted the token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poem::Request;
use poem::http::header::AUTHORIZATION;

/// A flag that authentication sets when a request's token is valid. Clones share the flag.
#[derive(Clone, Default)]
pub struct Verified(Arc<AtomicBool>);

impl Verified {
    /// Returns whether authentication has accepted the request's token.
    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Marks the request's token as valid.
    pub fn mark(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the bearer token in the request's `Authorization` header.
pub fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
