//! Requests that may come twice: what tells one from another, and how long it is remembered.

use std::sync::Arc;

use crate::error::{Error, IDEMPOTENCY_MISMATCH, Result};
use crate::store::answers::StoredAnswer;

/// How long a request is remembered, in milliseconds.
pub const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Longest idempotency key, in bytes.
const MAX_KEY: usize = 255;

/// What identifies a request whose repeat must do nothing: its user and key, and what was asked under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    pub(crate) key: Arc<str>,
    pub(crate) fingerprint: Arc<str>,
}

impl RequestId {
    /// `fingerprint` is a SHA-256 of what was asked: operation and body. The user is part of the key under which the request
    /// is remembered: two users who choose the same key do not meet, and neither is answered with the other's record.
    pub fn new(user_id: &str, key: &str, fingerprint: String) -> Result<RequestId> {
        if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
            return Err(Error::invalid("the idempotency key must have 1 to 255 characters"));
        }
        // The id of a user has no slash.
        Ok(RequestId { key: format!("{user_id}/{key}").into(), fingerprint: fingerprint.into() })
    }

    /// What is kept under the key must be of the same request.
    pub(crate) fn check(&self, kept: &StoredAnswer) -> Result<()> {
        if kept.fingerprint == self.fingerprint { Ok(()) } else { Err(mismatch()) }
    }
}

/// The key stands for something else that was asked.
pub fn mismatch() -> Error {
    Error::conflict(IDEMPOTENCY_MISMATCH, "the idempotency key was used for another request")
}
