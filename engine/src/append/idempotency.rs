//! The identity of requests that may be repeated, and the retention of their responses.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorCode, Result};
use crate::store::workspace::responses::StoredResponse;

/// The time for which the response to a request with an idempotency key is kept, in milliseconds.
pub const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// The maximum length of an idempotency key, in bytes.
const MAX_KEY: usize = 255;

/// The identity of a request that must be carried out only once: user, idempotency key and fingerprint. The fingerprint
/// is the SHA-256 of the operation and the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub(crate) key: Arc<str>,
    pub(crate) fingerprint: Arc<str>,
}

impl IdempotentRequest {
    /// Creates the identity of a request from the user, the idempotency key, the name of the operation and the body.
    /// The stored key includes the user, so users who choose the same key do not affect each other.
    pub fn new(user_id: &str, key: &str, operation: &str, body: &[u8]) -> Result<IdempotentRequest> {
        if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
            return Err(Error::invalid("the idempotency key must have 1 to 255 bytes and no control characters"));
        }
        let fingerprint = Sha256::new().chain_update(operation).chain_update([0]).chain_update(body).finalize();
        // User ids contain no slash, so two users cannot have the same stored key.
        Ok(IdempotentRequest { key: format!("{user_id}/{key}").into(), fingerprint: hex::encode(fingerprint).into() })
    }

    /// Fails if the fingerprint of a stored response differs from the fingerprint of this request.
    pub(crate) fn check(&self, kept: &StoredResponse) -> Result<()> {
        if kept.fingerprint == self.fingerprint { Ok(()) } else { Err(mismatch()) }
    }
}

/// Returns the error for a key that was used for another request.
pub fn mismatch() -> Error {
    Error::conflict(ErrorCode::IdempotencyMismatch, "the idempotency key was used for another request")
}
