//! Idempotency for requests that append no events: a repeated request gets the same ids and the first response.
//!
//! Appends do not need this module: the data for repeating the response of an append is stored with its events.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::call_context::{CallContext, Changing, Operation};
pub use crate::append::idempotency::IdempotentRequest;
use crate::append::idempotency::KEPT_MS;
use crate::error::Result;
use crate::state::State;
use crate::store::workspace::responses::StoredResponse;
use crate::store::{self, Database};

/// The time between two removals of old responses.
const FORGET_EVERY: Duration = Duration::from_secs(600);
/// The length of the first span of creation times, in milliseconds. Old responses are removed span by span.
const FIRST_SPAN_MS: i64 = 1_000;
/// The maximum length of a span of creation times, in milliseconds.
const MAX_SPAN_MS: i64 = 60_000;
/// The target number of batches in a span of creation times. A batch consists of responses that were stored together.
/// The length of each span after the first is chosen to approach this number.
const BATCHES_AT_ONCE: i64 = 256;
/// While old responses are removed, the progress is stored each time after this number of spans.
const SPANS_PER_CHECKPOINT: usize = 1_000;

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResponse {
    pub body: String,
    pub location: String,
}

/// The result of a request that may be a repeat.
#[derive(Debug)]
pub enum IdempotentResult<T> {
    /// The request was executed now.
    First(T),
    /// The request was executed earlier, with this response.
    Repeated(KeptResponse),
}

/// Executes a request, or returns its first response if the request was executed within the last day.
///
/// `make` executes the request, and returns the result and the response to store. The whole call is one operation,
/// which a disconnecting client cannot interrupt.
pub async fn idempotent<T, F>(
    handle: &impl Changing,
    request: IdempotentRequest,
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<IdempotentResult<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<(T, KeptResponse)>> + Send + 'static,
{
    Operation::perform(handle, move |operation| async move {
        let _lock = operation.lock(&request.key).await;
        let responses = Responses { state: operation.state(), db: operation.database(), request: &request };
        if let Some(first) = responses.first().await? {
            return Ok(IdempotentResult::Repeated(first));
        }
        match make().await {
            Ok((made, kept)) => Ok(match responses.keep(kept).await {
                Some(first) => IdempotentResult::Repeated(first),
                None => IdempotentResult::First(made),
            }),
            Err(error) => {
                responses.give_up().await;
                Err(error)
            }
        }
    })
    .await
}

/// The stored response of one request.
struct Responses<'a> {
    state: &'a State,
    db: &'a Database,
    request: &'a IdempotentRequest,
}

impl Responses<'_> {
    /// Returns the stored response, if the request is a repeat. If the request is new, records the request before its
    /// execution, so that every server rejects a different request with the same key.
    async fn first(&self) -> Result<Option<KeptResponse>> {
        let (log, key) = (self.db, &self.request.key);
        log.forget_response(key, self.state.clock.now_ms() - KEPT_MS).await?;
        let noted = log.keep_response(key, &self.stored_response(None)).await?;
        self.kept_response(noted)
    }

    /// Stores a response. Returns the response that another server stored first, if any. If the response cannot be
    /// stored, only logs the error: a repeated request derives the same ids and finds the existing records.
    async fn keep(&self, kept: KeptResponse) -> Option<KeptResponse> {
        match self.db.keep_response(&self.request.key, &self.stored_response(Some(kept.clone()))).await {
            Ok(first) => self.kept_response(first).ok().flatten().filter(|first| *first != kept),
            Err(error) => {
                tracing::warn!(%error, workspace = %self.state.record.id, "failed to store the response of a request");
                None
            }
        }
    }

    /// Removes the record of a failed request, so that another request can be sent with the same key.
    async fn give_up(&self) {
        if let Err(error) = self.db.delete_pending_response(&self.request.key, &self.request.fingerprint).await {
            let workspace = &self.state.record.id;
            tracing::warn!(%error, %workspace, "failed to remove the record of a failed request");
        }
    }

    fn stored_response(&self, kept: Option<KeptResponse>) -> StoredResponse {
        let (body, location) = kept.map(|kept| (kept.body, kept.location)).unzip();
        let fingerprint = self.request.fingerprint.clone();
        StoredResponse { fingerprint, events: None, body, location, created_at: self.state.clock.now_ms() }
    }

    /// Converts a stored response. Returns `None` if the request is still in progress. Fails if the response belongs to
    /// a different request with the same key.
    fn kept_response(&self, response: StoredResponse) -> Result<Option<KeptResponse>> {
        self.request.check(&response)?;
        let location = response.location.unwrap_or_default();
        Ok(response.body.map(|body| KeptResponse { body, location }))
    }
}

/// Removes old responses periodically.
pub async fn keep_forgetting(state: Arc<State>, db: Database) {
    let mut checks = tokio::time::interval(FORGET_EVERY);
    loop {
        checks.tick().await;
        if let Err(error) = forget_old(&state, &db).await {
            tracing::warn!(%error, workspace = %state.record.id, "failed to remove old responses");
        }
    }
}

/// Removes the responses that are older than [`KEPT_MS`]. Begins at the creation time up to which the last call removed
/// responses. Each query removes the responses of one span of creation times. To limit the size of a query, the length
/// of each span is chosen so that the span contains about [`BATCHES_AT_ONCE`] batches.
async fn forget_old(state: &State, db: &Database) -> store::Result<()> {
    let cutoff = state.clock.now_ms() - KEPT_MS;
    // If the clock was set back, starts at the earlier cutoff.
    let mut from = db.responses_forgotten_until().await?.unwrap_or(cutoff).min(cutoff);
    let mut span = FIRST_SPAN_MS;
    let mut spans = 0_usize;
    while from < cutoff {
        let until = cutoff.min(from.saturating_add(span));
        let found = db.forget_responses(from, until).await?;
        from = until;
        span = next_span(span, found);
        spans += 1;
        if spans.is_multiple_of(SPANS_PER_CHECKPOINT) {
            db.set_responses_forgotten(from).await?;
        }
    }
    db.set_responses_forgotten(cutoff).await
}

/// Returns the length of the next time span, in milliseconds. `span` is the length of the last time span, and `found`
/// is the number of batches found in the last time span.
fn next_span(span: i64, found: usize) -> i64 {
    let found = i64::try_from(found).unwrap_or(i64::MAX);
    let fitting = if found == 0 { span.saturating_mul(2) } else { span.saturating_mul(BATCHES_AT_ONCE) / found };
    fitting.clamp(1, MAX_SPAN_MS.min(span.saturating_mul(2)))
}

impl CallContext {
    /// Returns an id that is the same for every repeat of a request. `part` distinguishes the ids of one request.
    pub(super) fn derived_id(&self, request: &IdempotentRequest, part: &str) -> String {
        let name = format!("{}/{part}/{}/{}", self.record().id, request.key, request.fingerprint);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_removed_responses_shorten_the_time_span_of_the_next_removal() {
        assert_eq!(next_span(1_000, 0), 2_000);
        assert_eq!(next_span(1_000, 25_600), 10);
        assert_eq!(next_span(1_000, 100), 2_000);
        assert_eq!(next_span(1, 1_000_000), 1);
        assert_eq!(next_span(MAX_SPAN_MS, 0), MAX_SPAN_MS);
    }
}
