//! Requests that may come twice: what they make gets the same ids, and their first answer is kept.

use uuid::Uuid;

use super::Workspace;
use crate::error::{Error, Result};
use crate::store::answers::StoredAnswer;

/// How long an answer is kept, in milliseconds.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Longest idempotency key, in bytes.
const MAX_KEY: usize = 255;

/// What identifies a request whose repeat must do nothing: its key and the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    key: String,
    fingerprint: String,
}

impl RequestId {
    /// `fingerprint` is a SHA-256 of what was asked: operation and body.
    pub fn new(key: &str, fingerprint: String) -> Result<RequestId> {
        if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
            return Err(Error::invalid("the idempotency key must have 1 to 255 characters"));
        }
        Ok(RequestId { key: key.to_owned(), fingerprint })
    }
}

/// Ids of an aggregate and of its first event.
pub(super) struct NewIds {
    pub aggregate_id: String,
    /// Given where a repeat must be recognised.
    pub event_id: Option<String>,
}

impl Workspace {
    /// The answer first given to this request, if it was asked within the last day.
    pub async fn answered(&self, request: &RequestId) -> Result<Option<StoredAnswer>> {
        let found = self.state().log.read_answer(&request.key).await?;
        let Some(answer) = found.filter(|answer| answer.created_at + KEPT_MS > self.state().clock.now_ms()) else {
            return Ok(None);
        };
        if answer.fingerprint != request.fingerprint {
            let message = "the idempotency key was used for another request";
            return Err(Error::conflict("idempotency_mismatch", message));
        }
        Ok(Some(answer))
    }

    /// Holds back other requests that carry a key, so that two of the same do not both come first.
    pub async fn one_at_a_time(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.state().answering.lock().await
    }

    /// Keeps an answer for a day.
    pub async fn remember(&self, request: &RequestId, body: String, location: Option<String>) -> Result<()> {
        let state = self.state();
        let now = state.clock.now_ms();
        let answer = StoredAnswer { fingerprint: request.fingerprint.clone(), body, location, created_at: now };
        state.log.write_answer(&request.key, &answer).await?;
        state.log.forget_answers(now - KEPT_MS).await?;
        Ok(())
    }

    /// Ids for what a request makes. A request that may be repeated gets the same ones each time, so that even a
    /// repeat whose first answer was never kept finds the first event.
    pub(super) fn new_ids(&self, request: Option<&RequestId>) -> NewIds {
        match request {
            None => NewIds { aggregate_id: self.state().clock.new_id().to_string(), event_id: None },
            Some(request) => {
                let id = |part: &str| self.derived_id(request, part);
                NewIds { aggregate_id: id("aggregate"), event_id: Some(id("event")) }
            }
        }
    }

    /// An id that the same request gets each time it comes.
    pub(super) fn derived_id(&self, request: &RequestId, part: &str) -> String {
        let name = format!("{}/{part}/{}/{}", self.record().id, request.key, request.fingerprint);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
    }
}
